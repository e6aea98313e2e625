#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The whole fleet as real processes: one controller, two hosts with an agent and a gateway each, everything asked for with
rocegwctl, unmodified programs between the hosts, each daemon killed in turn. Needs root.

  tests/e2e/fleet/run.py --binaries build/dev/bin
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from capture_steps import CaptureSteps  # noqa: E402
from diagnosis_steps import DiagnosisSteps  # noqa: E402
from key_steps import KeySteps  # noqa: E402
from loss_steps import LossSteps  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import last_words, run_steps  # noqa: E402
from tenant_steps import TenantSteps  # noqa: E402
from upgrade_steps import UpgradeSteps  # noqa: E402

STEPS = ("join", "pool", "quota", "explain", "doctor", "connectivity", "capture", "drain", "rate", "identity", "refused", "kill_controller", "kill_agent",
         "kill_gateway", "upgrade", "lost_store", "keys", "audit", "dump")


class Tour(TenantSteps, DiagnosisSteps, CaptureSteps, LossSteps, UpgradeSteps, KeySteps):
    """All steps, each a method whose docstring is its line of the report."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        tour = Tour(lab, os.path.abspath(arguments.binaries))
        return run_steps("fleet", [getattr(tour, step) for step in STEPS],
                         lambda: last_words(tour.controller, *tour.agents, *tour.hosts))


if __name__ == "__main__":
    sys.exit(main())
