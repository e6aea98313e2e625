# SPDX-License-Identifier: Apache-2.0
"""A laboratory: the namespaces, links, hosts and files of one run, all gone when it closes, also after Ctrl-C.

Names carry the process id, so that runs do not disturb each other; what a killed run left behind is removed by the next."""

import os
import re
import shutil
import signal
import tempfile

from .job import LabError, LocalJob, run

PREFIX = "rgw"


def _sweep():
    """Removes namespaces whose run no longer exists."""
    for line in run(["ip", "netns", "list"]).splitlines():
        found = re.match(rf"({PREFIX}(\d+)-\S+)", line)
        if found and not os.path.exists(f"/proc/{found.group(2)}"):
            run(["ip", "netns", "delete", found.group(1)], check=False)


class Lab:
    def __init__(self, keep_files=False):
        if os.geteuid() != 0:
            raise LabError("network namespaces need root: run this as root")
        _sweep()
        self.directory = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        os.chmod(self.directory, 0o755)  # programs of other users reach the sockets in it
        self._keep_files = keep_files
        self._namespaces = []
        self._closers = []
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGHUP, self._on_signal)

    @staticmethod
    def _on_signal(number, frame):
        raise KeyboardInterrupt

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        # A second Ctrl-C must not leave half of it behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for closer in reversed(self._closers):
            try:
                closer()
            except (LabError, OSError) as error:
                print(f"clean-up: {error}", flush=True)
        for name in self._namespaces:
            run(["ip", "netns", "delete", name], check=False)
        if not self._keep_files:
            shutil.rmtree(self.directory, ignore_errors=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def on_close(self, function):
        """Calls function when the laboratory closes, the latest first."""
        self._closers.append(function)

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def namespace(self, name):
        full = f"{PREFIX}{os.getpid()}-{name}"
        run(["ip", "netns", "add", full])
        self._namespaces.append(full)
        run(["ip", "link", "set", "lo", "up"], namespace=full)
        # Duplicate address detection would keep fresh IPv6 addresses unusable for a second.
        for scope in ("all", "default"):
            run(["sysctl", "-q", "-w", f"net.ipv6.conf.{scope}.accept_dad=0"], namespace=full)
        return full

    def veth(self, left, left_interface, right, right_interface, mtu):
        """Joins two namespaces with a veth pair."""
        run(["ip", "link", "add", left_interface, "netns", left, "mtu", str(mtu), "type", "veth",
             "peer", "name", right_interface, "netns", right, "mtu", str(mtu)])
        for namespace, interface in ((left, left_interface), (right, right_interface)):
            run(["ip", "link", "set", interface, "up"], namespace=namespace)

    def tap(self, namespace, interface, mtu):
        run(["ip", "tuntap", "add", "dev", interface, "mode", "tap"], namespace=namespace)
        run(["ip", "link", "set", interface, "mtu", str(mtu), "up"], namespace=namespace)

    def bridge(self, namespace, interface, members, mtu):
        run(["ip", "link", "add", interface, "type", "bridge"], namespace=namespace)
        for member in members:
            run(["ip", "link", "set", member, "master", interface], namespace=namespace)
        run(["ip", "link", "set", interface, "mtu", str(mtu), "up"], namespace=namespace)

    @staticmethod
    def address(namespace, interface, *addresses):
        for address in addresses:
            extra = ["nodad"] if ":" in address else []
            run(["ip", "address", "add", address, "dev", interface] + extra, namespace=namespace)

    def start(self, command, **where):
        """Starts a program that is stopped, at the latest, when the laboratory closes."""
        job = LocalJob(command, **where)
        self.on_close(job.stop)
        return job
