#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""1,000 take-overs of a gateway and 10,000 kills of the old process or the new one at random moments of take-overs, under verified
messages of every kind of queue pair, in pieces. A piece is a row of tests/bench/results/take_overs_COMMIT.csv: which seed it was, and
what came of it. Started again on the same commit it goes on behind the last row until the rows have --take-overs and --kills together;
--minutes ends a run earlier, and so does Ctrl-C, at the cost of one piece. With changes that are not committed the rows go to
build/bench instead. Fails when a message is lost, repeated or wrong, when a program ends, or when no gateway is left. Needs root."""

import argparse
import os
import sys
import time

from pieces import ROOT, Pieces

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import upgrade  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.take_over_kills import TakeOverKills  # noqa: E402


def piece(options, take_overs, kills, seed):
    """Row of one piece; its column `failure` is empty when all was right."""
    row = {"when": time.strftime("%FT%TZ", time.gmtime()), "seed": seed, "take_overs": 0, "kills": 0, "messages": 0, "p50_ms": "",
           "p99_ms": "", "longest_ms": "", "silence_ms": "", "outcomes": "", "failure": ""}
    pauses = []
    try:
        with Lab() as lab:
            bench = upgrade.Bench(lab, options)
            pauses = bench.pauses
            bench.start_programs()
            for _ in range(take_overs):
                bench.take_over()
                row["take_overs"] += 1
            messages, longest = bench.end_programs()
            row |= {"messages": messages, "silence_ms": f"{longest:.1f}"}
            killer = TakeOverKills(bench.left, bench.right, seed)
            for _ in range(kills):
                killer.one()
                row |= {"kills": row["kills"] + 1, "outcomes": killer.text().replace(",", ";")}
            row["messages"] += killer.end()["messages"]
    except (LabError, SystemExit) as error:
        row["failure"] = " ".join(str(error).split())[:2000]
    if pauses:
        row |= {name: f"{upgrade.percentile(pauses, share):.1f}"
                for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("longest_ms", 1))}
    return row


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench take_overs --", description=__doc__)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--take-overs", type=int, default=1000, help="in all rows of this commit together")
    parser.add_argument("--kills", type=int, default=10000, help="in all rows of this commit together")
    parser.add_argument("--minutes", type=float, help="end this run after so many")
    parser.add_argument("--piece", type=int, default=50, help="take-overs of a row, and ten times as many kills")
    parser.add_argument("--sessions", type=int, default=20, help="idle programs")
    parser.add_argument("--qps", type=int, default=200, help="queue pairs of the idle programs together; as many regions")
    parser.add_argument("--loaded", type=int, default=64, help="queue pairs with verified data")
    parser.add_argument("--kinds", default="rc,srq,ud,xrc", help="kinds of the loaded queue pairs")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--previous", help="bin folder of another build: take-overs go from one to the other and back")
    parser.add_argument("--seed", type=int, help="of the first piece of a new file; otherwise drawn")
    options = parser.parse_args()

    pieces = Pieces("take_overs", "seed")
    taken, killed = (sum(int(row[name]) for row in pieces.rows) for name in ("take_overs", "kills"))
    seed = pieces.next_seed(options.seed)
    end = time.monotonic() + options.minutes * 60 if options.minutes else None
    print(f"take_overs: {os.path.relpath(pieces.path, ROOT)}, {taken} take-overs and {killed} kills so far, on from seed {seed}", flush=True)
    while (taken < options.take_overs or killed < options.kills) and (end is None or time.monotonic() < end):
        row = piece(options, min(options.piece, max(options.take_overs - taken, 1)), min(10 * options.piece, options.kills - killed), seed)
        pieces.append([row])
        taken, killed, seed = taken + row["take_overs"], killed + row["kills"], seed + 1
        print(f"take_overs: {taken} take-overs, {killed} kills; pause p50 {row['p50_ms']} p99 {row['p99_ms']} longest {row['longest_ms']} ms; "
              f"{row['outcomes']}", flush=True)
        if row["failure"]:
            print(f"take_overs: seed {seed - 1}: {row['failure']}")
            return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
