# SPDX-License-Identifier: Apache-2.0
"""Huge pages of the machine."""

import contextlib
import fcntl

from .lab import LabError

_FOLDER = "/sys/kernel/mm/hugepages/hugepages-2048kB"


def _read(name):
    with open(f"{_FOLDER}/{name}", encoding="ascii") as file:
        return int(file.read())


def _reserve(total):
    with open(f"{_FOLDER}/nr_hugepages", "w", encoding="ascii") as file:
        file.write(str(total))


@contextlib.contextmanager
def free_huge_pages(count):
    """Meanwhile so many pages of 2 MiB are free, besides those in use. Other suites of the machine that want some wait."""
    with open(f"{_FOLDER}/nr_hugepages", encoding="ascii") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        before = _read("nr_hugepages")
        try:
            _reserve(before - _read("free_hugepages") + count)
            if _read("free_hugepages") != count:
                raise LabError(f"the machine has {_read('free_hugepages')} free huge pages instead of {count}")
            yield
        finally:
            _reserve(before)
