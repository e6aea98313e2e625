# SPDX-License-Identifier: Apache-2.0
"""Results of a benchmark that runs in pieces, each with seeds of its own: rows of tests/bench/results/NAME_COMMIT.csv. Started again on
the same commit it goes on behind the last seed. With changes that are not committed the rows go to build/bench, where nobody keeps
them."""

import csv
import os
import secrets
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
RESULTS = "tests/bench/results"
SCRATCH = os.path.join(ROOT, "build", "bench")


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


class Pieces:
    """name: of the benchmark; last_seed: the column with the last seed of a row."""

    def __init__(self, name, last_seed):
        self.name = name
        os.makedirs(SCRATCH, exist_ok=True)
        commit = _git("rev-parse", "--short=12", "HEAD")
        if _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{RESULTS}"):
            self.path = os.path.join(SCRATCH, f"{name}_{commit}-dirty.csv")
        else:
            self.path = os.path.join(ROOT, RESULTS, f"{name}_{commit}.csv")
        self.rows = read_rows(self.path)
        self._last_seed = last_seed

    def next_seed(self, asked):
        """Seed behind the last row; of a new file the one that was asked for, or one that is drawn."""
        if not self.rows:
            return secrets.randbelow(1 << 40) if asked is None else asked
        seed = int(self.rows[-1][self._last_seed]) + 1
        if asked is not None:
            sys.exit(f"{self.name}: {self.path} has seeds already, and goes on with {seed}")
        return seed

    def append(self, rows):
        new = not os.path.exists(self.path)
        with open(self.path, "a", encoding="ascii", errors="replace", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)
        self.rows += rows


def read_rows(path):
    """Rows of a file of comma-separated values with a header; none if there is no file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))
