# SPDX-License-Identifier: Apache-2.0
"""Addresses that do not answer: rdma_resolve_addr ends with the time that the program gave it, as on Linux. rping gives it two
seconds."""

import contextlib
import re
import time

from netlab.job import run

from .case import Case, expect

_BEYOND = "192.0.2.9"  # not on the link
_ABSENT = ("10.77.0.99", "fd77::99")
# Far above the two seconds, also on a busy machine, and far below the minute that a connection request is repeated.
_MOST_SECONDS = 20


def _rping(pair, address):
    return pair.left.start(["rping", "-c", "-d", "-v", "-C", "2", "-a", address])


def _expect_timed_out(pair, address):
    began = time.monotonic()
    job = _rping(pair, address)
    status = job.wait(90)
    seconds = time.monotonic() - began
    expect(status != 0, f"rping reached {address}, which nobody has:\n{job.output}")
    expect(re.search(r"RDMA_CM_EVENT_ADDR_ERROR, error -110\b", job.output), f"no ADDR_ERROR with -ETIMEDOUT:\n{job.output}")
    expect(seconds < _MOST_SECONDS, f"rping waited {seconds:.1f} s for {address}")
    return seconds


@contextlib.contextmanager
def _routed_by(pair, router):
    words = ["route", "replace", f"{_BEYOND}/32", "via", router]
    run(["ip", *words], namespace=pair.left.namespace)
    try:
        yield
    finally:
        run(["ip", "route", "delete", f"{_BEYOND}/32"], namespace=pair.left.namespace)


def _absent(pair):
    """No host has the address."""
    seconds = [_expect_timed_out(pair, address) for address in _ABSENT]
    return ", ".join(f"{one:.1f} s" for one in seconds)


def _absent_router(pair):
    """The router to the address does not answer; through one that does, the address resolves."""
    with _routed_by(pair, _ABSENT[0]):
        _expect_timed_out(pair, _BEYOND)
    with _routed_by(pair, pair.right.address4):
        job = _rping(pair, _BEYOND)
        try:
            job.expect(r"RDMA_CM_EVENT_ROUTE_RESOLVED", 20)
        finally:
            job.signal(9)
            job.wait(10)
    return "behind an absent router, and behind one that is there"


def _late(pair):
    """The host comes up while the program waits."""
    late = "10.77.0.98"
    job = _rping(pair, late)
    time.sleep(0.3)
    run(["ip", "address", "add", f"{late}/24", "dev", pair.right.interface], namespace=pair.right.namespace)
    try:
        job.expect(r"RDMA_CM_EVENT_ROUTE_RESOLVED", 20)
    finally:
        job.signal(9)
        job.wait(10)
        run(["ip", "address", "delete", f"{late}/24", "dev", pair.right.interface], namespace=pair.right.namespace)
    return "resolved as soon as the host answered"


def address_cases():
    return [Case(f"address.{name}", 4200, run_case, "gateway")
            for name, run_case in (("absent", _absent), ("absent_router", _absent_router), ("late", _late))]
