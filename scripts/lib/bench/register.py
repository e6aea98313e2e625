#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What registering memory costs a program by size, beside copying it and beside pinning its pages, and whether to copy or to
register for a message (RDMAbox, section 4); then a region of 64 GiB of which one page is used. Needs root."""

import argparse
import json
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

COLUMNS = ("memcpy", "pin", "register", "copy first", "register each")
FAR_GIB = 64


def size_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    program = os.path.join(binaries, "register_cost")
    rows = {"never": {}, "always": {}}
    with Lab() as lab:
        host = gateway_pair(lab, binaries)[0]
        host.start_gateway()
        for _ in range(arguments.rounds):
            for remap, sizes in rows.items():
                for line in host.run(["env", f"ROCEGW_REMAP={remap}", program], timeout=300).splitlines():
                    size, *figures = line.split()
                    sizes.setdefault(int(size), []).append([float(figure) for figure in figures])
        far = host.run([program, "far", str(FAR_GIB)])
        resident = host.memory_mib()["VmRSS"]
    for remap, sizes in rows.items():
        print(f"ROCEGW_REMAP={remap}: microseconds, median of {arguments.rounds} rounds")
        print(f"{'':>8}" + "".join(f"{column:>15}" for column in COLUMNS))
        for size, figures in sizes.items():
            sizes[size] = [statistics.median(column) for column in zip(*figures)]
            print(f"{size_of(size):>8}" + "".join(f"{figure:15.1f}" for figure in sizes[size]))
        better = [size for size, (*_, copied, registered) in sizes.items() if registered < copied]
        print(f"registering each message is quicker than copying it from {size_of(min(better))}" if better else
              "copying is quicker at every size")
    print(f"{far.strip()}; the gateway then has {resident:.0f} MiB resident")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"columns": COLUMNS, "rows": rows, "far": far}, file)


if __name__ == "__main__":
    main()
