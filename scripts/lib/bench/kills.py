#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand programs are killed (SIGKILL) one after the other in the middle of their work, several at work at any time. Beside
them a pair of programs that nobody touches: how much it gets done meanwhile, in turns with the same neighbours that nobody kills.
Fails when it ends, or when anything of the killed is left on the gateway: objects, descriptors. Needs root."""

import argparse
import json
import os
import random
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.footprint import descriptors  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

LONGEST_LIFE_S = 0.5


class Neighbours:
    """Programs of a host that register, write to themselves and deregister without end."""

    def __init__(self, host, program, at_once):
        self._host = host
        self._program = program
        self._jobs = [self._start() for _ in range(at_once)]

    def _start(self):
        return self._host.start([self._program])

    def renew(self):
        self._jobs = [job if job.running else self._start() for job in self._jobs]

    def kill(self, at):
        self._jobs[at].signal(9)
        self._jobs[at].wait(20)

    def kill_and_replace(self):
        at = random.randrange(len(self._jobs))
        self.kill(at)
        self._jobs[at] = self._start()

    def end(self):
        for at in range(len(self._jobs)):
            self.kill(at)


class Witness:
    """Two programs, one on each host; what they get done is what the other host's gateway takes in."""

    def __init__(self, left, right):
        self._host = right
        words = ["ib_write_bw", "-s", "65536", "-F", "--run_infinitely", "-p", "20100"]
        self._server = right.start([*words, "-d", "rocegw0", "-x", str(right.gid_index(right.address4))])
        right.wait_listening(20100, self._server)
        self._client = left.start([*words, "-d", "rocegw0", "-x", str(left.gid_index(left.address4)), right.address4])
        self._client.expect("#bytes", 30)

    def bytes(self):
        if not self._client.running or not self._server.running:
            raise SystemExit(f"the program that nobody touched ended:\n{self._client.output}\n{self._server.output}")
        return self._host.counters()["rocegw_rx_bytes_total"]

    def end(self):
        for job in (self._client, self._server):
            job.signal(9)
            job.wait(20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4, help="turns without and with kills")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    gbits = {"left alone": [], "killed": []}
    with Lab() as lab:
        left, right = gateway_pair(lab, binaries)
        for host in (left, right):
            host.start_gateway()
        # What a gateway keeps once it has had programs is no leak.
        left.run(["ibv_devinfo", "-v"])
        left.expect_idle()
        before = descriptors(left.daemon.pid), left.memory_mib()["VmRSS"]
        witness = Witness(left, right)
        neighbours = Neighbours(left, os.path.join(binaries, "register_cost"), arguments.at_once)
        kills = 0
        for turn in range(1, arguments.rounds + 1):
            for kind in gbits:
                began, taken = time.monotonic(), witness.bytes()
                if kind == "killed":
                    while kills < arguments.kills * turn // arguments.rounds:
                        time.sleep(random.uniform(0, LONGEST_LIFE_S / arguments.at_once))
                        neighbours.kill_and_replace()
                        kills += 1
                else:
                    while time.monotonic() - began < 10:
                        neighbours.renew()
                        time.sleep(0.1)
                gbits[kind].append((witness.bytes() - taken) * 8e-9 / (time.monotonic() - began))
        neighbours.end()
        witness.end()
        left.expect_idle(20000)
        after = descriptors(left.daemon.pid), left.memory_mib()["VmRSS"]
    for kind, figures in gbits.items():
        print(f"beside neighbours that are {kind}: " + ", ".join(f"{figure:.2f}" for figure in figures) + " Gbit/s")
    print(f"{kills} killed; descriptors of the gateway {before[0]}, then {after[0]}; resident MiB {before[1]:.0f}, then {after[1]:.0f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"gbits": gbits, "kills": kills, "before": before, "after": after}, file)
    if after[0] > before[0]:
        raise SystemExit(f"the gateway kept {after[0] - before[0]} descriptors")


if __name__ == "__main__":
    main()
