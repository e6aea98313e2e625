#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Remote memory over two gateways, the donors on the other host: what RDMAbox's figures compare.

  batching   each request alone, merging, doorbell batch, both (figures 6 and 7, table I): requests per second, RDMA operations
  admission  windows of bytes in flight (figure 8)
  polling    adaptive, busy, event, event batch, hybrid (figures 2 and 9): requests per second, the poller's CPU time
  donors     1 to 8 donors
  window     faults of 4 KiB that the window's thread handles, and the faulting thread, beside a READ of 4 KiB (aim: 3 times)
  layers     a cache of keys and values, a layer of 16 blocks of 64 KiB at a time (BURST, 5.2): average and p99 of a layer's transfer,
             in a pool of the process, and in a shared one over endpoints and over queue pairs

Variants of an experiment take turns in each round, in an order that rotates; the tables show medians. Every byte that is read
is checked. The gate: merging alone, and with chaining, is not slower than single requests in any pattern: in requests per
second, and where there is one request at a time in the median latency. Each round gives a ratio to the single requests of the
same round; the gate is missed when the whole 99 % confidence interval of the median ratio (order statistics, no assumption
about the noise) is below 1. The exit status is 1 then. Needs root."""

import argparse
import json
import math
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.far.block_cases import run_layers  # noqa: E402
from verbs_cases.far.load_cases import far_donors, run_load  # noqa: E402
from verbs_cases.far.map_cases import run_window  # noqa: E402
from verbs_cases.far.shared_pool_cases import block_donors, run_members  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
CONFIDENCE = 0.99
LONGEST_FAULT = 3  # times a READ of 4 KiB: an aim
FEWEST_ROUNDS = 8  # for the interval: smallest and largest of 8 ratios enclose the median with 99.2 %
BATCHING = {"single": 0, "merge": 1, "doorbell": 2, "hybrid": 3}
POLLING = {"adaptive": 0, "busy": 1, "event": 2, "event batch": 3, "hybrid": 4}
PATTERNS = {"write": ["--reads", 0], "read": ["--reads", 100], "mixed": ["--reads", 50],
            "random": ["--reads", 50, "--random"], "lone": ["--reads", 50, "--depth", 1, "--threads", 1]}
# Copied or not by the same rule in every run: what is measured at start differs from run to run.
ALWAYS = ["--slab", 4 * MIB, "--size", 64 * MIB, "--copy-limit", MIB]


def rate(report):
    return report["requests"] / report["seconds"]


def compare(host, donors, variants, rounds):
    """variants: name to options of far_load. Name to its reports, a round each."""
    reports = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            reports[name].append(run_load(host, donors, *ALWAYS, *variants[name]))
    return reports


def median_interval(values):
    """The median, and the ends of its confidence interval: the k-th smallest and largest values, k as large as can be."""
    ordered, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2 ** count
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    rank = max(rank, 1)
    return statistics.median(ordered), ordered[rank - 1], ordered[-rank]


def table(title, reports, columns):
    print(f"\n{title}")
    print("  " + "".ljust(22) + "".join(name.rjust(15) for name in columns))
    for name, rows in reports.items():
        cells = [f"{statistics.median(value(row) for row in rows):.{digits}f}" for value, digits in columns.values()]
        print("  " + name.ljust(22) + "".join(cell.rjust(15) for cell in cells), flush=True)


def batching(host, donors, arguments, results):
    donors = donors[:2]
    missed = []
    columns = {"requests/s": (rate, 0), "MiB/s": (lambda r: r["bytes"] / r["seconds"] / MIB, 1),
               "RDMA operations": (lambda r: r["operations"], 0), "doorbells": (lambda r: r["doorbells"], 0),
               "p50 us": (lambda r: r["p50_us"], 0), "p99 us": (lambda r: r["p99_us"], 0)}
    for pattern, options in PATTERNS.items():
        requests = arguments.requests // 2 if pattern == "lone" else arguments.requests
        usual = ["--threads", 4, "--depth", 32, "--window", 256 * KIB, "--requests", requests, *options]
        reports = compare(host, donors, {name: [*usual, "--batching", bits] for name, bits in BATCHING.items()}, arguments.rounds)
        table(f"batching, {pattern}: {requests} requests of 4 KiB, window 256 KiB", reports, columns)
        results[f"batching {pattern}"] = reports
        for name in ("merge", "hybrid"):
            speed = (lambda r: 1 / r["p50_us"]) if pattern == "lone" else rate
            ratios = [speed(row) / speed(single) for row, single in zip(reports[name], reports["single"])]
            median, low, high = median_interval(ratios)
            text = f"{name} / single: {median:.2f}, between {low:.2f} and {high:.2f}"
            print(f"  {text}", flush=True)
            if high < 1:
                missed.append(f"{pattern}: {text}")
    return missed


def admission(host, donors, arguments, results):
    donors = donors[:2]
    usual = ["--threads", 8, "--depth", 64, "--requests", arguments.requests, "--reads", 50]
    windows = {"none": 0, "64 KiB": 64 * KIB, "256 KiB": 256 * KIB, "1 MiB": MIB, "4 MiB": 4 * MIB}
    reports = compare(host, donors, {name: [*usual, "--window", size] for name, size in windows.items()}, arguments.rounds)
    table("admission control: 8 threads, 64 requests each", reports,
          {"requests/s": (rate, 0), "peak KiB": (lambda r: r["peak_in_flight"] / KIB, 0),
           "RDMA operations": (lambda r: r["operations"], 0), "p50 us": (lambda r: r["p50_us"], 0),
           "p99 us": (lambda r: r["p99_us"], 0)})
    results["admission"] = reports


def polling(host, donors, arguments, results):
    donors = donors[:2]
    columns = {"requests/s": (rate, 0), "poller CPU s": (lambda r: r["poll_cpu_s"], 3), "wake-ups": (lambda r: r["wakeups"], 0),
               "p50 us": (lambda r: r["p50_us"], 0), "p99 us": (lambda r: r["p99_us"], 0)}
    for load, threads, depth in (("low", 1, 1), ("medium", 2, 8), ("high", 4, 32)):
        requests = arguments.requests // 2 if load == "low" else arguments.requests
        usual = ["--threads", threads, "--depth", depth, "--requests", requests, "--random"]
        reports = compare(host, donors, {name: [*usual, "--polling", mode] for name, mode in POLLING.items()}, arguments.rounds)
        table(f"polling, {load} load: {threads} threads, {depth} requests each", reports, columns)
        results[f"polling {load}"] = reports


def donor_counts(host, donors, arguments, results):
    usual = ["--threads", 4, "--depth", 32, "--requests", arguments.requests, "--random"]
    reports = {}
    for count in (1, 2, 4, 8):
        reports.update(compare(host, donors[:count], {f"{count} donors": [*usual, "--pollers", min(count, 2)]}, arguments.rounds))
    table("donors", reports, {"requests/s": (rate, 0), "MiB/s": (lambda r: r["bytes"] / r["seconds"] / MIB, 1),
                              "p50 us": (lambda r: r["p50_us"], 0), "p99 us": (lambda r: r["p99_us"], 0)})
    results["donors"] = reports


def window(host, donors, arguments, results):
    reports = {"window's thread": [], "faulting thread": []}
    for number in range(arguments.rounds):
        for name in sorted(reports, reverse=number % 2 == 1):
            options = ["--faulting-thread"] if name == "faulting thread" else []
            reports[name].append(run_window(host, donors[:2], "--size", 32 * MIB, "--resident", 4 * MIB, "--steps", 2000, *options))
    table("window: faults of random pages", reports, {
        "fault p50 us": (lambda r: r["fault_p50_us"], 1), "fault p99 us": (lambda r: r["fault_p99_us"], 1),
        "READ p50 us": (lambda r: r["read_p50_us"], 1), "fault / READ": (lambda r: r["fault_p50_us"] / r["read_p50_us"], 2),
        "scan MiB/s": (lambda r: r["scan_mib_per_s"], 1)})
    results["window"] = reports
    return [f"{name}: a fault takes more than {LONGEST_FAULT} times a READ" for name, rows in reports.items()
            if statistics.median(row["fault_p50_us"] / row["read_p50_us"] for row in rows) > LONGEST_FAULT]


def layers(host, donors, arguments, results):
    shape = ("--sequences", 2, "--passes", 8)
    reports = {"pool of the process": [], "shared, endpoints": [], "shared, queue pairs": []}
    with block_donors(donors[0].host, 2, 64) as (members, secret):
        for number in range(arguments.rounds):
            for name in sorted(reports, reverse=number % 2 == 1):
                if name == "pool of the process":
                    report = run_layers(host, donors[:2], "--slab", 4 * MIB, "--size", 32 * MIB, *shape)
                else:
                    report = run_members(host, members, secret, *shape, "--path", name.split(", ")[1].replace(" ", "-"))
                reports[name].append(report)
    table("layers of 1 MiB, one after the other", reports, {
        "average us": (lambda r: r["average_us"], 1), "p50 us": (lambda r: r["p50_us"], 1), "p99 us": (lambda r: r["p99_us"], 1),
        "MiB/s": (lambda r: r["mib_per_s"], 1)})
    results["layers"] = reports


EXPERIMENTS = (batching, admission, polling, donor_counts, window, layers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=9, help=f"at least {FEWEST_ROUNDS}")
    parser.add_argument("--only", choices=[function.__name__ for function in EXPERIMENTS], help="one experiment")
    parser.add_argument("--requests", type=int, default=20000, help="of each run")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds: at least {FEWEST_ROUNDS}")
    results, missed = {}, []
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        with far_donors(hosts[1], 8, mebibytes=64) as donors:
            for experiment in EXPERIMENTS:
                if arguments.only in (None, experiment.__name__):
                    missed += experiment(hosts[0], donors, arguments, results) or []
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
