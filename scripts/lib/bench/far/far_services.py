#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Remote memory under the loads of services, the donors on another host: what OpenURMA's section 8 does with a model.

  knee  an open loop: requests of 4 KiB begin at random moments, more and more per second, whether earlier ones are done or not;
        latencies count from the moment at which a request was due. The knee is the last rate at which all requests are served
        (90 % of what is offered) and the p99 is below ten times that of the lowest rate. With and without merging.
  ycsb  YCSB A, B and C (50, 95 and 100 % reads) of records of 1 KiB, drawn by Zipf's law with 0.99
  zipf  random reads and writes of 4 KiB, drawn uniformly and by Zipf's law

Variants take turns in each round; the tables show medians. Every byte that is read is checked. Needs root."""

import argparse
import json
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.far.load_cases import far_donors, run_load  # noqa: E402

MIB = 1 << 20
ALWAYS = ["--slab", 4 * MIB, "--fill"]
THETAS = (0, 0.6, 0.9, 0.99)
WORKLOADS = {"A": 50, "B": 95, "C": 100}
BATCHING = {"single": 0, "merge and doorbell": 3}
SERVED = 0.9  # random arrivals and the end of the slowest thread take some percent
KNEE = 10  # times the p99 at the lowest rate


def rate(report):
    return report["requests"] / report["seconds"]


def medians(reports):
    """Requests per second, p50 and p99."""
    return (statistics.median(map(rate, reports)), *(statistics.median(report[key] for report in reports) for key in ("p50_us", "p99_us")))


def rounds_of(host, donors, variants, rounds):
    """variants: name to options of far_load. Name to its reports, a round each."""
    reports = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            reports[name].append(run_load(host, donors, *ALWAYS, *variants[name]))
    return reports


def knee(host, donors, arguments, results):
    print("\nknee: an open loop, 4 threads, requests of 4 KiB, half of them reads, at random places")
    print("  batching                 offered/s     served/s     p50 us     p99 us")
    for name, bits in BATCHING.items():
        offered, lowest, last, rows = arguments.rate, None, 0, []
        while True:
            usual = ["--size", 32 * MIB, "--threads", 4, "--depth", 64, "--random", "--batching", bits, "--rate", offered,
                     "--requests", int(offered * arguments.seconds)]
            reports = [run_load(host, donors, *ALWAYS, *usual) for _ in range(arguments.rounds)]
            served, p50, p99 = medians(reports)
            rows.append({"offered": offered, "reports": reports})
            print(f"  {name:22} {offered:11} {served:12.0f} {p50:10.0f} {p99:10.0f}", flush=True)
            lowest = lowest or p99
            if served < SERVED * offered or p99 > KNEE * lowest:
                break
            last, offered = offered, offered * 3 // 2
        print(f"  {name}: the knee is at {last} requests/s", flush=True)
        results[f"knee {name}"] = {"knee": last, "rows": rows}


def print_loads(title, reports):
    print(f"\n{title}")
    print("  load                   requests/s     p50 us     p99 us")
    for name, rows in reports.items():
        served, p50, p99 = medians(rows)
        print(f"  {name:18} {served:14.0f} {p50:10.0f} {p99:10.0f}", flush=True)


def ycsb(host, donors, arguments, results):
    usual = ["--size", 32 * MIB, "--block", 1024, "--threads", 4, "--depth", 8, "--zipf", 0.99, "--requests", arguments.requests]
    variants = {name: [*usual, "--reads", reads] for name, reads in WORKLOADS.items()}
    results["ycsb"] = rounds_of(host, donors, variants, arguments.rounds)
    print_loads("ycsb: 32,768 records of 1 KiB, 4 threads with 8 requests each", results["ycsb"])


def zipf(host, donors, arguments, results):
    usual = ["--size", 32 * MIB, "--threads", 4, "--depth", 8, "--random", "--requests", arguments.requests]
    variants = {f"theta {theta}": [*usual, *(["--zipf", theta] if theta else [])] for theta in THETAS}
    results["zipf"] = rounds_of(host, donors, variants, arguments.rounds)
    print_loads("zipf: 8,192 blocks of 4 KiB, 4 threads with 8 requests each, half of them reads", results["zipf"])


EXPERIMENTS = (knee, ycsb, zipf)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20000, help="of each run of ycsb and zipf")
    parser.add_argument("--rate", type=int, default=4000, help="lowest rate of the knee, per second")
    parser.add_argument("--seconds", type=float, default=2, help="of each run of the knee")
    parser.add_argument("--only", choices=[function.__name__ for function in EXPERIMENTS], help="one experiment")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    results = {}
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        with far_donors(hosts[1], 2, mebibytes=64) as donors:
            for experiment in EXPERIMENTS:
                if arguments.only in (None, experiment.__name__):
                    experiment(hosts[0], donors, arguments, results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
