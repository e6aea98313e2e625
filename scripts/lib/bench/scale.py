#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of everything one gateway takes: 1,000 attached programs with 100,000 connected queue pairs and 100,000 memory
regions together, what the gateway's memory grows to, and how long it takes to get rid of them all when every program is
killed at once. Fails when something is left over then, above the limit of memory, or when the memory does not come back.
Needs root."""

import argparse
import json
import os
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

AIM_MB = 8192
WAIT_S = 300
# After all programs are gone the gateway is so much larger than at its start, at most, and so many seconds later.
KEPT_MB = 128
RETURN_S = 20
LIMITS = "default_pool: {{limits: {{sessions: {0}, qps: {1}, mrs: {2}}}}}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--qps", type=int, default=100000, help="of all programs together")
    parser.add_argument("--regions", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    rows = []
    with Lab() as lab:
        host = gateway_pair(lab, binaries, settings=LIMITS.format(arguments.programs + 16, arguments.qps + 16,
                                                                  arguments.regions + 16))[0]
        host.start_gateway()
        before = host.memory_mib()["VmRSS"]
        for _ in range(arguments.rounds):
            began = time.monotonic()
            jobs = [host.start([os.path.join(binaries, "many_objects"), str(arguments.qps // arguments.programs),
                                str(arguments.regions // arguments.programs)]) for _ in range(arguments.programs)]
            for job in jobs:
                job.expect("all there", WAIT_S)
            made = time.monotonic() - began
            counters = host.counters()
            there = {name: counters[f"rocegw_{name}"] for name in ("sessions", "queue_pairs", "memory_regions")}
            memory = host.memory_mib()
            began = time.monotonic()
            for job in jobs:
                job.signal(9)
            for job in jobs:
                job.wait(WAIT_S)
            host.expect_idle(20000)
            rest = time.monotonic() + RETURN_S
            while host.memory_mib()["VmRSS"] > before + KEPT_MB and time.monotonic() < rest:
                time.sleep(0.5)
            rows.append({**there, "made_s": made, "gone_s": time.monotonic() - began, "rss_mb": memory["VmRSS"],
                         "shared_mb": memory["RssShmem"], "rss_after_mb": host.memory_mib()["VmRSS"]})
    print(f"{'programs':>8} {'QPs':>8} {'regions':>8} {'made in s':>10} {'RSS MB':>7} {'shared':>7} {'gone in s':>10} {'RSS then':>9}")
    for row in rows:
        print(f"{row['sessions']:8.0f} {row['queue_pairs']:8.0f} {row['memory_regions']:8.0f} {row['made_s']:10.1f} "
              f"{row['rss_mb']:7.0f} {row['shared_mb']:7.0f} {row['gone_s']:10.1f} {row['rss_after_mb']:9.0f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump(rows, file)
    worst = max(row["rss_mb"] for row in rows)
    if worst > AIM_MB:
        raise SystemExit(f"the gateway took {worst:.0f} MB, more than {AIM_MB}")
    kept = max(row["rss_after_mb"] for row in rows) - before
    if kept > KEPT_MB:
        raise SystemExit(f"the gateway kept {kept:.0f} MB without any program, more than {KEPT_MB}")


if __name__ == "__main__":
    main()
