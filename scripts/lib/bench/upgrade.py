#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gateways are replaced by new processes in a row while programs are attached: idle programs with many queue pairs, and pairs of
programs whose queue pairs carry verified data. Then the old process or the new one is killed at random moments of take-overs. Shows
the pauses and what they consist of, and memory before and after. Fails when a message is lost, repeated or wrong, when a program
ends, when no gateway is left, or when the p99 of the pause misses the gate. With --from or --previous, take-overs go from another build
to this one and back, under programs that have the other build's library. Needs root."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.echo_traffic import EchoTraffic  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.take_over_kills import TakeOverKills  # noqa: E402
from earlier_build import build_of  # noqa: E402

WAIT_S = 300
LIMITS = "default_pool: {{limits: {{sessions: {0}, qps: {1}, mrs: {1}}}}}\n"
PAUSE = re.compile(r"pause of (\d+) us")
STEPS = re.compile(r"take-over: ((?:[a-zA-Z ,-]+ [0-9.]+ ms)+.*)")
STEP = re.compile(r"([a-zA-Z -]+) ([0-9.]+) ms")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def steps_of(log):
    """Milliseconds of each step that a daemon logged."""
    return {name.strip(): float(took) for line in STEPS.findall(log) for name, took in STEP.findall(line)}


class Bench:
    def __init__(self, lab, arguments):
        self.arguments = arguments
        self.binaries = os.path.abspath(arguments.binaries)
        total = arguments.qps + arguments.loaded + 64
        # Builds whose daemon comes next on the left, in turns.
        self.builds = [self.binaries]
        if arguments.previous:
            self.builds.append(os.path.abspath(arguments.previous))
        self.left, self.right = gateway_pair(lab, self.builds[-1], workers=arguments.workers,
                                             settings=LIMITS.format(arguments.sessions + 64, total))
        for host in (self.left, self.right):
            # The programs of the benchmark are of this build.
            host.program = lambda name: os.path.join(self.binaries, name)
            host.start_gateway()
        self.idle = []
        self.traffic = []
        self.pauses = []
        self.steps = {}

    def start_programs(self):
        arguments = self.arguments
        program = os.path.join(self.binaries, "many_objects")
        each = arguments.qps // arguments.sessions if arguments.sessions else 0
        self.idle = [self.left.start([program, str(each), str(each)]) for _ in range(arguments.sessions)]
        for job in self.idle:
            job.expect("all there", WAIT_S)
        kinds = arguments.kinds.split(",")
        for number, kind in enumerate(kinds):
            count = (arguments.loaded + number) // len(kinds)
            if count:
                self.traffic.append(EchoTraffic(self.right, self.left, kind, count))

    def check_programs(self):
        for job in self.idle:
            if not job.running:
                raise SystemExit(f"a program that was attached ended with {job.returncode}:\n{job.output}")
        for one in self.traffic:
            one.check()

    def take_over(self):
        old = self.left.daemon
        self.builds.append(self.builds.pop(0))
        self.left.binaries = self.builds[-1]
        self.left.take_over()
        self.pauses.append(int(PAUSE.search(self.left.log()).group(1)) / 1000)
        for log in (old.output, self.left.log()):
            for name, took in steps_of(log).items():
                self.steps.setdefault(name, []).append(took)
        self.check_programs()

    def version(self, binaries=None):
        return subprocess.run([os.path.join(binaries or self.binaries, "rocegwd"), "--version"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def end_programs(self):
        """Messages of all pairs of programs; the longest silence of one in ms."""
        messages, longest = 0, 0.0
        for one in self.traffic:
            report = one.end()
            messages += report["messages"]
            longest = max(longest, report["longest_ms"])
        for job in self.idle:
            job.signal(signal.SIGKILL)
        for job in self.idle:
            job.wait(WAIT_S)
        self.left.expect_idle(20000)
        return messages, longest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--from", dest="revision", metavar="REVISION", help="builds this commit or tag first and goes from it to this one")
    other.add_argument("--previous", metavar="DIR", help="bin folder of another build")
    parser.add_argument("--sessions", type=int, default=1000, help="idle programs")
    parser.add_argument("--qps", type=int, default=10000, help="queue pairs of the idle programs together; as many regions")
    parser.add_argument("--loaded", type=int, default=64, help="queue pairs with verified data")
    parser.add_argument("--kinds", default="rc,srq,ud", help="kinds of the loaded queue pairs")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100, help="take-overs")
    parser.add_argument("--kills", type=int, default=200, help="take-overs of which the old process or the new one is killed")
    parser.add_argument("--gate-ms", type=float, default=250, help="limit of the pause's p99")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.revision:
        arguments.previous = build_of(arguments.revision)
    with Lab() as lab:
        bench = Bench(lab, arguments)
        bench.start_programs()
        # The first process has made the objects; those that follow have read them.
        for _ in bench.builds:
            bench.take_over()
        bench.pauses.clear()
        before = bench.left.memory_mib()["VmRSS"]
        for _ in range(arguments.rounds):
            bench.take_over()
            time.sleep(0.05)
        after = bench.left.memory_mib()["VmRSS"]
        messages, longest = bench.end_programs()
        kills = TakeOverKills(bench.left, bench.right) if arguments.kills else None
        for _ in range(arguments.kills):
            kills.one()
        if kills:
            kills.end()
    pauses = bench.pauses
    print(f"{arguments.sessions} programs with {arguments.qps} queue pairs, {arguments.loaded} more under load ({arguments.kinds}); "
          f"{len(pauses)} take-overs")
    print(f"pause in ms: p50 {percentile(pauses, 0.5):.0f}, p99 {percentile(pauses, 0.99):.0f}, longest {max(pauses):.0f}; "
          f"longest silence of a program {longest:.0f} ms")
    if arguments.previous:
        print(f"{bench.version()}, in turns with {bench.version(arguments.previous)}")
    print(f"{messages} messages, 0 lost, 0 wrong, 0 disconnects; resident MiB {before:.0f}, then {after:.0f}")
    if kills:
        print(f"{arguments.kills} kills, one gateway left after each: {kills.text()}")
    for name, values in bench.steps.items():
        print(f"  {name:<28} p50 {percentile(values, 0.5):7.1f} ms   longest {max(values):7.1f} ms")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"pauses_ms": pauses, "longest_silence_ms": longest, "messages": messages, "steps_ms": bench.steps,
                       "kills": kills.counts if kills else {}, "rss_mb": [before, after], "arguments": vars(arguments)}, file)
    if percentile(pauses, 0.99) > arguments.gate_ms:
        raise SystemExit(f"p99 of the pause is {percentile(pauses, 0.99):.0f} ms, above {arguments.gate_ms:.0f} ms")


if __name__ == "__main__":
    main()
