#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of a program and its gateway for making and destroying many objects of one kind, and for twice as many: a ratio
of two is linear. Objects are destroyed oldest first, newest first and in random order. Fails when a ratio is above 2.5 in each of
some tries. Needs root."""

import argparse
import json
import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

LIMIT = 2.5
# CPU seconds below which a ratio is not judged: the daemon's are counted in ticks of 10 ms.
SHORT_S = 0.1
# Number of objects, and the environment of the program. Moved regions are shown and not judged: to move one, the library
# reads the process's mappings, one of which each other moved region is; without ROCEGW_REMAP=always it stops at a bound.
KINDS: dict[str, tuple[int, dict[str, str]]] = {
    "regions": (32768, {"ROCEGW_REMAP": "never"}),
    "moved_regions": (128, {"ROCEGW_REMAP": "always"}),
    "protection_domains": (16384, {}),
    "completion_queues": (8192, {}),
    "queue_pairs": (8192, {}),
    "shared_receive_queues": (8192, {}),
    "address_handles": (32768, {}),
    "memory_windows": (16384, {}),
    "xrc_domains": (8192, {}),
    "ids": (8192, {}),
    "listeners": (4096, {}),
}
NOT_JUDGED = "moved_regions"
ORDERS = ("oldest", "newest", "random")
QUOTAS = ("default_pool: {limits: {qps: 65536, cqs: 65536, mrs: 600000, pds: 65536, srqs: 65536,"
          " cm_ids: 65536, segment_bytes: 8GiB, heap_bytes: 8GiB}}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3, help="tries; the best counts")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only these")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    program = os.path.join(binaries, "object_costs")
    rows, above = [], []
    with Lab() as lab:
        host = gateway_pair(lab, binaries, settings=QUOTAS)[0]
        host.start_gateway()

        def seconds(kind, count, order):
            words = [f"{name}={value}" for name, value in KINDS[kind][1].items()]
            return [float(word) for word in host.run(["env", *words, program, kind, str(count), order, str(host.daemon.pid)], timeout=300).split()]

        print(f"{'':<24}{'objects':>8}{'order':>8}{'make us':>9}{'destroy us':>11}{'ratio':>7}{'ratio':>7}")
        for kind in arguments.kind or KINDS:
            count = KINDS[kind][0]
            for order in ORDERS:
                best = [float("inf")] * 2
                for _ in range(arguments.rounds):
                    once, twice = seconds(kind, count, order), seconds(kind, 2 * count, order)
                    best = [min(ratio, b / a if b > SHORT_S else 0) for ratio, a, b in zip(best, once, twice)]
                    if max(best) <= LIMIT or kind == NOT_JUDGED:
                        break
                row = {"kind": kind, "objects": 2 * count, "order": order, "make_us": twice[0] / count / 2 * 1e6,
                       "destroy_us": twice[1] / count / 2 * 1e6, "make_ratio": best[0], "destroy_ratio": best[1]}
                rows.append(row)
                print(f"{kind:<24}{2 * count:8}{order:>8}{row['make_us']:9.1f}{row['destroy_us']:11.1f}{best[0]:7.2f}{best[1]:7.2f}",
                      flush=True)
                if max(best) > LIMIT and kind != NOT_JUDGED:
                    above.append(f"{kind} ({order} first)")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump(rows, file)
    if above:
        raise SystemExit(f"twice as many objects take over {LIMIT} times as long: {', '.join(above)}")


if __name__ == "__main__":
    main()
