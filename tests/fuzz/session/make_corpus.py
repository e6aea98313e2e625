#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of the session fuzz target: what a correct library asks, step by step, and some of it wrong.

Run by hand after a change of the attach protocol: tests/fuzz/session/make_corpus.py
"""
import pathlib
import socket
import struct

OUT = pathlib.Path(__file__).resolve().parents[3] / "tests/fuzz/corpus/session_requests"
GREET, LATE_ANSWERS, RAW = 1, 2, 255
MAGIC = 0x57474352


def message(kind, body=b""):
    return struct.pack("<BH", kind, len(body)) + body


def address(text, port):
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    return struct.pack("<HHII16s", family, port, 0, 0, socket.inet_pton(family, text))


def attr(state, **values):
    v = dict(mtu=3, dest=0x123456, gid=socket.inet_pton(socket.AF_INET6, "::ffff:192.0.2.9"), port=1)
    v.update(values)
    av = v["gid"] + struct.pack("<IBBBB", 0, 0, 0, 64, 0)
    return (struct.pack("<8I", state, state, v["mtu"], 0, 5, 7, v["dest"], 7) + av +
            struct.pack("<H10BI", 0, 0, 1, 1, 12, v["port"], 14, 7, 7, 0, 0, 0))


def param(qpn, data=b"hello"):
    return struct.pack("<II8BII256s", qpn, 0, 2, 0, 1, 1, 0, 7, 7, len(data), 0, 0, data)


HELLO = message(1, struct.pack("<4I", MAGIC, 1, 0, 0))
QUERY = message(2, struct.pack("<II", 0, 0)) + message(3, struct.pack("<II", 0, 0))
OPEN = message(4, struct.pack("<II", 0, 0))
CLOSE = message(5, struct.pack("<II", 1, 0))
PD = message(6, struct.pack("<II", 1, 0))
MR = message(8, struct.pack("<IIQQQIIQ", 1, 7, 0x10000, 4096, 0x10000, 0, 0, 0))
CHANNEL = message(10, struct.pack("<II", 1, 0))
CQ = message(12, struct.pack("<4IQ", 1, 100, 1, 0, 9))
QP = message(14, struct.pack("<10IQ", 1, 1, 1, 2, 16, 16, 1, 1, 64, 0, 5))
UD = message(14, struct.pack("<10IQ", 1, 1, 1, 4, 300, 0, 16, 16, 1024, 1, 5))
INIT = message(15, struct.pack("<II", 1, 0x39) + attr(1))
RTR = message(15, struct.pack("<II", 1, 0x121181) + attr(2))
RTS = message(15, struct.pack("<II", 1, 0x12E01) + attr(3))
QUERY_QP = message(16, struct.pack("<II", 1, 0))
REGION = message(18, struct.pack("<QQ", 0x7F0000000000, 1 << 20))
MWS = message(35, struct.pack("<II", 1, 1)) + message(35, struct.pack("<II", 1, 2)) + message(35, struct.pack("<II", 1, 3))
XRCD = message(37, struct.pack("<IIII", 1, 1, 0, 0))
XRC_SRQ = message(25, struct.pack("<IIIIQII", 1, 8, 1, 0, 7, 1, 1))
XRC_QP = message(14, struct.pack("<10IQ8I", 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0))
XRC_SENDER = message(14, struct.pack("<10IQ8I", 1, 1, 1, 9, 8, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0))
OPENED_QP = message(39, struct.pack("<IIQ", 1, 1, 8))
REMAPPED_MR = message(8, struct.pack("<IIQQQIIQ", 1, 7, 0x7F0000001000, 4096, 0, 1, 0, 4096))
SETUP = OPEN + PD + CHANNEL + CQ + QP + MR
DESTROY = b"".join(message(kind, struct.pack("<II", 1, 0)) for kind in (17, 9, 13, 11, 7, 5))

CM_CHANNEL = message(64)
CM_ID = message(66, struct.pack("<IIQ", 1, 0x106, 3))
CM_BIND = message(68, struct.pack("<II", 1, 0) + address("192.0.2.1", 7000))
CM_LISTEN = message(71, struct.pack("<II", 1, 10))
CM_RESOLVE = message(69, struct.pack("<II", 2, 2000) + struct.pack("<28x") + address("192.0.2.1", 7000))
CM_ROUTE = message(70, struct.pack("<II", 2, 2000))
CM_CONNECT = message(72, struct.pack("<IIQ", 2, 0, 0) + param(0))
CM_REJECT = message(74, struct.pack("<IBB2x256s", 3, 0, 2, b"no"))
CM_OPTION = message(78, struct.pack("<4I64s", 1, 0, 0, 1, b"\x68"))
CM_PAIR = CM_CHANNEL + CM_ID + CM_BIND + CM_LISTEN + CM_ID + CM_RESOLVE + CM_ROUTE
CM_REST = b"".join(message(kind, struct.pack("<II", 2, 0)) for kind in (81, 75, 76, 67, 65))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()

    def put(name, options, data):
        (OUT / name).write_bytes(bytes([options]) + data)

    put("greeting", 0, HELLO + QUERY)
    put("greeting_twice", 0, HELLO + HELLO)
    put("greeting_other", 0, message(1, struct.pack("<4I", 7, 1, 0, 0)))
    put("greeting_major", 0, message(1, struct.pack("<4I", MAGIC, 9, 0, 0)))
    put("no_greeting", 0, OPEN)
    put("query", GREET, QUERY + message(2, struct.pack("<II", 7, 0)) + message(3, struct.pack("<II", 0, 1)))
    put("objects", GREET, SETUP + DESTROY)
    put("objects_late", GREET | LATE_ANSWERS, SETUP + DESTROY)
    put("busy", GREET, SETUP + b"".join(message(k, struct.pack("<II", 1, 0)) for k in (7, 13, 11)))
    put("close_context", GREET, SETUP + CLOSE + PD)
    put("states", GREET, SETUP + INIT + RTR + RTS + QUERY_QP)
    put("datagrams", GREET, OPEN + PD + CHANNEL + CQ + UD + QUERY_QP)
    put("remapped", GREET, OPEN + PD + REGION + REMAPPED_MR + message(19, struct.pack("<II", 1, 0)))
    put("windows", GREET, OPEN + PD + MWS + b"".join(message(k, struct.pack("<II", 1, 0)) for k in (7, 36, 36)) + CLOSE)
    put("xrc", GREET, OPEN + PD + CHANNEL + CQ + XRCD + XRCD + XRC_SRQ + XRC_QP + XRC_SENDER + OPENED_QP
        + b"".join(message(k, struct.pack("<II", 1, 0)) for k in (38, 28, 17, 38, 38)) + CLOSE)
    put("short_bodies", GREET, b"".join(message(kind) for kind in range(1, 82)))
    put("ones", GREET, OPEN + b"".join(message(kind, struct.pack("<II", 1, 1) * 40) for kind in range(5, 82)))
    put("all_bits", GREET, OPEN + b"".join(message(kind, b"\xff" * 400) for kind in range(5, 82)))
    put("connect", GREET, SETUP + CM_PAIR + CM_CONNECT + CM_REJECT + CM_REST)
    put("options", GREET, CM_CHANNEL + CM_ID + CM_OPTION + message(79, struct.pack("<II", 1, 1)) +
        message(80, struct.pack("<II", 1, 4)) + message(77, struct.pack("<II", 1, 1)))
    put("raw_short", GREET, message(RAW, b"\x04\x00"))
    put("raw_length", GREET, message(RAW, struct.pack("<IIQ", 4, 99, 1)))
    put("raw_long", GREET, message(RAW, struct.pack("<IIQ", 4, 5000, 1) + bytes(4984)))


if __name__ == "__main__":
    main()
