#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of bench_instructions by callgrind and compares them with the recorded counts.

Exit status 0: no path needs over 2 % more instructions than recorded. A change that is wanted is accepted by
ROCEGW_UPDATE_GOLDEN=1, which writes the counts file; the reason belongs in the commit's message.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 1.02
# "Trigger" of a dump that the program asked for, and the sum of all costs in that dump.
TRIGGER = re.compile(r"^desc: Trigger: Client Request: (\S+) (\d+)$", re.MULTILINE)
TOTAL = re.compile(r"^(?:summary|totals): (\d+)$", re.MULTILINE)


def count(program: str) -> dict[str, float]:
    """Returns instructions per operation by path."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out", program]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"compare_counts: {' '.join(command)} exits with {run.returncode}:\n{run.stderr}")
        counts = {}
        for dump in sorted(pathlib.Path(folder).iterdir()):
            text = dump.read_text(encoding="utf-8")
            trigger, total = TRIGGER.search(text), TOTAL.search(text)
            if trigger is not None and total is not None:
                counts[trigger.group(1)] = int(total.group(1)) / int(trigger.group(2))
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--counts", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    counts = count(arguments.program)
    recorded: dict[str, float] = json.loads(arguments.counts.read_text(encoding="utf-8")) if arguments.counts.exists() else {}
    print(f"{'path':<28}{'recorded':>12}{'now':>12}{'ratio':>8}  instructions per operation")
    worse = []
    for path in sorted(counts.keys() | recorded.keys()):
        before, now = recorded.get(path), counts.get(path)
        if before is None or now is None:
            print(f"{path:<28}{'-' if before is None else f'{before:.0f}':>12}{'-' if now is None else f'{now:.0f}':>12}")
            worse.append(path)
            continue
        print(f"{path:<28}{before:>12.0f}{now:>12.0f}{now / before:>8.3f}")
        if now > LIMIT * before:
            worse.append(path)
    if os.environ.get("ROCEGW_UPDATE_GOLDEN"):
        rounded = {path: round(value, 1) for path, value in sorted(counts.items())}
        arguments.counts.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
        print(f"compare_counts: wrote {arguments.counts}")
        return 0
    if worse:
        print(f"compare_counts: FAILED: {', '.join(worse)}: over {LIMIT:.0%} of the recorded count, or on one side only.\n"
              "If the change is wanted: ROCEGW_UPDATE_GOLDEN=1 ctest --test-dir build/ci -R unit/instructions")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
