# SPDX-License-Identifier: Apache-2.0
"""Steps of a proof, one after the other: each is a method whose docstring says what it shows."""

import sys
import time

from .job import LabError


def run_steps(proof, steps, state=None):
    """Prints a line for each step. Returns the exit status: the first step that fails ends the proof. state(): more to print then."""
    for step in steps:
        began = time.monotonic()
        try:
            told = step()
        except LabError as error:
            more = f"\n{state()}" if state else ""
            print(f"FAIL {proof}.{step.__name__}: {error}{more}", file=sys.stderr)
            return 1
        print(f"pass {proof}.{step.__name__} ({time.monotonic() - began:.1f} s) {step.__doc__} {told or ''}".rstrip(), flush=True)
    return 0


def last_words(*parts):
    """The end of what the daemons of hosts, agents and controllers said, for a proof that fails."""
    return "\n".join(f"last lines of {part.daemon.title}:\n{part.daemon.output[-3000:]}" for part in parts if part.daemon)
