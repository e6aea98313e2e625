# SPDX-License-Identifier: Apache-2.0
"""What a daemon holds of the machine, and whether it answers its liveness probe."""

import os
import socket
import threading
import time
from dataclasses import dataclass

from .gateway_host import enter_namespace


def descriptors(pid):
    """Descriptors of a gateway without the sockets that its port keeps to send from: at most one for each source port."""
    kept = set()
    for table in ("udp", "udp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
            kept |= {f"socket:[{line.split()[9]}]" for line in file.readlines()[1:]}
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{name}") not in kept
        except FileNotFoundError:
            pass  # closed since the folder was listed
    return count


@dataclass(frozen=True)
class Footprint:
    """Resident memory in MiB, open descriptors and threads of a process."""

    memory_mib: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
        return cls(int(fields["VmRSS"].split()[0]) / 1024, descriptors(pid), int(fields["Threads"]))

    def is_back(self, before, slack_mib, slack_threads=0):
        """No more descriptors than before; memory and threads within the slack, which covers what allocators and pools of threads
        keep."""
        return (self.memory_mib <= before.memory_mib + slack_mib and self.descriptors <= before.descriptors
                and self.threads <= before.threads + slack_threads)

    def __str__(self):
        return f"{self.memory_mib:.0f}/{self.descriptors}/{self.threads}"


class GrowthPoller:
    """The most memory in MiB that a process has of its own (heap, shared memory, no files) and the most threads, both beyond those at
    the start, looked at every 20 ms in a thread of its own."""

    def __init__(self, pid):
        self._pid = pid
        self._ended = threading.Event()
        self._first = self._now()
        self.most_mib = 0.0
        self.most_threads = 0
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _now(self):
        with open(f"/proc/{self._pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file)
        return (int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0])) / 1024, int(fields["Threads"])

    def _poll(self):
        try:
            while not self._ended.wait(0.02):
                memory, threads = self._now()
                self.most_mib = max(self.most_mib, memory - self._first[0])
                self.most_threads = max(self.most_threads, threads - self._first[1])
        except (FileNotFoundError, ProcessLookupError):
            pass  # the process has ended


class LivenessPoller:
    """Asks /livez of a daemon on the loopback of a namespace each 50 ms, in a thread of its own. An answer other than 200, or none
    within a second, is a failure."""

    def __init__(self, namespace, port, limit_s=1.0):
        self._namespace, self._port, self._limit_s = namespace, port, limit_s
        self._ended = threading.Event()
        self.asked = 0
        self.failures = 0
        self.slowest_s = 0.0
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _poll(self):
        enter_namespace(self._namespace)
        while not self._ended.wait(0.05):
            began = time.monotonic()
            good = self._ask(began + self._limit_s)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.asked += 1
            self.failures += not good

    def _ask(self, deadline):
        try:
            with socket.create_connection(("127.0.0.1", self._port), self._limit_s) as connection:
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                reply = b""
                while b"\r\n" not in reply:
                    connection.settimeout(max(0.001, deadline - time.monotonic()))
                    piece = connection.recv(4096)
                    if not piece:
                        return False
                    reply += piece
                return reply.startswith(b"HTTP/1.1 200")
        except OSError:
            return False
