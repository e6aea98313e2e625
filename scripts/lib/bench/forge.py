#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""10^8 forged packets at queue pairs, channels, the connection manager and discovery, in pieces. A piece is one seed; its rows go to
tests/bench/results/forge_COMMIT.csv. Started again on the same commit it goes on behind the last seed until the rows have --packets
together; --minutes ends a run earlier. With changes that are not committed the rows go to build/bench instead.

At the end the sums of all pieces are printed; a person compares them. A row of a piece that does not agree with arithmetic ends the
run with status 1."""

import argparse
import os
import subprocess
import sys
import time

from pieces import ROOT, SCRATCH, Pieces, read_rows


def piece(binary, seed, count):
    out = os.path.join(SCRATCH, "forge.piece")
    if os.path.exists(out):
        os.unlink(out)
    run = subprocess.run(
        [binary, "--count", str(count), "--seed", str(seed), "--csv", out], check=False, capture_output=True, text=True
    )
    wrong = [line for line in run.stdout.splitlines() if "NOT AS EXPECTED" in line]
    if run.returncode != (1 if wrong else 0):
        sys.exit(f"forge: seed {seed}: bench_forge ended with {run.returncode}\n{run.stdout}{run.stderr}")
    return read_rows(out), wrong


def power(bits):
    if bits == "-1":
        return "-"
    return {"inf": "never", "0": "1"}.get(bits, f"2^{bits}")


def print_sums(rows):
    sums = {}
    for row in rows:
        name = (row["target"], row["packet"], row["knows"], power(row["bits"]), power(row["rnic"]), power(row["tcp"]))
        total = sums.setdefault(name, [0, 0, 0])
        for i, figure in enumerate(("sent", "changes", "answered")):
            total[i] += int(row[figure])
    print("| target | packet | the attacker knows | expected | RNIC | TCP | sent | changes | answered |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, total in sums.items():
        print(f"| {' | '.join(name)} | {' | '.join(f'{figure:,}' for figure in total)} |")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench forge --", description=__doc__)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--packets", type=float, default=1e8, help="in all rows of this commit together (1e8)")
    parser.add_argument("--minutes", type=float, help="end this run after so many")
    parser.add_argument("--count", type=float, default=2e5, help="packets of a row in one piece (2e5)")
    parser.add_argument("--seed", type=int, help="of the first piece of a new file; otherwise drawn")
    options = parser.parse_args()

    pieces = Pieces("forge", "seed")
    rows = list(pieces.rows)
    done = sum(int(row["sent"]) for row in rows)
    seed = pieces.next_seed(options.seed)
    end = time.monotonic() + options.minutes * 60 if options.minutes else None
    print(f"forge: {os.path.relpath(pieces.path, ROOT)}, {done:.3g} of {options.packets:.3g} packets so far, on from seed {seed}", flush=True)
    begin, cpu, now = time.monotonic(), 0.0, 0
    wrong = []
    while done < options.packets and (end is None or time.monotonic() < end):
        made, wrong = piece(os.path.join(options.binaries, "bench_forge"), seed, int(options.count))
        rows += made
        if wrong:  # not kept, so that another run does not go on behind it
            break
        pieces.append(made)
        sent = sum(int(row["sent"]) for row in made)
        done, now = done + sent, now + sent
        cpu += sum(float(row["seconds"]) for row in made)
        seed += 1
    print_sums(rows)
    if cpu:
        print(f"forge: {now / cpu / 1e6:.2f} million packets per second of processor time, {time.monotonic() - begin:.0f} s")
    for line in wrong:
        print(f"forge: seed {seed}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
