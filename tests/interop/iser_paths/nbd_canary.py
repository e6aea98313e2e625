#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Canary workload of a disk that QEMU exports by NBD: writes blocks with a sequence number and a checksum, reads others back and
compares. STATUS begins with "intact" until a block is not as it was acknowledged, or an operation fails. SIGTERM: compares every
block once more, then ends.

  nbd_canary.py SOCKET EXPORT STATUS"""

import hashlib
import os
import random
import socket
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.canary import Canary  # noqa: E402

BLOCKS = 512
SIZES = (4096, 16384, 65536)
SLOT = max(SIZES)
READ, WRITE = 0, 1
MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
SECONDS = 60


class Disk:
    """The client's side of NBD, with the older of both ways to choose an export."""

    def __init__(self, path, export):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.socket.connect(path)
        if self._take(16) != b"NBDMAGICIHAVEOPT":
            raise OSError("no NBD server")
        self._take(2)
        name = export.encode()
        # Fixed new style without zeroes; option 1 names the export.
        self.socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, len(name)) + name)
        self._take(10)
        self.number = 0

    def _take(self, size):
        parts = []
        while size:
            part = self.socket.recv(size)
            if not part:
                raise OSError("the NBD server ended the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _request(self, kind, offset, size, data=b""):
        self.number += 1
        self.socket.sendall(struct.pack(">IHHQQI", MAGIC, 0, kind, self.number, offset, size) + data)
        magic, error, number = struct.unpack(">IIQ", self._take(16))
        if (magic, number) != (REPLY_MAGIC, self.number):
            raise OSError("another reply than the one of the request")
        if error:
            raise OSError(error, os.strerror(error))

    def write(self, offset, data):
        self._request(WRITE, offset, len(data), data)

    def read(self, offset, size):
        self._request(READ, offset, size)
        return self._take(size)


def content(block, sequence):
    generator = random.Random(f"{block} {sequence}")
    body = struct.pack(">QQ", block, sequence) + generator.randbytes(generator.choice(SIZES) - 48)
    return body + hashlib.sha256(body).digest()


def main():
    path, export, status = sys.argv[1:]
    disk = Disk(path, export)
    canary = Canary(status, range(BLOCKS), content, lambda block, body: disk.write(block * SLOT, body),
                    lambda block, length: disk.read(block * SLOT, length))
    return canary.run(OSError, every=32)


if __name__ == "__main__":
    sys.exit(main())
