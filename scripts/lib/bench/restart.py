#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway with many attached programs is killed (SIGKILL) and started again, and all of them come back at the same
moment: how long each is without a gateway, how long a program of another pool takes to attach and connect meanwhile, and what
/livez says. Fails when a program does not come back, when /livez misses an answer of the new gateway, when the other pool's
program takes more than half a second (median), or when the gateway has descriptors more than before. Needs root."""

import argparse
import json
import os
import re
import statistics
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fleet import eventually  # noqa: E402
from netlab.footprint import LivenessPoller, descriptors  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.neighbours import POOLS, Program, pool_socket  # noqa: E402

SET_UP_AIM_S = 0.5
# Descriptors that come and go by themselves: receivers, sockets of scrapes.
SPARE_DESCRIPTORS = 16
METRICS_PORT = 7474
# The other pool's program sends for so long: without a message it has no figures.
MESSAGES_S = 0.2
WAIT_S = 600


def settings(programs, qps, regions):
    """Pools of two tenants; that of the crowd has room for it."""
    amounts = {"sessions": programs, "pds": programs, "cqs": programs, "qps": programs * qps, "mrs": programs * regions}
    committed = ", ".join(f"{name}: {amount + 16}" for name, amount in amounts.items())
    return (f"default_pool: {{limits: {{sessions: {programs + 64}}}}}\n"
            + POOLS.replace("spec: {slots: 1", f"spec: {{quota: {{committed: {{{committed}}}}}, slots: 1"))


def times(job):
    """Seconds without a gateway of each program that came back, in every round."""
    return [float(one) for one in re.findall(r"again after ([\d.]+) s", job.output)]


def set_up_s(host, other):
    """Seconds that a program of the other pool takes to attach and to connect."""
    program = Program(host, other, "a", "victim")
    try:
        program.job.expect("set_up_us", 60)
        time.sleep(MESSAGES_S)
        program.end(15)
    finally:
        program.kill()
    return program.figures()[2] / 1e6


def come_back(host, other, job, programs):
    """The new gateway's row; the crowd returns meanwhile."""
    earlier = len(times(job))
    alone = statistics.median(set_up_s(host, other) for _ in range(5))
    before = descriptors(host.daemon.pid)
    host.daemon.signal(9)
    host.daemon.wait(60)
    began = time.monotonic()
    host.start_gateway()
    ready = time.monotonic() - began
    beside = []
    with LivenessPoller(host.namespace, METRICS_PORT) as livez:
        while len(times(job)) < earlier + programs:
            if not job.running or time.monotonic() - began > WAIT_S:
                raise LabError(f"{len(times(job)) - earlier} of {programs} programs came back:\n{job.output[-1000:]}")
            beside.append(set_up_s(host, other))
    found = sorted(times(job)[earlier:])
    return {"programs": programs, "ready_s": ready, "without_p50_s": found[len(found) // 2],
            "without_p99_s": found[len(found) * 99 // 100], "without_longest_s": found[-1], "set_up_alone_s": alone,
            "set_up_s": statistics.median(beside), "set_up_longest_s": max(beside), "set_ups": len(beside),
            "livez_asked": livez.asked, "livez_failures": livez.failures, "descriptors_before": before,
            "descriptors": descriptors(host.daemon.pid)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--programs", type=int, default=600, help="a pool is charged descriptors of the gateway for each")
    parser.add_argument("--qps", type=int, default=2, help="of each program")
    parser.add_argument("--regions", type=int, default=2, help="of each program")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    rows = []
    with Lab() as lab:
        host, other = gateway_pair(lab, binaries, settings=settings(arguments.programs, arguments.qps, arguments.regions))
        host.start_gateway()
        other.start_gateway()
        host.attach_socket = pool_socket(host, "b")
        job = host.start([os.path.join(binaries, "many_objects"), str(arguments.qps), str(arguments.regions),
                          str(arguments.programs)])
        eventually("programs with all their objects",
                   lambda: not job.running or job.output.count("all there\n") >= arguments.programs, WAIT_S)
        if not job.running:
            raise SystemExit(f"programs failed:\n{job.output[-1000:]}")
        for _ in range(arguments.rounds):
            rows.append(come_back(host, other, job, arguments.programs))
        job.signal(9)
        job.wait(60)
        host.expect_idle(20000)
    print(f"{'programs':>8} {'ready s':>8} {'without gateway s: p50':>23} {'p99':>6} {'longest':>8} {'other pool: alone s':>20} "
          f"{'median':>7} {'longest':>8} {'livez':>9}")
    problems = []
    for row in rows:
        print(f"{arguments.programs:8} {row['ready_s']:8.2f} {row['without_p50_s']:23.2f} {row['without_p99_s']:6.2f} "
              f"{row['without_longest_s']:8.2f} {row['set_up_alone_s']:20.3f} {row['set_up_s']:7.3f} {row['set_up_longest_s']:8.3f} "
              f"{row['livez_failures']:4}/{row['livez_asked']}")
        if row["livez_failures"] or not row["livez_asked"]:
            problems.append("/livez")
        if row["set_up_s"] > SET_UP_AIM_S:
            problems.append("set-up of the other pool's program")
        if row["descriptors"] > row["descriptors_before"] + SPARE_DESCRIPTORS:
            problems.append("descriptors")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump(rows, file)
    if problems:
        raise SystemExit("missed: " + ", ".join(problems))


if __name__ == "__main__":
    main()
