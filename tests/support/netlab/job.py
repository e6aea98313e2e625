# SPDX-License-Identifier: Apache-2.0
"""A program that was started somewhere and whose output is collected.

Waiting is always for an event (output that matches, the end of the program) with a deadline; nothing here sleeps."""

import os
import pty
import re
import signal
import subprocess
import threading
import time
import tty


class LabError(Exception):
    """The laboratory itself failed: a host did not come up, a program did not do what the harness needs."""


class Job:
    """Output and end of one program. Subclasses feed it from their own thread and know how to signal it."""

    def __init__(self, title):
        self.title = title
        self.returncode = None
        self._output = []
        self._changed = threading.Condition()

    # For subclasses -------------------------------------------------------------------------------------------------

    def _add_output(self, text):
        with self._changed:
            self._output.append(text)
            self._changed.notify_all()

    def _set_ended(self, returncode):
        with self._changed:
            self.returncode = returncode
            self._changed.notify_all()

    def signal(self, number):
        raise NotImplementedError

    # For users ------------------------------------------------------------------------------------------------------

    @property
    def output(self):
        with self._changed:
            return "".join(self._output)

    @property
    def running(self):
        return self.returncode is None

    def wait(self, timeout):
        """Exit status (negative: signal), or LabError when the program is still running after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.returncode is not None, timeout):
                raise LabError(f"{self.title}: still running after {timeout} s; output so far:\n"
                               + "".join(self._output)[-4000:])
            return self.returncode

    def expect(self, pattern, timeout):
        """Waits until the output matches; returns the match. LabError when the program ends or time is up before."""
        expression = re.compile(pattern, re.MULTILINE)
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                found = expression.search("".join(self._output))
                if found:
                    return found
                left = deadline - time.monotonic()
                if self.returncode is not None or left <= 0:
                    why = "ended with {}".format(self.returncode) if self.returncode is not None else "time is up"
                    raise LabError(f"{self.title}: no output like {pattern!r} ({why}); output:\n"
                                   + "".join(self._output)[-4000:])
                self._changed.wait(left)

    def stop(self, timeout=10):
        """Asks the program to end (SIGTERM), then ends it. Returns its exit status."""
        if self.running:
            self.signal(signal.SIGTERM)
            try:
                return self.wait(timeout)
            except LabError:
                self.signal(signal.SIGKILL)
        return self.wait(timeout)


class LocalJob(Job):
    """A program on this machine in its own process group, killed with the harness if that dies."""

    def __init__(self, command, title=None, environment=None, namespace=None, user=None, directory=None):
        super().__init__(title or " ".join(command))
        prefix = []
        if namespace:
            prefix += ["ip", "netns", "exec", namespace]
        # Changing the user clears the parent-death signal, so setpriv sets it last of all, right before the program.
        prefix += ["setpriv", "--pdeathsig", "KILL"]
        if user is not None:
            prefix += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        merged = dict(os.environ)
        merged.update(environment or {})
        # A terminal, since programs hold their lines back from a pipe; raw, so that it adds nothing to the output.
        self._terminal, slave = pty.openpty()
        tty.setraw(slave)
        self._process = subprocess.Popen(prefix + ["--"] + list(command), stdin=subprocess.DEVNULL, stdout=slave,
                                         stderr=slave, env=merged, cwd=directory, start_new_session=True)
        os.close(slave)
        self.pid = self._process.pid
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self):
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # EIO: no process holds the terminal any more
                break
            if not data:
                break
            self._add_output(data.decode("utf-8", "replace"))
        self._set_ended(self._process.wait())
        os.close(self._terminal)

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def signal_program(self, number):
        """Signals the program alone, not what it started."""
        if self.running:
            os.kill(self.pid, number)


def run(command, timeout=60, check=True, **where):
    """Runs a program to its end and returns its output; LabError when it fails."""
    job = LocalJob(command, **where)
    try:
        status = job.wait(timeout)
    except LabError:
        job.signal(signal.SIGKILL)
        raise
    if check and status != 0:
        raise LabError(f"{job.title}: exit status {status}\n{job.output}")
    return job.output
