#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Long random runs, in pieces that are kept: what continuous integration does for seconds, until the aims are reached. Kinds:

  packets      packets of random simulated worlds, every byte checked                                    10^8
  queue_pairs  hosts of such worlds whose queue pairs go over to fresh ones, without a change of trace   10^6
  workers      hosts of such worlds whose workers go over to fresh ones, every request completed once    10^6
  frames       spoiled datagrams and messages of the connection manager at all decoders (sanitizers)     10^9
  descriptors  descriptors of a hostile program that changes them while they are read (sanitizers)       10^7

A piece is a row of tests/bench/results/soak_KIND_COMMIT.csv: which seeds it was, and what came of them. Started again on the same
commit a kind goes on behind its last row until its rows have the aim together; --minutes ends each kind earlier, and so does Ctrl-C,
at the cost of one piece. tests/bench/results/soak.md has the sums of all rows that are kept. With changes that are not committed the
rows go to build/bench instead.

A seed that fails ends the run with status 1; it is printed with the command that runs it again."""

import argparse
import glob
import json
import os
import subprocess
import sys
import time

from pieces import ROOT, SCRATCH, Pieces, read_rows

ASAN = os.path.join(ROOT, "build", "asan")
# Fuzz targets that take a datagram or a message, the corpus of each, and its part of the inputs.
FRAMES = {"wire": 4, "channel_header": 2, "port_frame": 3, "cm_mad": 1}
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
    "hand-overs": "hand_overs",
    "objects handed over": "objects",
    "cpu time": "cpu_s",
}


class Worlds:
    """Random worlds of the simulator. settings: of its scenario; until: the setting that says how much is wanted."""

    sanitized = False

    def __init__(self, column, until, **settings):
        self.column = column
        self.until = until
        self.settings = settings

    def piece(self, binaries, seed, amount):
        """(row, the command that repeats its last seed)"""
        figures = os.path.join(SCRATCH, "soak.figures")
        common = [word for setting in self.settings.items() for word in ("--set", "=".join(setting))]
        command = [os.path.join(binaries, "rocegw_sim"), "run", "oracle", *common, "--set", "seeds=1"]
        run = subprocess.run([*command, "--seed", str(seed), "--set", f"{self.until}={amount}", "--json", figures], check=False,
                             capture_output=True, text=True)
        if run.returncode not in (0, 1):
            sys.exit(f"soak: seeds from {seed} on: the simulator ended with {run.returncode}\n{run.stdout}{run.stderr}")
        with open(figures, encoding="utf-8") as file:
            found = json.load(file)
        row = {name: f"{found[figure]:.10g}" for figure, name in FIGURES.items()}
        # Seeds have more digits than that.
        row |= {FIGURES[seeds]: int(found[seeds]) for seeds in ("first seed", "last seed")}
        again = " ".join(["scripts/sim run oracle", *common, "--set seeds=1", f"--seed {row['last_seed']}"])
        return {**row, "failure": found["failure"]}, again


class Frames:
    """Inputs of several fuzz targets; each input has a seed, the same ones for each target."""

    sanitized = True
    column = "inputs"

    def piece(self, _, seed, amount):
        began = time.monotonic()
        unit = max(amount // sum(FRAMES.values()), 1)
        row = {"first_seed": seed, "last_seed": seed + unit * max(FRAMES.values()) - 1, "inputs": 0}
        failure, again = "", ""
        for target, part in FRAMES.items():
            command = [os.path.join(ASAN, "bin", f"fuzz_{target}"), "--inputs", str(unit * part), "--seed", str(seed),
                       os.path.join(ROOT, "tests", "fuzz", "corpus", target)]
            run = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
            row |= {target: unit * part, "inputs": row["inputs"] + unit * part}
            if run.returncode != 0 and not failure:
                failure = f"{target}: " + " ".join(run.stderr.split())[-1000:]
                again = " ".join(command)
        return {**row, "seconds": f"{time.monotonic() - began:.1f}", "failure": failure}, again


class Descriptors:
    """Descriptors of a hostile program; a piece has one seed."""

    sanitized = True
    column = "descriptors"

    def piece(self, _, seed, amount):
        began = time.monotonic()
        command = [os.path.join(ASAN, "bin", "fuzz_hostile"), "--racing", "--descriptors", str(amount), "--seed", str(seed)]
        run = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        failure = "" if run.returncode == 0 else " ".join((run.stdout + run.stderr).split())[-1000:]
        return {"first_seed": seed, "last_seed": seed, "descriptors": amount, "seconds": f"{time.monotonic() - began:.1f}",
                "failure": failure}, " ".join(command)


# Kind: (what runs it, aim, amount of a piece).
KINDS: dict[str, tuple[Worlds | Frames | Descriptors, float, float]] = {
    "packets": (Worlds("packets", "packets"), 1e8, 4e6),
    "queue_pairs": (Worlds("hand_overs", "least_hand_overs", hand_overs="queue_pairs"), 1e6, 2e4),
    "workers": (Worlds("hand_overs", "least_hand_overs", hand_overs="workers"), 1e6, 2e4),
    "frames": (Frames(), 1e9, 1e7),
    "descriptors": (Descriptors(), 1e7, 2e5),
}


def build_with_sanitizers():
    log = os.path.join(ROOT, "build", "bench-asan.log")
    targets = [f"fuzz_{name}" for name in (*FRAMES, "hostile")]
    print(f"soak: building with sanitizers (log: {os.path.relpath(log, ROOT)})", flush=True)
    with open(log, "w", encoding="utf-8") as file:
        for command in (["cmake", "--preset", "asan"], ["cmake", "--build", ASAN, "--target", *targets]):
            if subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                sys.exit(f"soak: the build failed; the whole log is {log}")


def soak(kind, options):
    """Runs pieces of a kind; False when a seed fails."""
    runner, aim, size = KINDS[kind]
    aim = options.amount or aim
    size = int(min(options.piece or size, aim))
    pieces = Pieces(f"soak_{kind}", "last_seed")
    done = sum(int(row[runner.column]) for row in pieces.rows)
    seed = pieces.next_seed(options.seed)
    end = time.monotonic() + options.minutes * 60 if options.minutes else None
    print(f"soak: {os.path.relpath(pieces.path, ROOT)}, {done:.3g} of {aim:.3g} so far, on from seed {seed}", flush=True)
    good = True
    while good and done < aim and (end is None or time.monotonic() < end):
        row, again = runner.piece(options.binaries, seed, int(min(size, aim - done)))
        pieces.append([{"when": time.strftime("%FT%TZ", time.gmtime()), **row}])
        done += int(row[runner.column])
        seed = int(row["last_seed"]) + 1
        print(f"soak: {kind}, seeds to {seed - 1}: {done:.4g}, {done / aim:.1%}", flush=True)
        if row["failure"]:
            print(f"soak: {row['failure']}\nsoak: again: {again}")
            good = False
    write_summary(os.path.dirname(pieces.path))
    return good


def summary(folder):
    """Lines of a table with the sums of each file of rows in the folder."""
    lines = ["| kind | commit | first and last day | seeds | done | of the aim | failures |", "|---|---|---|---|---|---|---|"]
    for kind, (runner, aim, _) in KINDS.items():
        for path in sorted(glob.glob(os.path.join(folder, f"soak_{kind}_*.csv"))):
            rows = read_rows(path)
            done = sum(int(row[runner.column]) for row in rows)
            commit = os.path.basename(path)[len(f"soak_{kind}_"):-len(".csv")]
            days = " to ".join(dict.fromkeys((rows[0]["when"][:10], rows[-1]["when"][:10])))
            lines.append(f"| {kind} | {commit} | {days} | {rows[0]['first_seed']} to {rows[-1]['last_seed']} | {done:,} | {done / aim:.1%} | "
                         f"{sum(bool(row['failure']) for row in rows)} |")
    return lines


def write_summary(folder):
    head = ["# Soak runs", "", "Sums of the rows that `scripts/bench soak` has kept here, by kind and commit. It writes this page.", ""]
    with open(os.path.join(folder, "soak.md"), "w", encoding="utf-8") as file:
        file.write("\n".join([*head, *summary(folder)]) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench soak --", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--amount", type=float, help="in all rows of this commit together, instead of the aim")
    parser.add_argument("--minutes", type=float, help="end each kind after so many")
    parser.add_argument("--piece", type=float, help="amount of a row")
    parser.add_argument("--seed", type=int, help="of the first row of a new file; otherwise drawn")
    options = parser.parse_args()
    kinds = options.kind or list(KINDS)
    if any(KINDS[kind][0].sanitized for kind in kinds):
        build_with_sanitizers()
    # Each kind runs, also when one before it has failed.
    results = [soak(kind, options) for kind in kinds]
    return 0 if all(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
