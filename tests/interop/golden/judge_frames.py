#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""judge_frames.py WRITE_FRAMES: runs it and has its frames judged by others.

tshark must dissect every frame without a malformed mark and read the values that write_frames put in. scapy must
compute the ICRC that an IPv4 frame carries; for IPv6, which scapy does not do, zlib's crc32 over the masked bytes must.
tshark 4.0 knows neither CNP (0x81) nor FLUSH (0x1C), ATOMIC WRITE (0x1D) and XRC (0xA0 and up): of those it must read the BTH. An XRC
request must be its RC twin with the XRCETH behind the BTH.
"""
import collections
import logging
import struct
import subprocess
import sys
import tempfile
import zlib

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.utils import rdpcap  # noqa: E402

# What tshark takes any payload for, by guessing; ours is counting bytes.
GUESSES = ["rpcordma", "smc", "smb_direct", "nvme-rdma", "lnet", "iser", "infiniband.eoib", "infiniband_sdp", "fcoib"]
XRC = {0xA0 + low for low in set(range(0x15)) | {0x16, 0x17}}
XRC_ANSWERS = set(range(0xAD, 0xB3))
UNKNOWN_TO_TSHARK = {0x1C, 0x1D, 0x81} | XRC

# Extended headers by operation, in order, as IBTA has them (RC and UC by their low five bits).
CONNECTED = {0x03: ["imm"], 0x05: ["imm"], 0x06: ["reth"], 0x09: ["imm"], 0x0A: ["reth"], 0x0B: ["reth", "imm"],
             0x0C: ["reth"], 0x0D: ["aeth"], 0x0F: ["aeth"], 0x10: ["aeth"], 0x11: ["aeth"],
             0x12: ["aeth", "atomicack"], 0x13: ["atomic"], 0x14: ["atomic"], 0x16: ["ieth"], 0x17: ["ieth"]}
SPECIAL = {0x64: ["deth"], 0x65: ["deth", "imm"]}
EVERY_OPCODE = (set(range(0x15)) | {0x16, 0x17, 0x1C, 0x1D} | set(range(0x20, 0x2C)) | {0x64, 0x65, 0x81}
                | XRC)

# Field of tshark: value that write_frames gives it, by opcode.
FIELDS = {
    "reth": {"infiniband.reth.va": 0x7F00112233440000, "infiniband.reth.r_key": 0x01020300,
             "infiniband.reth.dmalen": 0x00010000},
    "atomic": {"infiniband.reth.va": 0x7F00112233440000, "infiniband.reth.r_key": 0x01020300,
               "infiniband.atomiceth.swapdt": 0x1111111111111100, "infiniband.atomiceth.cmpdt": 0x2222222222222200},
    "atomicack": {"infiniband.atomicacketh.origremdt": 0x3333333333333300},
    "aeth": {"infiniband.aeth.msn": 0x444400},
    "deth": {"infiniband.deth.q_key": 0x55555500, "infiniband.deth.srcqp": 0x666600},
    "imm": {"infiniband.immdt": 0x77777700},
    "ieth": {"infiniband.ieth": 0x08080800},
}
BTH_FIELDS = {"infiniband.bth.destqp": 0x123400, "infiniband.bth.psn": 0xABC000}

faults = []


def fault(number, text):
    faults.append(f"frame {number}: {text}")


def headers_of(opcode):
    return SPECIAL[opcode] if opcode in SPECIAL else CONNECTED.get(opcode & 0x1F, [])


def opaque(text):
    """Bytes that tshark prints without 0x, and twice."""
    text = text.split(",")[0]
    return -1 if not text else int(text.replace(":", "").removeprefix("0x"), 16)


def tshark_rows(path):
    names = ["frame.number", "_ws.malformed", "_ws.expert.message", "infiniband.bth.opcode", "infiniband.bth.padcnt",
             "infiniband.bth.tver", "infiniband.bth.p_key", "infiniband.bth.a", "infiniband.bth.se",
             "infiniband.invariant.crc", "ip.checksum.status", *BTH_FIELDS]
    for group in FIELDS.values():
        names += [name for name in group if name not in names]
    command = ["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE",
               "-o", "udp.ignore_ipv6_zero_checksum:TRUE",
               "-T", "fields", "-E", "separator=/t"]
    for guess in GUESSES:
        command += ["--disable-protocol", guess]
    for name in names:
        command += ["-e", name]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [dict(zip(names, line.split("\t"))) for line in text.splitlines()]


def judge_by_tshark(path, packets):
    rows = tshark_rows(path)
    if len(rows) != len(packets):
        fault("-", f"tshark sees {len(rows)} frames of {len(packets)}")
    for row, packet in zip(rows, packets):
        number = row["frame.number"]
        opcode = packet[UDP].payload.opcode
        if row["_ws.malformed"]:
            fault(number, f"malformed for tshark (opcode {opcode:#x})")
        if row["_ws.expert.message"]:
            fault(number, f"tshark remarks: {row['_ws.expert.message']}")
        if IP in packet and row["ip.checksum.status"] not in ("1", "Good"):
            fault(number, "IP header checksum")
        if int(row["infiniband.bth.opcode"], 0) != opcode:
            fault(number, f"opcode {row['infiniband.bth.opcode']}, not {opcode:#x}")
        wanted = {name: base + opcode for name, base in BTH_FIELDS.items()}
        if opcode not in UNKNOWN_TO_TSHARK:
            for header in headers_of(opcode):
                wanted.update({name: base + opcode for name, base in FIELDS[header].items()})
            wanted["infiniband.invariant.crc"] = int.from_bytes(bytes(packet)[-4:], "big")
        for name, value in wanted.items():
            seen = row[name]
            if not seen:
                fault(number, f"opcode {opcode:#x}: tshark finds no {name}")
                continue
            read = opaque(seen) if name in ("infiniband.immdt", "infiniband.ieth") else int(seen, 0)
            if read != value:
                fault(number, f"opcode {opcode:#x}: {name} is {seen}, not {value:#x}")
        if row["infiniband.bth.tver"] not in ("0", "0x00") or int(row["infiniband.bth.p_key"], 0) != 0xFFFF:
            fault(number, "TVer or P_Key")


def judge_xrc(packets):
    """The bytes behind the BTH, and how much longer each frame is than that of RC with as much payload."""
    lengths = collections.defaultdict(list)
    for packet in packets:
        datagram = bytes(packet[UDP].payload)
        lengths[datagram[0]].append(len(datagram))
    for number, packet in enumerate(packets, 1):
        datagram = bytes(packet[UDP].payload)
        opcode = datagram[0]
        if opcode in XRC - XRC_ANSWERS and datagram[12:16] != struct.pack(">I", 0x999900 + opcode):
            fault(number, f"opcode {opcode:#x}: XRCETH {datagram[12:16].hex()}")
    for opcode in XRC:
        more = 0 if opcode in XRC_ANSWERS else 4
        if lengths[opcode] != [length + more for length in lengths[opcode - 0xA0]]:
            fault("-", f"opcode {opcode:#x}: lengths {lengths[opcode]}, of RC {lengths[opcode - 0xA0]}")


def icrc_of_ipv6(frame):
    covered = bytearray(frame[14:-4])
    covered[0] |= 0x0F
    covered[1:4] = b"\xff\xff\xff"
    covered[7] = 0xFF
    covered[46:48] = b"\xff\xff"
    covered[52] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(covered)))


def judge_by_scapy(packets):
    families = collections.Counter()
    for number, packet in enumerate(packets, 1):
        frame = bytes(packet)
        if IP in packet:
            families["IPv4"] += 1
            icrc = packet[BTH].compute_icrc(frame)
        else:
            families["IPv6"] += 1
            icrc = icrc_of_ipv6(frame)
        if icrc != frame[-4:]:
            fault(number, f"ICRC {frame[-4:].hex()}, scapy or zlib has {icrc.hex()}")
    return families


def main():
    with tempfile.TemporaryDirectory(prefix="rocegw-golden-") as folder:
        path = f"{folder}/frames.pcap"
        count = int(subprocess.run([sys.argv[1], path], check=True, capture_output=True, text=True).stdout)
        packets = list(rdpcap(path))
        if len(packets) != count:
            fault("-", f"{len(packets)} frames in the file, {count} written")
        missing = EVERY_OPCODE - {packet[UDP].payload.opcode for packet in packets}
        if missing:
            fault("-", f"no frame of opcodes {sorted(missing)}")
        judge_by_tshark(path, packets)
        judge_xrc(packets)
        families = judge_by_scapy(packets)
    for text in faults[:40]:
        print(text)
    print(f"{count} frames ({dict(families)}), {len(faults)} faults")
    return 1 if faults or min(families["IPv4"], families["IPv6"]) < len(EVERY_OPCODE) else 0


if __name__ == "__main__":
    sys.exit(main())
