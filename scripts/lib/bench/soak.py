#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""10^8 packets of random simulated worlds with the oracle, in pieces. A piece is a row of tests/bench/results/soak_COMMIT.csv: which
seeds it was, and what came of them. Started again on the same commit it goes on behind the last row until the rows have --packets
together; --minutes ends a run earlier, and so does Ctrl-C, at the cost of one piece. With changes that are not committed the rows go
to build/bench instead, where nobody keeps them.

A world that fails ends the run with status 1; it is printed with the command that runs it again."""

import argparse
import json
import os
import subprocess
import sys
import time

from pieces import ROOT, SCRATCH, Pieces

# What the scenario calls its figures, and what they are in the file.
FIGURES = {
    "first seed": "first_seed",
    "last seed": "last_seed",
    "worlds": "worlds",
    "packets": "packets",
    "lost": "lost",
    "sent again": "sent_again",
    "channel frames": "channel_frames",
    "requests": "requests",
    "payload": "payload_gb",
    "virtual time": "virtual_s",
    "cpu time": "cpu_s",
}


def piece(binary, seed, packets):
    figures = os.path.join(SCRATCH, "soak.figures")
    command = [binary, "run", "oracle", "--seed", str(seed), "--set", "seeds=1", "--set", f"packets={packets}"]
    run = subprocess.run([*command, "--json", figures], check=False, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"soak: seeds from {seed} on: the simulator ended with {run.returncode}\n{run.stdout}{run.stderr}")
    with open(figures, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench soak --", description=__doc__)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--packets", type=float, default=1e8, help="in all rows of this commit together (1e8)")
    parser.add_argument("--minutes", type=float, help="end this run after so many")
    parser.add_argument("--piece", type=float, default=4e6, help="packets of a row (4e6)")
    parser.add_argument("--seed", type=int, help="of the first world of a new file; otherwise drawn")
    options = parser.parse_args()

    pieces = Pieces("soak", "last_seed")
    done = sum(int(row["packets"]) for row in pieces.rows)
    seed = pieces.next_seed(options.seed)
    end = time.monotonic() + options.minutes * 60 if options.minutes else None
    print(f"soak: {os.path.relpath(pieces.path, ROOT)}, {done:.3g} of {options.packets:.3g} packets so far, on from seed {seed}", flush=True)
    while done < options.packets and (end is None or time.monotonic() < end):
        figures = piece(os.path.join(options.binaries, "rocegw_sim"), seed, int(min(options.piece, options.packets - done)))
        row = {name: f"{figures[figure]:.10g}" for figure, name in FIGURES.items()}
        # Seeds have more digits than that.
        row |= {FIGURES[seeds]: int(figures[seeds]) for seeds in ("first seed", "last seed")}
        pieces.append([{"when": time.strftime("%FT%TZ", time.gmtime()), **row, "failure": figures["failure"]}])
        done += int(figures["packets"])
        seed = int(figures["last seed"]) + 1
        print(f"soak: seeds to {seed - 1}: {done:.4g} packets, {done / options.packets:.1%}", flush=True)
        if figures["failure"]:
            print(f"soak: {figures['failure']}\nsoak: again: scripts/sim run oracle --seed {seed - 1} --set seeds=1")
            return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
