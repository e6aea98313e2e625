# SPDX-License-Identifier: Apache-2.0
"""The cases of a suite that failed at its first try. ctest gives a suite a second try (scripts/test), which shall not take as
long as the first one. The folder is $ROCEGW_FAILED_CASES; without it every try runs everything."""

import hashlib
import os
import sys


def _file():
    """Path of the list of this command line, None without the folder."""
    folder = os.environ.get("ROCEGW_FAILED_CASES")
    if not folder:
        return None
    return os.path.join(folder, hashlib.sha256("\0".join(sys.argv).encode()).hexdigest()[:16])


def remaining(cases):
    """Those that failed before, all of them if this is the first try or if it did not come to its end."""
    path = _file()
    if path is None or not os.path.exists(path):
        return cases
    with open(path, encoding="utf-8") as file:
        failed = file.read().split()
    os.unlink(path)
    print(f"only what failed before: {', '.join(failed)}", flush=True)
    return [case for case in cases if case.id in failed] or cases


def remember(failed):
    """failed: ids"""
    path = _file()
    if path is not None and failed:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(failed))
