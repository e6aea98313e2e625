# SPDX-License-Identifier: Apache-2.0
"""The wire format of examples/kv_store over TCP, written a second time: a client that does what ours would not."""

import struct

_HEADER = struct.Struct("<IBBBBIIQ")
_MAGIC = 0x3153564b


def checksum(data):
    """CRC32C."""
    total = 0xffffffff
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (0x82f63b78 if total & 1 else 0)
    return total ^ 0xffffffff


def request(connection, operation, key, value=b"", version=0):
    """Sends one request; returns outcome, version and value of the reply."""
    message = _HEADER.pack(_MAGIC, operation, 0, 0, 0, len(key), len(value), version) + key + value
    message += struct.pack("<I", checksum(message))
    connection.sendall(struct.pack(">I", len(message)) + message)
    stream = connection.makefile("rb")
    reply = stream.read(struct.unpack(">I", stream.read(4))[0])
    if struct.unpack("<I", reply[-4:])[0] != checksum(reply[:-4]):
        raise ValueError("a reply with another checksum")
    magic, _, outcome, _, _, key_bytes, _, version = _HEADER.unpack_from(reply)
    if magic != _MAGIC:
        raise ValueError("no reply")
    return outcome, version, reply[_HEADER.size + key_bytes:-4]
