# SPDX-License-Identifier: Apache-2.0
"""Migration adapters in a guest (rxe_guest.py): Linux's own targets are configured where they run. What runs on this machine, such
as the conformance test of adapters, reaches the adapter through a socket."""

import contextlib
import json
import os
import socket
import sys
import threading
import time

from .job import LabError

ADAPTERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "agent", "migration", "adapters")


def put(guest, path, text, mode="644"):
    """Writes a file of the guest."""
    quoted = text.replace("'", "'\\''")
    guest.run_plain(f"mkdir -p $(dirname {path}) && printf '%s' '{quoted}' > {path} && chmod {mode} {path}")


def install_adapters(guest):
    for folder in ("", "rocegw_adapter"):
        for name in sorted(os.listdir(os.path.join(ADAPTERS, folder))):
            if name.endswith(".py"):
                with open(os.path.join(ADAPTERS, folder, name), encoding="utf-8") as file:
                    put(guest, os.path.join("/bin/adapters", folder, name), file.read(), "755")
    # An emulated processor needs seconds to compile them, and each call is a process of its own.
    guest.run_plain("python3 -c 'import sys, py_compile; [py_compile.compile(path) for path in sys.argv[1:]]' "
                    "/bin/adapters/rocegw_adapter/*.py")


class Bridge:
    """An adapter in the guest, and a socket on this machine whose lines it answers. command: the adapter's, with its environment."""

    def __init__(self, lab, guest, command):
        self.guest = guest
        self.command = command
        self.path = lab.path("bridge")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self.listener.accept()
            # What asked may have given up meanwhile.
            with connection, contextlib.suppress(OSError):
                status, output = self.ask(connection.makefile().readline())
                connection.sendall(f"{status}\n{output}".encode())

    def ask(self, line):
        quoted = line.replace("'", "'\\''")
        job = self.guest.start_plain(f"printf '%s' '{quoted}' | {self.command} 2>/tmp/adapter.err")
        return job.wait(120), job.output

    def words(self):
        """The adapter as a program of this machine."""
        support = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        return ["env", f"PYTHONPATH={support}", sys.executable, "-m", "netlab.guest_adapter", self.path]

    def call(self, request):
        """Answer to a request of a migration, asked again while it is "not-yet"; LabError unless the step is done."""
        for _ in range(20):
            status, output = self.ask(json.dumps({"protocol": 1, "id": "1", "deadline_seconds": 30, **request}) + "\n")
            answer = json.loads(output) if status == 0 else {}
            if answer.get("outcome") != "not-yet":
                break
            time.sleep(0.2)
        if answer.get("outcome") != "done":
            raise LabError(f"{request['call']}: {output}")
        return answer


def main():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    connection.sendall(sys.stdin.readline().encode() or b"\n")
    connection.shutdown(socket.SHUT_WR)
    status, _, output = connection.makefile().read().partition("\n")
    sys.stdout.write(output)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
