#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attackers on a gateway, run one after the other as an unprivileged user or a stranger on the network, each beside a program of
another pool that behaves. Fails when the victim gets less than 0.9 of what it has beside a polite neighbour (alone, where the
attacker needs no processor; beside the same flood to a closed port, where it sends packets), when its 99th percentile or set-up time is more than doubled, when the attacked daemon takes more
memory than the attacker's pool is charged for, when its memory, descriptors and threads are not back 10 s after the attacker's
end, or when /livez does not answer within a second. Needs root."""

import argparse
import json
import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from hostile import table, trial  # noqa: E402
from hostile.catalogue import ATTACKS  # noqa: E402
from hostile.scene import Scene  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402


def _number(value):
    return "-" if value is None else f"{value:.2f}"


def _try(scene, attack, arguments, seconds):
    """The trial, after its line is printed. A short trial that misses is made once more, in full view."""
    for number in range(1, 3 if arguments.short else 2):
        try:
            one = trial.run(scene, attack, arguments.rounds, seconds, arguments.short)
        except LabError as error:
            one = trial.Trial(attack.name, problems=[str(error)[-600:]])
            scene.restart_target(attack)
        one.tries = number
        livez = f"{one.livez_failures}/{one.livez_asked}"
        print(f"{one.attack:34} {_number(one.share):>5} {_number(one.p99):>6} {_number(one.set_up):>6} {one.before:>12} "
              f"{one.after:>12} {one.growth_mib:>6.0f} {livez:>7}  {one.verdict}", flush=True)
        if not one.problems:
            break
    return one


def main():
    names = [attack.name for attack in ATTACKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--attack", action="append", choices=names, metavar="NAME", help="one of: " + ", ".join(names))
    parser.add_argument("--without", action="append", default=[], choices=names, metavar="NAME", help="leaves out this attacker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="of the victim in a round (3; short: 1)")
    parser.add_argument("--short", action="store_true", help="one round that judges correctness and recovery: for CI")
    parser.add_argument("--without-guard", action="store_true", help="without the egress guard on the gateways' hosts")
    parser.add_argument("--json")
    parser.add_argument("--document", help="page whose table of results is written anew (docs/benchmarks.md)")
    arguments = parser.parse_args()
    seconds = arguments.seconds or (1 if arguments.short else 3)
    chosen = [attack for attack in ATTACKS if attack.name in (arguments.attack or names) and attack.name not in arguments.without]
    trials = []
    print(f"{os.cpu_count()} cores; victim: 4 queue pairs, 8 WRITEs of 4 KiB each under way, {seconds} s; MiB/descriptors/threads")
    print(f"{'attacker':34} {'share':>5} {'p99':>6} {'set-up':>6} {'before':>12} {'after':>12} {'growth':>6} {'livez':>7}  verdict",
          flush=True)
    try:
        with Lab() as lab:
            scene = Scene(lab, os.path.abspath(arguments.binaries), not arguments.without_guard)
            for attack in chosen:
                trials.append(_try(scene, attack, arguments, seconds))
    except (LabError, OSError) as error:
        print(f"cannot run here: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"seconds": seconds, "short": arguments.short, "trials": [one.as_json() for one in trials]}, file, indent=1)
    if arguments.document:
        table.update(arguments.document, ATTACKS, trials)
    missed = [one.attack for one in trials if one.problems]
    print(f"{len(trials) - len(missed)} of {len(trials)} held" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
