#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of the channel_header fuzz target: every kind of channel packet, and damaged ones.

Run by hand after a change of the extension headers: tests/fuzz/wire/make_channel_corpus.py
"""
import pathlib
import struct

OUT = pathlib.Path(__file__).resolve().parents[3] / "tests/fuzz/corpus/channel_header"
FRAME, ACK, CONTROL, BUNDLE = 0, 1, 2, 3
FRAMES = ["void", "send", "write", "read_request", "read_response", "compare_swap", "fetch_add", "atomic_result", "reply"]
CONTROLS = ["open", "opened", "refused", "probe", "close", "closed", "reset"]


def frame(kind, flags=None, payload=100, own=b""):
    name = FRAMES[kind]
    if name == "void":
        return bytes([0x10, 0x10, 0xE1, 0xE2]) + bytes(28)
    data = name in ("send", "write", "read_response")
    if flags is None:
        flags = 0 if name == "reply" else 4
    offset, length = (4000, 4000 + payload) if data else (0, 1 << 20 if name == "read_request" else 0)
    syndrome = 0x62 if name == "reply" else 0
    receive = 7 if name == "send" or flags & (1 | 128) else 0
    base = struct.pack(">BBHIIIIIII", 0x10 | kind, flags, 0xE1E2, 0x01020304, 0x0A0B0C00 | syndrome, 0x1A1B1C00,
                       0x21222324, offset, length, receive)
    if name in ("write", "read_request", "compare_swap", "fetch_add"):
        own = struct.pack(">QII", 0x4142434445464748, 0x51525354, 0x01020304 if name == "write" and flags & 1 else 0)
        if name in ("compare_swap", "fetch_add"):
            own += struct.pack(">QQ", 0x6162636465666768, 0x7172737475767778 if name == "compare_swap" else 0)
    elif name == "atomic_result":
        own = bytes(range(0x81, 0x89))
    return base + own + (b"\xd5" * payload if data else b"")


def ack(words, claimed=None):
    head = struct.pack(">BBHIIIIHBB", 0x10, 0, 0xE1E2, 5000, 0x11001000, 1234, 0, words if claimed is None else claimed, 3, 0)
    return head + b"\x80\x00\x00\x01" * words


def control(kind, reason=None):
    name = CONTROLS[kind]
    set_up = name in ("open", "opened")
    if reason is None:
        reason = 4 if name in ("refused", "close", "reset") else 0
    peer = 0 if name == "open" else 0x21222324
    return struct.pack(">BBHIIIIIIIII", 0x10 | kind, 0, peer & 0xFFFF,
                       (0 if name == "refused" else 0x0A0B0C00) | reason, 0x11121314, peer,
                       0x3132336A if set_up else 0, 0x00100003 if set_up else 0, 0x41424344 if set_up else 0,
                       0x02010000 if set_up else 0, 0x51525354 if name == "probe" else 0, 0x61626364)


def tagged(plain):
    return plain[:1] + b"\x01" + plain[2:] + struct.pack(">QQ", 7, 0xA1A2A3A4A5A6A7A8)


def bundle(*entries):
    content = b""
    for psn, (opcode, body) in enumerate(entries, 1):
        content += struct.pack(">IHH", opcode << 24 | psn, 0, len(body)) + body + bytes(-len(body) % 4)
    return content


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()

    def put(name, what, data):
        (OUT / name).write_bytes(bytes([what]) + data)

    for kind, name in enumerate(FRAMES):
        put(f"frame_{name}", FRAME, frame(kind))
    put("frame_send_immediate", FRAME, frame(1, 4 | 1 | 2, own=b"\x01\x02\x03\x04"))
    put("frame_send_invalidate", FRAME, frame(1, 4 | 64, own=b"\x0a\x0b\x0c\x0d"))
    put("frame_write_immediate", FRAME, frame(2, 4 | 1))
    put("frame_write_ordered_relaxed", FRAME, frame(2, 4 | 8 | 16 | 32))
    put("frame_read_request_endpoint", FRAME, frame(3, 4 | 32 | 128))
    put("frame_compare_swap_endpoint", FRAME, frame(5, 4 | 32 | 128))
    for kind, name in enumerate(CONTROLS):
        put(f"control_{name}", CONTROL, control(kind))
        put(f"control_{name}_tagged", CONTROL, tagged(control(kind)))
    put("bad_sequence", CONTROL, tagged(control(0))[:40] + bytes(16))
    put("truncated_tag", CONTROL, tagged(control(1))[:52])
    for words in (0, 1, 128):
        put(f"ack_{words}", ACK, ack(words))
    send = frame(1)
    put("bad_version", FRAME, b"\x21" + send[1:])
    put("bad_kind", FRAME, b"\x19" + send[1:])
    put("bad_flags", FRAME, frame(1, 4 | 128))
    put("bad_both_words", FRAME, frame(1, 4 | 1 | 64, own=bytes(4)))
    put("bad_last", FRAME, frame(1, 0))
    put("bad_offset", FRAME, send[:20] + b"\xff" * 4 + send[24:])
    put("bad_reserved", FRAME, frame(3)[:44] + b"\x01" + frame(3)[45:])
    put("frame_attempt", FRAME, send[:15] + b"\x01" + send[16:])
    put("truncated_send", FRAME, frame(1, 4 | 1)[:33])
    put("truncated_atomic", FRAME, frame(5)[:60])
    pair = bundle((0xC0, frame(1)), (0xC0, frame(2)))
    put("bundle_two", BUNDLE, pair)
    put("bundle_many", BUNDLE, bundle(*[(0xC0, frame(8))] * 20, (0xC1, ack(1)), (0xC0, frame(1, payload=61))))
    put("bundle_of_one", BUNDLE, bundle((0xC0, frame(1))))
    put("bundle_cut", BUNDLE, pair[:-4])
    put("bundle_of_control", BUNDLE, bundle((0xC0, frame(1)), (0xC2, control(0))))
    put("bundle_reserved", BUNDLE, pair[:4] + b"\x01" + pair[5:])
    put("bundle_bad_frame", BUNDLE, bundle((0xC0, frame(1)[:33]), (0xC1, ack(1, 2))))
    put("bad_words", ACK, ack(1, 2))
    put("too_many_words", ACK, ack(129))
    put("bad_reason", CONTROL, control(0, 3))
    put("truncated_control", CONTROL, control(1)[:39])
    put("empty", FRAME, b"")


if __name__ == "__main__":
    main()
