#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the Ceph daemons of one host of the laboratory, in place of systemd. The adapter's commands and the
laboratory call it; a daemon ends the start's process tree as one of systemd would, in a session of its own.

  daemons.py LAB.json start|stop|kill HOST [KIND]    KIND: mon, mgr, osd; all without it"""

import json
import os
import signal
import subprocess
import sys
import time

STOP_SECONDS = 60


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


class HostDaemons:
    """Daemons of one host. LAB.json names its namespace, folder, daemons and the words before those of an RDMA program."""

    def __init__(self, lab, name):
        self.host = lab["hosts"][name]
        self.folder = self.host["folder"]
        self.conf = os.path.join(self.folder, "ceph.conf")

    def daemons(self, kind):
        return [daemon for daemon in self.host["daemons"] if kind in (None, daemon.split(".")[0])]

    def pid_file(self, daemon):
        return os.path.join(self.folder, daemon + ".lab-pid")

    def pid(self, daemon):
        try:
            with open(self.pid_file(daemon), encoding="ascii") as file:
                pid = int(file.read())
        except (OSError, ValueError):
            return None
        return pid if is_running(pid) else None

    def uses_rdma(self):
        """The drop-in file of the node, in the place of systemd's, says whether daemons get the client library."""
        return os.path.exists(os.path.join(self.folder, "preload"))

    def start(self, kind):
        for daemon in self.daemons(kind):
            if self.pid(daemon):
                continue
            program, _, number = daemon.partition(".")
            words = ["ip", "netns", "exec", self.host["namespace"], *(self.host["launcher"] if self.uses_rdma() else []),
                     f"ceph-{program}", "-f", "--cluster", "ceph", "-c", self.conf, "-i", number]
            with open(os.path.join(self.folder, daemon + ".out"), "ab") as log:
                child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            with open(self.pid_file(daemon), "w", encoding="ascii") as file:
                file.write(str(child.pid))

    def stop(self, kind, number=signal.SIGTERM):
        pids = [pid for pid in map(self.pid, self.daemons(kind)) if pid]
        for pid in pids:
            os.kill(pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while any(map(is_running, pids)):
            if time.monotonic() > deadline:
                raise SystemExit(f"daemons do not end: {pids}")
            time.sleep(0.05)


def main():
    lab_file, verb, name = sys.argv[1:4]
    kind = sys.argv[4] if len(sys.argv) > 4 else None
    with open(lab_file, encoding="utf-8") as file:
        host = HostDaemons(json.load(file), name)
    if verb == "start":
        host.start(kind)
    else:
        host.stop(kind, signal.SIGKILL if verb == "kill" else signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
