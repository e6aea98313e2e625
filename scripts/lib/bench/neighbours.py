#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Noisy neighbours as real programs: two pools of equal weight on a gateway with one worker, a program that behaves in one
and one that does its worst in the other; both talk to programs of another host. Its fair share is what it has beside a twin of itself. Programs, their copiers and
the gateway share the machine's cores by the kernel's rules, which the gateway has no part in: figures are reported, and the
gates are those of bench_noise, where nobody is in the way. A second table says who had the cores: seconds that each kind of
thread ran and waited for a core, per second. Needs root."""

import argparse
import json
import os
import statistics
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.neighbours import NOISES, POOLS, Program  # noqa: E402
from thread_times import processes_with, spent, threads_of  # noqa: E402

KINDS = ("worker", "copiers", "other threads", "victim", "noise")


def sample(pair, victim, noise):
    """Scheduler's times of all threads by their kind: those of both gateways and both ends of the programs."""
    times = {kind: {} for kind in KINDS}
    for host in pair:
        everything = threads_of(host.daemon.pid)
        times["worker"].update(threads_of(host.daemon.pid, "rocegw-worker"))
        times["copiers"].update(threads_of(host.daemon.pid, "rocegw-copier"))
        times["other threads"].update({task: value for task, value in everything.items()
                                       if task not in times["worker"] and task not in times["copiers"]})
    for kind, port in (("victim", victim), ("noise", noise)):
        for pid in processes_with(port) if port else ():
            times[kind].update(threads_of(pid))
    return times


def measure(host, other, kind, seconds, behaves="victim"):
    """Messages a second of a program of the kind `behaves` beside one of `kind` (None: alone), their 99th percentile in microseconds,
    and seconds run and waited by kind of thread."""
    noise = Program(host, other, "b", kind) if kind else None
    # It is at its worst when the victim begins.
    time.sleep(1)
    victim = Program(host, other, "a", behaves)
    ports = (victim.port, noise.port if noise else None)
    time.sleep(seconds / 4)
    before, began = sample((host, other), *ports), time.monotonic()
    time.sleep(seconds)
    after, lasted = sample((host, other), *ports), time.monotonic() - began
    times = {who: tuple(part / lasted for part in spent(before[who], after[who])) for who in KINDS}
    if noise and not noise.job.running:
        raise SystemExit(f"{kind} ended:\n{noise.job.output}\n{noise.server.output}")
    if victim.end(15) != 0:
        raise SystemExit(f"beside {kind} the program that behaves failed:\n{victim.job.output}")
    if noise:
        noise.end(9)
    for one in (host, other):
        one.expect_idle(20000)
    return (*victim.figures()[:2], times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--noise", action="append", choices=NOISES)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    noises = arguments.noise or NOISES
    figures = {name: [] for name in ("alone", "twin", *noises)}
    with Lab() as lab:
        pair = gateway_pair(lab, os.path.abspath(arguments.binaries), settings=POOLS)
        for host in pair:
            host.start_gateway()
        for _ in range(arguments.rounds):
            for name, rounds in figures.items():
                noise = {"alone": None, "twin": "victim"}.get(name, name)
                rounds.append(measure(pair[0], pair[1], noise, arguments.seconds))
    fair = statistics.median(rate for rate, *_ in figures["twin"])
    waits = statistics.median(p99 for _, p99, _ in figures["twin"])
    print(f"{os.cpu_count()} cores; victim: 4 queue pairs, 8 WRITEs of 4 KiB each under way, asleep in between; "
          f"{arguments.rounds} rounds, medians (all)")
    print(f"{'beside':20} {'messages/s':>10}  of fair share          p99 us  of the twin's")
    for name, rounds in figures.items():
        rates, tails, _ = zip(*rounds)
        every = " ".join(f"{rate / fair:.2f}" for rate in rates)
        print(f"{name:20} {statistics.median(rates):10.0f}  {statistics.median(rates) / fair:.2f} ({every}) "
              f"{statistics.median(tails):8.0f}  {statistics.median(tails) / waits:.2f}")

    def worker_rate(rounds):
        """Messages for each second that the workers ran."""
        return statistics.median(rate / times["worker"][0] for rate, _, times in rounds)

    print(f"\n{'run and waited':20} " + " ".join(f"{kind:>15}" for kind in KINDS) + "  of the twin's per worker second")
    for name, rounds in figures.items():
        columns = ((statistics.median(times[kind][part] for *_, times in rounds) for part in (0, 1)) for kind in KINDS)
        print(f"{name:20} " + " ".join(f"{run:7.2f} {wait:7.2f}" for run, wait in columns)
              + f"  {worker_rate(rounds) / worker_rate(figures['twin']):.2f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"figures": figures}, file)


if __name__ == "__main__":
    main()
