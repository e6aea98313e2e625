#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Isolation as a matrix: 12 attackers beside 6 kinds of programs that behave, two pools of equal weight on a gateway with one worker.
Each cell is the victim's share of its rate alone, and its 99th percentile divided by that alone; the first row is a neighbour that
behaves as the victim. The machine's cores are shared by the kernel's rules, which the gateway has no part in, so figures are
reported and not judged. A last table has the weak cells: those with less than 0.9 of the rate beside the twin, or more than twice its
99th percentile. For each it says how long the workers ran and waited for a core, and what the victim got in a second that they ran:
what it lacks there the gateway gave to the attacker; the rest the machine's scheduler did. Needs root."""

import argparse
import json
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.neighbours import ATTACKERS, POOLS, VICTIMS  # noqa: E402
from neighbours import measure  # noqa: E402


WEAK_SHARE = 0.9
WEAK_TAIL = 2


def medians(rounds):
    """Of rate and 99th percentile."""
    return tuple(statistics.median(one[part] for one in rounds) for part in (0, 1))


def of_workers(rounds):
    """Medians: seconds that the workers ran, and waited for a core, per second; messages of the victim per second that they ran."""
    return (statistics.median(times["worker"][0] for *_, times in rounds), statistics.median(times["worker"][1] for *_, times in rounds),
            statistics.median(rate / max(times["worker"][0], 1e-6) for rate, _, times in rounds))


def column(pair, victim, arguments):
    """Figures of one victim by the name of its neighbour."""
    figures = {name: [] for name in ("alone", "twin", *arguments.noise)}
    for _ in range(arguments.rounds):
        for name, rounds in figures.items():
            noise = {"alone": None, "twin": victim}.get(name, name)
            rounds.append(measure(pair[0], pair[1], noise, arguments.seconds, victim))
    return figures


def report(victim, figures):
    fair, waits = medians(figures["twin"])
    print(f"{victim}: medians (all)")
    print(f"{'beside':20} {'messages/s':>10}  of fair share          p99 us  of the twin's")
    for name, rounds in figures.items():
        rate, tail = medians(rounds)
        every = " ".join(f"{one / fair:.2f}" for one, *_ in rounds)
        print(f"{name:20} {rate:10.0f}  {rate / fair:.2f} ({every}) {tail:8.0f}  {tail / waits:.2f}")


def report_matrix(figures):
    """Cells: share of the rate alone, and times the 99th percentile alone; the first row is a neighbour that behaves as the victim."""
    names = list(next(iter(figures.values())))[1:]
    width = max(map(len, figures)) + 1
    print("share of the rate alone / times the 99th percentile alone\n" + " " * 20 + "".join(f"{victim:>{width}}" for victim in figures))
    for name in names:
        cells = []
        for of_victim in figures.values():
            rate, tail = medians(of_victim["alone"])
            beside, waits = medians(of_victim[name])
            cells.append(f"{beside / rate:.2f}/{waits / tail:.1f}")
        print(f"{name:20}" + "".join(f"{cell:>{width}}" for cell in cells), flush=True)


def weak_cells(figures):
    """(victim, attacker, share of the twin's rate, times its 99th percentile, run, waited, share per second of the workers)"""
    for victim, of_victim in figures.items():
        fair, waits = medians(of_victim["twin"])
        per_second = of_workers(of_victim["twin"])[2]
        for name, rounds in of_victim.items():
            rate, tail = medians(rounds)
            if name in ("alone", "twin") or (rate >= WEAK_SHARE * fair and tail <= WEAK_TAIL * waits):
                continue
            ran, waited, of_second = of_workers(rounds)
            yield victim, name, rate / fair, tail / waits, ran, waited, of_second / per_second


def report_weak(figures):
    print(f"\n{'weak cells':18} {'beside':20} of the twin's rate  its p99  workers ran  waited  rate per second that they ran")
    for victim, of_victim in figures.items():
        ran, waited, _ = of_workers(of_victim["twin"])
        print(f"{victim:18} {'its twin':20} {1:18.2f} {1:8.1f} {ran:12.2f} {waited:7.2f} {1:30.2f}")
        for _, name, share, tail, ran, waited, of_second in weak_cells({victim: of_victim}):
            cause = "cores" if of_second >= WEAK_SHARE else "gateway"
            print(f"{'':18} {name:20} {share:18.2f} {tail:8.1f} {ran:12.2f} {waited:7.2f} {of_second:30.2f}  {cause}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--noise", action="append", choices=ATTACKERS)
    parser.add_argument("--victim", action="append", choices=VICTIMS, help="a program that behaves")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.noise = arguments.noise or ATTACKERS
    victims = arguments.victim or VICTIMS
    print(f"{os.cpu_count()} cores; victims sleep between their requests; {arguments.rounds} rounds of {arguments.seconds:g} s")
    figures = {}
    with Lab() as lab:
        pair = gateway_pair(lab, os.path.abspath(arguments.binaries), settings=POOLS)
        for host in pair:
            host.start_gateway()
        for victim in victims:
            figures[victim] = column(pair, victim, arguments)
            report(victim, figures[victim])
    report_matrix(figures)
    report_weak(figures)
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"figures": figures}, file)


if __name__ == "__main__":
    main()
