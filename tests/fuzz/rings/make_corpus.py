#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of the ring fuzz target anew: well-formed requests of every kind, and a client that breaks each rule."""

import pathlib
import struct

OUT = pathlib.Path(__file__).resolve().parent.parent / "corpus" / "rings"
SQ_INDEX, SQ_MORE, RQ_INDEX, RQ_MORE, SQ_BYTES, RQ_BYTES, PAYLOAD, CQ, GOOD, TIME, POLL, RUN = range(12)


def step(what, how=0):
    return struct.pack("<BQ", what, how & (1 << 64) - 1)


def good(opcode, flags=2, length=100):
    return step(GOOD, opcode | flags << 8 | length << 16)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    every = b"".join(good(opcode) + step(RUN) for opcode in range(7))
    inline = good(0, 10, 64) + good(2, 0x102, 40) + step(RUN)
    cases = {
        "every_request": every,
        "inline": inline,
        "long": good(0, 2, 4000) + good(4, 2, 4000) + step(RUN) + step(POLL),
        "unsignaled": good(2, 0) * 6 + step(RUN) + step(POLL),
        "index_far": good(2) + step(SQ_INDEX, 1000000) + step(RUN),
        "index_back": good(2) * 3 + step(RUN) + step(SQ_INDEX, 1) + step(RUN) + every,
        "receive_index_far": step(RQ_INDEX, 0xFFFFFFFF) + step(RUN),
        "receives": step(RQ_MORE, 8) + step(RUN) + step(RQ_BYTES, 0xFF | 9 << 40) + step(RUN),
        "garbage_slots": step(SQ_BYTES, 0xFFFFFFFFFF | 8 << 40) + step(SQ_MORE, 5) + step(RUN),
        "consumer": good(2) * 5 + step(CQ, 0x8000000000000077) + step(RUN),
        "overrun": (good(2) * 6 + step(RUN)) * 4,
        "silence": good(0) + step(RUN) + step(TIME, 0xFFFFFFFF) * 8 + step(RUN),
        "payload_changes": good(2, 10, 64) + step(PAYLOAD, 0xABCDEF) + step(RUN),
    }
    for name, steps in cases.items():
        for kind, options in (("rc", 0), ("ud", 1), ("rc_in_ring", 2), ("ud_in_ring", 3)):
            (OUT / f"{name}_{kind}").write_bytes(bytes([options]) + steps)


if __name__ == "__main__":
    main()
