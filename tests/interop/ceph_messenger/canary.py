#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Canary workload: one writer that replaces objects of a pool and reads others back, each time with a sequence number and a
checksum. STATUS begins with "intact" until an object is not as it was acknowledged, or an operation fails. SIGTERM: compares
every object once more, then ends.

  canary.py CEPH.CONF POOL STATUS"""

import hashlib
import os
import random
import signal
import sys
import time

import rados

OBJECTS = 64
SIZES = (512, 4096, 65536, 262144)


def content(name, sequence):
    """The bytes of an object, which follow from its name and its sequence number."""
    generator = random.Random(f"{name} {sequence}")
    body = f"{name} {sequence} ".encode() + generator.randbytes(generator.choice(SIZES))
    return body + hashlib.sha256(body).digest()


class Canary:
    def __init__(self, pool, status):
        self.pool = pool
        self.status = status
        self.journal = {}  # object name to the sequence number that was acknowledged last
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
        name = f"canary-{random.randrange(OBJECTS)}"
        self.timed(self.pool.write_full, name, content(name, sequence))
        self.journal[name] = sequence
        self.writes += 1

    def compare(self, name):
        expected = content(name, self.journal[name])
        if self.timed(self.pool.read, name, len(expected) + 1) != expected:
            raise ValueError(f"{name} is not as written with number {self.journal[name]}")
        self.reads += 1


def main():
    conf, pool, status = sys.argv[1:]
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    with rados.Rados(conffile=conf, rados_id="admin") as cluster, cluster.open_ioctx(pool) as context:
        canary = Canary(context, status)
        sequence = 0
        try:
            while not ended:
                sequence += 1
                canary.write(sequence)
                canary.compare(random.choice(sorted(canary.journal)))
                canary.say("intact")
                time.sleep(0.02)
            for name in sorted(canary.journal):
                canary.compare(name)
            canary.say("intact")
        except (rados.Error, ValueError) as error:
            canary.say("broken", f", {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
