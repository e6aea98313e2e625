#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Endpoints of two hosts over their gateways: what OpenURMA's section 8 measures with a model.

  locks    1 to 256 contenders for one lock: compare-and-swap on a word of the other host, tried again at once, and after random
           pauses that grow. Each release must find its owner: two owners at a time fail the benchmark.
  fan_out  one endpoint writes 64 bytes to 1 to 1,024 endpoints of the other host, without connections, and waits for all

Variants take turns in each round; the tables show medians. Needs root."""

import argparse
import json
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

CONTENDERS = (1, 4, 16, 64, 256)
TARGETS = (1, 4, 16, 64, 256, 1024)


def load(host, *words):
    """Report of a run that ended well."""
    job = host.start([host.program("endpoint_load"), *map(str, words)])
    status = job.wait(300)
    if status != 0:
        raise SystemExit(f"endpoint_load {' '.join(map(str, words[:3]))} ended with {status}:\n{job.output[-2000:]}")
    return json.loads(job.output.strip().splitlines()[-1])


def locks(host, served, arguments, results):
    rows = {(count, backoff): [] for count in CONTENDERS for backoff in (0, arguments.backoff)}
    for _ in range(arguments.rounds):
        for (count, backoff), reports in rows.items():
            reports.append(load(host, "locks", count, arguments.seconds, backoff, *served[:4]))
    print("\nlocks: one word, compare-and-swap and a swap to release it")
    print("  contenders  pause us      taken/s  tries/taken     p50 us     p99 us  fewest/most of one")
    for (count, backoff), reports in rows.items():
        taken = statistics.median(report["taken"] / report["seconds"] for report in reports)
        tries = statistics.median(report["tries"] / max(report["taken"], 1) for report in reports)
        fair = statistics.median(report["least"] / max(report["most"], 1) for report in reports)
        p50, p99 = (statistics.median(report[key] for report in reports) for key in ("p50_us", "p99_us"))
        print(f"  {count:10} {backoff:9} {taken:12.0f} {tries:12.1f} {p50:10.0f} {p99:10.0f} {fair:19.2f}", flush=True)
    results["locks"] = [{"contenders": count, "backoff_us": backoff, "reports": reports} for (count, backoff), reports in rows.items()]


def fan_out(host, served, arguments, results):
    rows = {count: [] for count in TARGETS}
    for _ in range(arguments.rounds):
        for count, reports in rows.items():
            turns = max(arguments.turns // count, 20)
            reports.append(load(host, "fan_out", turns, 64, *served[:3 + count]))
    print("\nfan_out: WRITEs of 64 bytes to so many endpoints, until all are answered")
    print("  targets     p50 us     p99 us     WRITEs/s")
    for count, reports in rows.items():
        p50, p99 = (statistics.median(report[key] for report in reports) for key in ("p50_us", "p99_us"))
        writes = statistics.median(report["rounds"] * count / report["seconds"] for report in reports)
        print(f"  {count:7} {p50:10.0f} {p99:10.0f} {writes:12.0f}", flush=True)
    results["fan_out"] = [{"targets": count, "reports": reports} for count, reports in rows.items()]


EXPERIMENTS = (locks, fan_out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of each run of locks")
    parser.add_argument("--backoff", type=int, default=50, help="first pause, in us, of locks with pauses")
    parser.add_argument("--turns", type=int, default=20000, help="WRITEs of each run of fan_out")
    parser.add_argument("--only", choices=[function.__name__ for function in EXPERIMENTS], help="one experiment")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    results = {}
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        server = hosts[1].start([hosts[1].program("endpoint_load"), "serve", str(TARGETS[-1])])
        served = server.expect(r"serving (\S.*)\n", 60).group(1).split()
        for experiment in EXPERIMENTS:
            if arguments.only in (None, experiment.__name__):
                experiment(hosts[0], served, arguments, results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
