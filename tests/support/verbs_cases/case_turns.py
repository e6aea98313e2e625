# SPDX-License-Identifier: Apache-2.0
"""Two command lines of a suite, for example with one worker over kernel sockets and with two over DPDK, that take turns: each
case runs in one of them, in the other one at the next turn. $ROCEGW_TURN is 0 or 1 (scripts/test --half makes it from the
commit); without it both run all cases."""

import os
import zlib

# What a case can need and both command lines have.
_EVERYWHERE = (None, "gateway", "channels")


def of_share(cases, share):
    """Cases of the share (0, 1, or None for a command line that takes no turns). What only one kind of host can run always does."""
    turn = os.environ.get("ROCEGW_TURN")
    if turn is None or share is None:
        return cases
    return [case for case in cases
            if case.needs not in _EVERYWHERE or (zlib.crc32(case.id.encode()) + share + int(turn)) % 2 == 0]
