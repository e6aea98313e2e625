#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of a storage initiator in the pattern of NVMe over Fabrics: a command of 64 bytes, a block of 4 KiB by RDMA WRITE or
READ, a response of 16 bytes. Over daemons (memory of the programs moved, and left where it is) and over gateways inside of the
programs, whose polling threads do the gateways' work, in alternating rounds with the same requests over kernel TCP. Both ends poll,
as SPDK's do; on two processors they compete with the daemons. Needs root."""

import argparse
import json
import os
import re
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402

FIGURES = re.compile(r"^requests (\d+) per_second (\d+) mean_us ([\d.]+) p50_us (\d+) p99_us (\d+) abandoned (\d+) wrong (\d+)",
                     re.MULTILINE)
TCP = "kernel TCP"
INSIDE = "inside, run in poll"
# Environment of the programs by way.
WAYS = {"daemons, moved": ["env", "ROCEGW_REMAP=always"], "daemons, not moved": ["env", "ROCEGW_REMAP=never"], INSIDE: [], TCP: []}
LOADS = [("read", 0), ("write", 100)]


def measure(pair, program, way, depth, writes, milliseconds):
    """(requests per second, p50, p99 in microseconds)"""
    words = [*WAYS[way], program]
    options = ["--port", str(pair[1].fresh_port()), "--depth", str(depth), *(["--tcp"] if way == TCP else [])]

    def start(host):
        return host.start_plain if way == TCP else host.start
    target = start(pair[1])([*words, "target", pair[1].address4, *options])
    try:
        target.expect("^listening", 30)
        initiator = start(pair[0])([*words, "initiator", pair[1].address4, *options, "--writes", str(writes),
                                    "--milliseconds", str(milliseconds)])
        if initiator.wait(30 + milliseconds / 1000) != 0:
            raise LabError(f"{way}: {initiator.output}")
    finally:
        target.stop()
    found = FIGURES.search(initiator.output)
    if not found or found.group(6) != "0":
        raise LabError(f"{way}: {initiator.output}")
    return int(found.group(2)), int(found.group(4)), int(found.group(5))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=int, default=2000, help="of each run")
    parser.add_argument("--depth", type=int, action="append", help="requests under way, default 1, 32 and 128")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    program = os.path.join(binaries, "storage_io")
    rows = []
    print(f"{'4 KiB':<8}{'depth':>6}  {'':<22}{'per s':>9}{'(spread)':>18}{'p50 us':>8}{'p99 us':>8}{'of TCP':>8}")
    with Lab() as lab:
        pair = gateway_pair(lab, binaries)
        for host in pair:
            host.start_gateway()
        alone = gateway_pair(lab, binaries, name="inside")
        for host in alone:
            host.bring_gateways_along(run_in_poll=True)
        for depth in arguments.depth or (1, 32, 128):
            for load, writes in LOADS:
                results = {way: [] for way in WAYS}
                for _ in range(arguments.rounds):
                    for way, found in results.items():
                        found.append(measure(alone if way == INSIDE else pair, program, way, depth, writes, arguments.milliseconds))
                tcp = statistics.median(rate for rate, _, _ in results[TCP])
                for way, found in results.items():
                    rates = [rate for rate, _, _ in found]
                    row = {"load": load, "depth": depth, "way": way, "per_second": statistics.median(rates), "least": min(rates),
                           "most": max(rates), "p50_us": statistics.median(p50 for _, p50, _ in found),
                           "p99_us": statistics.median(p99 for _, _, p99 in found)}
                    rows.append(row)
                    spread = f"{row['least']}-{row['most']}"
                    print(f"{load:<8}{depth:>6}  {way:<22}{row['per_second']:>9.0f}{spread:>18}{row['p50_us']:>8.0f}"
                          f"{row['p99_us']:>8.0f}{row['per_second'] / tcp:>8.2f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main()
