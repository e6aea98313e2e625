#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Isolation as a matrix: 12 attackers beside 6 kinds of programs that behave, two pools of equal weight on a gateway with one worker.
Each cell is the victim's share of its rate alone, and its 99th percentile divided by that alone; the first row is a neighbour that
behaves as the victim. The machine's cores are shared by the kernel's rules, which the gateway has no part in, so figures are
reported and not judged. Needs root."""

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


def medians(rounds):
    return tuple(statistics.median(column) for column in zip(*rounds))


def column(pair, victim, arguments):
    """Figures of one victim by the name of its neighbour."""
    figures = {name: [] for name in ("alone", "twin", *arguments.noise)}
    for _ in range(arguments.rounds):
        for name, rounds in figures.items():
            noise = {"alone": None, "twin": victim}.get(name, name)
            rounds.append(measure(pair[0], pair[1], noise, arguments.seconds, victim)[:2])
    return figures


def report(victim, figures):
    fair, waits = medians(figures["twin"])
    print(f"{victim}: medians (all)")
    print(f"{'beside':20} {'messages/s':>10}  of fair share          p99 us  of the twin's")
    for name, rounds in figures.items():
        rate, tail = medians(rounds)
        every = " ".join(f"{one / fair:.2f}" for one, _ in rounds)
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
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"figures": figures}, file)


if __name__ == "__main__":
    main()
