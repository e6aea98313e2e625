#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tries a release of rocegw on the cluster that KUBECONFIG names, prints a table of what passed, and removes all that it made.
Needs kubectl, helm, two nodes that may run privileged DaemonSets, an image of rocegw and one with rping and ib_write_bw."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import suite  # noqa: E402

if __name__ == "__main__":
    sys.exit(suite.main(sys.argv[1:]))
