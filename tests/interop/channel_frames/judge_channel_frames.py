#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""judge_channel_frames.py WRITE_CHANNEL_FRAMES DISSECTOR: has tshark read our channel packets with the shipped dissector.

Every sound packet must be dissected without a malformed mark and show the values that were put in; every damaged one must
be marked, without an error of the dissector; a native packet stays with tshark's own dissector. The ICRCs are checked with
zlib.
"""
import struct
import subprocess
import sys
import tempfile
import zlib

P = "rocegw."
FRAME = {"epoch": 0xE1E2, "version": 1}
NAMED = {**FRAME, "frame.tenant": 0x01020304, "frame.destination": 0x0A0B0C, "frame.source": 0x1A1B1C,
         "frame.message": 0x21222324}
KEYED = {"frame.address": 0x4142434445464748, "frame.rkey": 0x51525354}
FLAGS = ["immediate", "solicited", "last", "ordered", "ack_now", "relaxed", "invalidate", "endpoint"]


def frame(kind, flags, offset, length, payload, **more):
    wanted = {**(NAMED if kind else FRAME), "frame.kind": kind, "frame.flags": flags, "frame.offset": offset,
              "frame.length": length}
    for bit, name in enumerate(FLAGS):
        wanted[f"frame.flags.{name}"] = flags >> bit & 1
    wanted.update({f"frame.{name}": value for name, value in more.items()})
    if kind in (2, 3, 5, 6, 9, 10):
        wanted.update(KEYED)
    return 0xC0, wanted, payload


def ack(words):
    return 0xC1, {**FRAME, "ack.kind": 0, "ack.marked_bytes": 0x01020304, "ack.hint": 0x11, "ack.room": 0x212223,
                  "ack.held": 0x31323334, "ack.probe": 0x41424344, "ack.words": words, "ack.duplicates": 0x51}, 0


def control(kind, tagged=False, seals=False):
    reason = 4 if kind in (2, 4, 6) else 0
    wanted = {"version": 1, "control.kind": kind, "control.reason": reason, "control.epoch": 0x11121314,
              "control.channel": 0 if kind in (2, 7) else 0x0A0B0C, "control.peer_epoch": 0 if kind == 0 else 0x21222324,
              "epoch": 0 if kind == 0 else 0x2324, "control.instance": 0x61626364,
              "control.probe": 0x51525354 if kind == 3 else 0}
    set_up = {"initial_psn": 0x313233, "traffic_class": 0x6A, "window": 4096, "path": 3, "features": 0x41424344, "cc": 2,
              "checksum": 1}
    wanted.update({f"control.{name}": value if kind < 2 else 0 for name, value in set_up.items()})
    wanted["control.tagged"] = int(tagged)
    if tagged:
        wanted.update({"control.sequence": 0x7172737475767778, "control.tag": 0x8182838485868788})
    wanted["control.seals"] = int(seals)
    if seals:
        wanted["control.encrypts"] = 1
    return 0xC2, wanted, 0


def bundle():
    """SEND of 61 bytes, reply, acknowledgement; a field of several entries has their values in order."""
    return 0xC3, {"entry.opcode": [0xC0, 0xC0, 0xC1], "entry.psn": [0xFFFFFF, 0, 1], "entry.length": [97, 32, 28],
                  "frame.kind": [1, 8], "frame.message": [0x21222324] * 2, "ack.room": [0x212223]}, 61


def sealed(inner, pad, **more):
    """What is inside is dissected as if it had come alone."""
    return 0xC4, {"epoch": more.pop("epochs", 0xE1E2), "seal.opcode": inner, "seal.version": 1, "seal.pad": pad,
                  "seal.encrypted": 0, "seal.channel": 0x0A0B0C, "seal.key": 0x11121314,
                  "seal.sequence": 0x2122232425262728, **more}, 61


def encrypted():
    opcode, wanted, _ = sealed(0xC1, 0)
    return opcode, {**wanted, "seal.encrypted": 1}, 0


RECEIVE = 0x31323334
EXPECTED = [
    frame(0, 0x10, 0, 0, 0),
    frame(1, 0x04, 4000, 4100, 100, receive=RECEIVE),
    frame(1, 0x00, 0, 9000, 4096, receive=RECEIVE),
    frame(1, 0x07, 4000, 4061, 61, receive=RECEIVE, immediate=0x77777701),
    frame(1, 0x7C, 4000, 4003, 3, receive=RECEIVE, invalidate=0x08080801),
    frame(1, 0x04, 0, 0, 0, receive=RECEIVE),
    frame(2, 0x24, 4000, 4100, 100, immediate=0),
    frame(2, 0x00, 0, 9000, 4096, immediate=0),
    frame(2, 0x0F, 4000, 4002, 2, immediate=0x77777701, receive=RECEIVE),
    frame(3, 0x04, 0, 0x00100000, 0),
    frame(4, 0x04, 4000, 4001, 1),
    frame(4, 0x00, 0, 9000, 1024),
    frame(5, 0x0C, 0, 0, 0, swap_or_add=0x6162636465666768, compare=0x7172737475767778),
    frame(6, 0x04, 0, 0, 0, swap_or_add=0x6162636465666768, compare=0),
    frame(7, 0x14, 0, 0, 0, original=0x8182838485868788),
    frame(8, 0x10, 0, 0, 0, syndrome=0x62),
    frame(9, 0x0C, 0, 0x00100000, 0, feth=0x11),
    frame(10, 0x04, 0, 8, 8),
    frame(3, 0xA4, 0, 0x00100000, 0, receive=RECEIVE),
    frame(5, 0xA4, 0, 0, 0, receive=RECEIVE, swap_or_add=0x6162636465666768, compare=0x7172737475767778),
    frame(6, 0xA4, 0, 0, 0, receive=RECEIVE, swap_or_add=0x6162636465666768, compare=0),
    frame(11, 0x04, 0, 0, 0, operation=6, swap_or_add=0x6162636465666768, compare=0),
    ack(0), ack(1), ack(128),
    *[control(kind) for kind in range(8)],
    control(1, tagged=True),
    control(0, tagged=True, seals=True),
    bundle(),
    sealed(0xC0, 3, epochs=[0xE1E2] * 2, **{"frame.kind": 1, "frame.message": 0x21222324}),
    sealed(0xC3, 0, epochs=[0xE1E2] * 4, **{"frame.kind": [1, 8], "ack.words": 1, "entry.length": [97, 32, 28]}),
    encrypted(),
]

faults = []


def fault(number, text):
    faults.append(f"frame {number}: {text}")


def rows_of(path, dissector):
    names = ["frame.number", "_ws.malformed", "_ws.expert.message", "_ws.lua.error", "frame.protocols", P + "malformed",
             P + "opcode", P + "channel", P + "psn", P + "pkey", P + "pad", P + "icrc", P + "frame.payload", P + "ack.bitmap",
             "infiniband.bth.opcode"]
    for _, wanted, _ in EXPECTED:
        names += [P + name for name in wanted if P + name not in names]
    # RPC over RDMA is what tshark takes any native payload for, by guessing.
    command = ["tshark", "-n", "--disable-protocol", "rpcordma", "-X", f"lua_script:{dissector}", "-r", path, "-T", "fields", "-E", "separator=/t"]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    if "Lua" in done.stderr:
        fault("-", done.stderr.strip())
    return [dict(zip(names, line.split("\t"))) for line in done.stdout.splitlines()]


def datagrams(path):
    with open(path, "rb") as file:
        data = file.read()[24:]
    while data:
        length = struct.unpack_from("<I", data, 8)[0]
        yield data[16:16 + length]
        data = data[16 + length:]


def icrc_of(packet):
    covered = bytearray(packet[:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):
        covered[at] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(covered)))


def judge_sound(number, row, packet, opcode, wanted, payload):
    for mark in ("_ws.malformed", "_ws.expert.message", P + "malformed"):
        if row[mark]:
            fault(number, f"{mark}: {row[mark]}")
    wanted = {**wanted, "opcode": opcode, "channel": 0x123400 + number - 1, "psn": 0xABC000 + number - 1, "pkey": 0xFFFF,
              "pad": 0 if opcode in (0xC3, 0xC4) else -payload % 4, "icrc": int.from_bytes(packet[-4:], "big")}
    for name, value in wanted.items():
        seen = [int({"True": "1", "False": "0"}.get(one, one), 0) for one in row[P + name].split(",") if one]
        if seen != (value if isinstance(value, list) else [value]):
            fault(number, f"{name} is {row[P + name]!r}, not {value!r}")
    sent = bytes(i * 5 + 0xE1 & 0xFF for i in range(payload)).hex()
    if row[P + "frame.payload"].replace(":", "") != sent:
        fault(number, f"payload is {row[P + 'frame.payload'][:40]!r}")
    bitmap = [word for word in row[P + "ack.bitmap"].split(",") if word]
    if bitmap != ["0x80000001"] * (1 if opcode == 0xC3 else wanted.get("ack.words", 0)):
        fault(number, f"bitmap is {bitmap[:3]}")
    if icrc_of(packet) != packet[-4:]:
        fault(number, "ICRC is not what zlib has")


def main():
    with tempfile.TemporaryDirectory(prefix="rocegw-channel-") as folder:
        path = f"{folder}/frames.pcap"
        out = subprocess.run([sys.argv[1], path], check=True, capture_output=True, text=True).stdout
        sound, damaged = map(int, out.split())
        rows, packets = rows_of(path, sys.argv[2]), list(datagrams(path))
    if sound != len(EXPECTED) + 1 or len(rows) != sound + damaged or len(packets) != len(rows) or damaged == 0:
        fault("-", f"{len(rows)} rows, {len(packets)} packets, {sound} sound and {damaged} damaged ones written")
    for number, (row, packet) in enumerate(zip(rows, packets), 1):
        if row["_ws.lua.error"]:
            fault(number, row["_ws.lua.error"])
        if number < sound:
            judge_sound(number, row, packet, *EXPECTED[number - 1])
        elif number == sound:
            if row[P + "opcode"] or int(row["infiniband.bth.opcode"] or "-1", 0) != 4:
                fault(number, "the native packet is not read as one")
        elif not row[P + "malformed"] and not row["_ws.expert.message"]:
            fault(number, "a damaged packet is not marked")
    for text in faults[:40]:
        print(text)
    print(f"{len(rows)} packets, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
