# SPDX-License-Identifier: Apache-2.0
"""Registered memory that few hosts can spare: huge pages, messages of 2 GiB, and memory of a GPU (a fake one)."""

import contextlib
import os

from netlab.huge_pages import free_huge_pages

from .case import Case, expect
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


@contextlib.contextmanager
def _fake_cuda(pair):
    """Gateways and programs find a fake libcuda.so.1 (tests/support/fake_cuda) meanwhile."""
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.path.join(pair.left.binaries, "..", "lib", "fake_cuda")
    try:
        for host in (pair.left, pair.right):
            host.stop_gateway()
            host.start_gateway()
        yield
    finally:
        if before is None:
            del os.environ["LD_LIBRARY_PATH"]
        else:
            os.environ["LD_LIBRARY_PATH"] = before
        for host in (pair.left, pair.right):
            host.stop_gateway()
            host.start_gateway()


def _on_device(pair, connect):
    """A process for each direction: a program loads CUDA before it uses verbs."""
    return [name for side in ("client", "server") for name in rdma_check(pair, True, connect, cases=f"large.device/{side}")]


def _device(pair):
    ran = []
    with _fake_cuda(pair):
        for connect in ("cm", "socket"):
            with pair.counted(at_least=2):
                ran += _on_device(pair, connect)
        moved = [host.counters()["rocegw_memory_device_bytes_total"] for host in (pair.left, pair.right)]
    expect(all(moved), f"bytes moved by copies of devices: {moved}")
    return f"{len(ran)} rdma_check cases"


def memory_cases():
    return [Case("memory.device", 4200, _device),
            Case("memory.huge_pages", 4200, _huge_pages), Case("memory.longest", 4200, _longest)]
