# SPDX-License-Identifier: Apache-2.0
"""Registered memory that few hosts can spare: huge pages, and messages of 2 GiB."""

from netlab.huge_pages import free_huge_pages

from .case import Case
from .check_cases import rdma_check


def _huge_pages(pair):
    ran = []
    with free_huge_pages(2):
        for connect in ("cm", "socket"):
            with pair.counted(at_least=2):
                ran += rdma_check(pair, True, connect, cases="large.huge_pages*,large.zero_based*")
    return f"{len(ran)} rdma_check cases"


def _longest(pair):
    with pair.counted(at_least=2):
        rdma_check(pair, True, "cm", cases="large.longest/client")
    return "3 messages of 2 GiB"


def memory_cases():
    return [Case("memory.huge_pages", 4200, _huge_pages), Case("memory.longest", 4200, _longest)]
