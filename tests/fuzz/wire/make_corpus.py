#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of the wire fuzz target: one datagram of every opcode, the recorded frames, and damaged ones.

Run by hand after a change of the opcode table: tests/fuzz/wire/make_corpus.py
"""
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[3]
OUT = ROOT / "tests/fuzz/corpus/wire"
SEAL_V4, SEAL_V6, KNOWN_V4, PLAIN_V4 = 4, 5, 6, 0

# Extended header bytes and payload by opcode number, written down apart from the C++ table.
OPCODES = {0x00: (0, 256), 0x01: (0, 256), 0x02: (0, 5), 0x03: (4, 5), 0x04: (0, 13), 0x05: (4, 13),
           0x06: (16, 256), 0x07: (0, 256), 0x08: (0, 5), 0x09: (4, 5), 0x0A: (16, 8), 0x0B: (20, 8),
           0x0C: (16, 0), 0x0D: (4, 256), 0x0E: (0, 256), 0x0F: (4, 7), 0x10: (4, 0), 0x11: (4, 0),
           0x12: (12, 0), 0x13: (28, 0), 0x14: (28, 0), 0x16: (4, 3), 0x17: (4, 3), 0x1C: (20, 0),
           0x1D: (16, 8), 0x64: (8, 256), 0x65: (12, 1), 0x81: (16, 0)}
OPCODES.update({0x20 + op: OPCODES[op] for op in range(0x0C)})


def datagram(opcode, extended, payload):
    pad = -payload % 4
    bth = struct.pack(">BBHII", opcode, 0x40 | pad << 4, 0xFFFF, 0x11, 0x80ABCDEF)
    body = bytes(i * 7 + 1 & 0xFF for i in range(extended + payload))
    return bth + body + bytes(pad) + b"ICRC"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()

    def put(name, options, data):
        (OUT / name).write_bytes(bytes([options]) + data)

    for opcode, (extended, payload) in sorted(OPCODES.items()):
        options = (SEAL_V4, SEAL_V6, KNOWN_V4)[opcode % 3]
        put(f"opcode_{opcode:02x}", options, datagram(opcode, extended, payload))
    text = (ROOT / "tests/support/golden_frames.h").read_text()
    for name, body in re.findall(r'k(\w+)Frame\{\s*"\w+",([^}]*)\}', text):
        frame = bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', body)))
        v4 = frame[14] == 0x45
        put(f"golden_{name}", SEAL_V4 if v4 else SEAL_V6, frame[14 + (28 if v4 else 48):])
    send = datagram(0x04, 0, 13)
    put("unsealed", PLAIN_V4, send)
    put("empty", PLAIN_V4, b"")
    put("truncated", SEAL_V4, datagram(0x13, 12, 0))
    put("bad_version", SEAL_V4, send[:1] + b"\x73" + send[2:])
    put("unknown_opcode", SEAL_V4, b"\xcf" + send[1:])
    put("bad_pad", SEAL_V4, send[:-5] + send[-4:])
    put("bad_length", SEAL_V4, datagram(0x11, 4, 4))
    put("bad_pkey", SEAL_V4, send[:2] + b"\x12\x34" + send[4:])


if __name__ == "__main__":
    main()
