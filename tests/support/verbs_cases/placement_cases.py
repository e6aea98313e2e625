# SPDX-License-Identifier: Apache-2.0
"""FLUSH and ATOMIC WRITE between two gateways: off by default, and there where both are configured so."""

import contextlib
import re

from .case import Case, CaseFailure, expect
from .check_cases import rdma_check

_CAPABILITY = 1 << 38 | 1 << 40  # IBV_DEVICE_FLUSH_GLOBAL, IBV_DEVICE_ATOMIC_WRITE


def _capability(host):
    text = host.run(["ibv_devinfo", "-v", "-d", host.device])
    flags = re.search(r"device_cap_flags_ex:\s+0x([0-9a-fA-F]+)", text)
    expect(flags, f"ibv_devinfo shows no device_cap_flags_ex:\n{text}")
    return int(flags.group(1), 16) & _CAPABILITY


def _enabled(pair, native):
    with contextlib.ExitStack() as changes:
        for host in (pair.left, pair.right):
            changes.enter_context(host.changed_config("gateways:", "memory_placement: enabled\ngateways:"))
            if native:
                changes.enter_context(host.changed_config("channels: enabled", "channels: disabled"))
            expect(_capability(host) == _CAPABILITY, f"{host.name} does not show that it has them")
        ran = []
        for connect in ("cm", "socket"):
            for left_is_active in (True, False):
                with pair.counted(at_least=2):
                    ran += rdma_check(pair, left_is_active, connect, cases="placement.*")
    return f"{len(ran)} rdma_check cases"


def _disabled(pair):
    for host in (pair.left, pair.right):
        expect(_capability(host) == 0, f"{host.name} shows a capability that it has not")
    try:
        rdma_check(pair, True, "socket", cases="placement.flush*")
    except CaseFailure as failure:
        expect("Operation not supported" in str(failure), f"refused otherwise: {failure}")
        return "refused"
    raise CaseFailure("a queue pair with FLUSH was made")


def placement_cases():
    return [Case("placement.channel", 1500, lambda pair: _enabled(pair, native=False), "channels"),
            Case("placement.native", 1500, lambda pair: _enabled(pair, native=True)),
            Case("placement.disabled", 1500, _disabled)]
