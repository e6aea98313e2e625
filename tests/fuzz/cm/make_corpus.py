#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed inputs of the CM fuzz targets to tests/fuzz/corpus/cm_mad and cm_engine.

The MADs are put together here byte by byte, apart from the two recorded ones; the engine scripts are in the little
language that engine_fuzz.cc reads. Run it from anywhere after changing either."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[3]
CORPUS = TOP / "tests/fuzz/corpus"


def recorded(name):
    """The MAD of a recorded frame: behind Ethernet, IPv4, UDP, BTH and DETH, before the ICRC."""
    text = (TOP / "tests/support/golden_frames.h").read_text()
    body = re.search(name + r'\{\s*"\w+",\s*((?:"[0-9a-f]+"\s*)+)\}', text).group(1)
    frame = bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', body)))
    return frame[14 + 20 + 8 + 12 + 8:-4]


def mad(attribute, body):
    header = bytes([1, 7, 2, 3, 0, 0, 0, 0, *range(8), 0, attribute, 0, 0, 0, 0, 0, 1])
    return (header + body).ljust(256, b"\0")


def mads():
    ids = bytes.fromhex("2222222211111111")
    service = bytes([0, 0, 0, 0, 1, 0x11, 0x1C, 6])
    addresses = bytes([0, 0x40, 0x9C, 0x40]) + bytes(12) + bytes([192, 0, 2, 1]) + bytes(12) + bytes([192, 0, 2, 2])
    req = recorded("kCmRequestFrame")
    yield "req", req
    yield "rep", recorded("kCmReplyFrame")
    yield "mra", mad(0x11, ids + bytes([0x40, 0xC0]))
    yield "rej_consumer", mad(0x12, ids + bytes([0, 0, 0, 28]) + bytes(72) + b"no")
    yield "rej_timeout", mad(0x12, ids + bytes([0x80, 16, 0, 4]) + bytes(range(8)))
    yield "rtu", mad(0x14, ids)
    yield "dreq", mad(0x15, ids + bytes([0, 2, 0x22]))
    yield "drep", mad(0x16, ids)
    yield "sidr_req", mad(0x17, ids[:4] + b"\xff\xff\0\0" + service + addresses + b"hello")
    yield "sidr_rep", mad(0x18, ids[:4] + bytes([0, 0, 0, 0x15, 0, 0, 0x33, 0xB3]) + service + b"\x01\x23\x45\x67")
    yield "lap", mad(0x19, ids)
    yield "all_ones", mad(0x10, b"\xff" * 232)
    yield "vendor_class", req[:1] + b"\x30" + req[2:]
    yield "method_get", req[:3] + b"\x01" + req[4:]
    yield "short", req[:-1]
    yield "long", req + b"\0"
    yield "empty", b""


# Script language: see Script in engine_fuzz.cc.
SERVER, CLIENT, PASSIVE = 0, 1, 0x80
WILDCARD, LOCAL_1, LOCAL_2 = 4, 0, 2


def command(handle, number, *arguments, state=0):
    return bytes([5, 0, handle, number, *arguments, state])


def where(address, port=0, keep_port=1):
    return (address, port, keep_port)


def params(qpn, private_length=20):
    return (qpn, 4, 4, 7, 7, private_length)


def create(handle, udp=0, qp_type=0):
    return command(handle, 0, udp, qp_type)


def listen(udp=0, qp_type=0, backlog=3):
    bind = command(SERVER, 3, *where(WILDCARD))
    return create(SERVER, udp, qp_type) + bind + command(SERVER, 7, backlog)


def route(udp=0, qp_type=0):
    resolve = command(CLIENT, 4, 1, *where(WILDCARD), *where(LOCAL_2), 255)
    return create(CLIENT, udp, qp_type) + resolve + command(CLIENT, 5, 1, LOCAL_1, LOCAL_2) + command(CLIENT, 6)


def sent(index, damage=1):
    return bytes([3, index, damage])


def wait(sixteen_ms):
    return bytes([0, sixteen_ms])


DUE = bytes([1])
CONNECT = command(CLIENT, 8, *params(5))
ACCEPT = command(PASSIVE, 9, *params(6), state=2)
REJECT = command(PASSIVE, 10, 9)
ESTABLISH = command(CLIENT, 11, state=1)
FETCHED = command(PASSIVE, 15)


def disconnect(handle):
    return command(handle, 12)


def destroy(handle):
    return command(handle, 1)


def scripts():
    request = listen() + route() + CONNECT + sent(0) + FETCHED
    response = request + ACCEPT + sent(1)
    established = response + ESTABLISH + sent(2)
    yield "connect_disconnect", established + disconnect(CLIENT) + sent(3) + sent(4) + DUE + DUE + DUE
    yield "crossing_disconnects", established + disconnect(CLIENT) + disconnect(PASSIVE) + sent(3) + sent(4) + sent(5)
    yield "repetitions", established + sent(0) + sent(1) + sent(2) + disconnect(PASSIVE) + sent(3) + sent(3) + sent(0)
    yield "reject", request + REJECT + sent(0) + sent(1) + DUE
    yield "mra", listen() + route() + CONNECT + sent(0) + sent(0) + sent(1) + sent(1) + REJECT + DUE * 6
    yield "mra_of_rep", response + sent(1) + sent(2) + ESTABLISH + DUE * 6
    yield "withdraw_request", request + destroy(CLIENT) + sent(1) + sent(0) + ACCEPT + DUE
    yield "withdraw_reply", response + ESTABLISH + destroy(PASSIVE) + sent(3) + sent(2) + sent(0) + DUE * 3
    yield "reject_response", response + command(CLIENT, 10, 0) + sent(2) + sent(1)
    yield "comm_established", response + command(PASSIVE, 13) + command(CLIENT, 14) + command(PASSIVE, 14)
    yield "qp_failed", established + command(CLIENT, 14) + sent(3) + sent(4) + DUE
    yield "destroy_established", established + destroy(CLIENT) + destroy(SERVER) + DUE * 20
    yield "silence", listen() + route() + CONNECT + DUE * 40
    yield "rep_silence", request + ACCEPT + DUE * 40
    yield "backlog", listen(backlog=1) + route() + CONNECT + sent(0) + destroy(SERVER) + sent(1)
    yield "damaged", request + sent(0, 4) + sent(0, 0x24) + ACCEPT + sent(1, 0x44) + sent(1, 0x64) + wait(50)
    sidr = listen(1, 2) + route(1, 2) + command(CLIENT, 8, *params(0)) + sent(0)
    yield "sidr", sidr + sent(0) + ACCEPT + sent(1) + sent(0) + DUE
    yield "sidr_reject", sidr + REJECT + sent(1) + sent(0) + DUE
    yield "sidr_nobody", route(1, 2) + command(CLIENT, 8, *params(0)) + sent(0) + sent(1)
    yield "options", create(CLIENT) + b"".join(command(CLIENT, 2, name, 1) for name in range(4)) + DUE
    yield "resolve_timeout", create(CLIENT) + command(CLIENT, 4, 0, *where(LOCAL_1), *where(LOCAL_2), 9) + DUE
    yield "made_up", b"".join(bytes([2, kind, 3, 0, 12, *range(12)]) for kind in range(12))


def write(folder, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs:
        (folder / name).write_bytes(data)


write(CORPUS / "cm_mad", mads())
write(CORPUS / "cm_engine", scripts())
