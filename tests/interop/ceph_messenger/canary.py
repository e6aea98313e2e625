#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Canary workload: one writer that replaces objects of a pool and reads others back, each time with a sequence number and a
checksum. STATUS begins with "intact" until an object is not as it was acknowledged, or an operation fails. SIGTERM: compares
every object once more, then ends.

  canary.py CEPH.CONF POOL STATUS"""

import hashlib
import os
import random
import sys

import rados

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.canary import Canary  # noqa: E402

OBJECTS = 64
SIZES = (512, 4096, 65536, 262144)


def content(name, sequence):
    """The bytes of an object, which follow from its name and its sequence number."""
    generator = random.Random(f"{name} {sequence}")
    body = f"{name} {sequence} ".encode() + generator.randbytes(generator.choice(SIZES))
    return body + hashlib.sha256(body).digest()


def main():
    conf, pool, status = sys.argv[1:]
    with rados.Rados(conffile=conf, rados_id="admin") as cluster, cluster.open_ioctx(pool) as context:
        # One byte more than was written shows an object that is too long.
        canary = Canary(status, [f"canary-{n}" for n in range(OBJECTS)], content, context.write_full,
                        lambda name, length: context.read(name, length + 1))
        return canary.run(rados.Error, pause=0.02)


if __name__ == "__main__":
    sys.exit(main())
