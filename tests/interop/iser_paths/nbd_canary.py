#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Canary workload of a disk that QEMU exports by NBD: writes blocks with a sequence number and a checksum, reads others back and
compares. STATUS begins with "intact" until a block is not as it was acknowledged, or an operation fails. SIGTERM: compares every
block once more, then ends.

  nbd_canary.py SOCKET EXPORT STATUS"""

import hashlib
import os
import random
import signal
import socket
import struct
import sys
import time

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


class Canary:
    def __init__(self, disk, status):
        self.disk = disk
        self.status = status
        self.journal = {}
        self.writes = self.reads = 0
        self.longest = 0.0

    def say(self, word, more=""):
        with open(self.status + ".new", "w", encoding="ascii") as file:
            file.write(f"{word}: {self.writes} writes, {self.reads} reads compared, longest {self.longest * 1000:.0f} ms{more}\n")
        os.replace(self.status + ".new", self.status)

    def timed(self, operation, *arguments):
        began = time.monotonic()
        result = operation(*arguments)
        self.longest = max(self.longest, time.monotonic() - began)
        return result

    def write(self, sequence):
        block = random.randrange(BLOCKS)
        self.timed(self.disk.write, block * SLOT, content(block, sequence))
        self.journal[block] = sequence
        self.writes += 1

    def compare(self, block):
        expected = content(block, self.journal[block])
        if self.timed(self.disk.read, block * SLOT, len(expected)) != expected:
            raise ValueError(f"block {block} is not as written with number {self.journal[block]}")
        self.reads += 1


def main():
    path, export, status = sys.argv[1:]
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    canary = Canary(Disk(path, export), status)
    sequence = 0
    try:
        while not ended:
            sequence += 1
            canary.write(sequence)
            canary.compare(random.choice(sorted(canary.journal)))
            if sequence % 32 == 1:
                canary.say("intact")
        for block in sorted(canary.journal):
            canary.compare(block)
        canary.say("intact")
    except (OSError, ValueError) as error:
        canary.say("broken", f", {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
