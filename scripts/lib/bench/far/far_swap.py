#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of page faults of a program that has half of its memory in a cgroup: swap in remote memory (rocegw-memory swap) in turns
with swap on a loop device over tmpfs, and one RDMA READ of 4 KiB. The floor of remote swap is the sum of the latter two medians.

The aim: the median fault is at most 1.5 times the floor. Every page is verified. The exit status is 1 when the aim is missed, and
when a byte is wrong. Needs root, loop devices and FUSE."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.far.load_cases import MIB, far_donors, run_load  # noqa: E402
from verbs_cases.far.swap_cases import far_swap, limited  # noqa: E402

AIM = 1.5
# Times accesses to random pages. An access below 10 us was no fault that needed swap.
PROGRAM = """
import json, mmap, random, sys, time
pages, accesses = int(sys.argv[1]) * 256, int(sys.argv[2])
memory = mmap.mmap(-1, pages * 4096)
for number in range(pages): memory[number * 4096:(number + 1) * 4096] = number.to_bytes(8, "little") * 512
chance, times = random.Random(1), []
for _ in range(accesses):
    number = chance.randrange(pages)
    begin = time.perf_counter_ns()
    byte = memory[number * 4096]
    took = time.perf_counter_ns() - begin
    if took > 10000: times.append(took / 1000)
    if memory[number * 4096:(number + 1) * 4096] != number.to_bytes(8, "little") * 512: sys.exit(f"page {number} is wrong")
times.sort()
print(json.dumps({"faults": len(times), "p50_us": times[len(times) // 2], "p99_us": times[len(times) * 99 // 100]}))
"""


def faults(mebibytes, accesses):
    """Runs the program with half of its memory."""
    with limited(mebibytes // 2) as enter:
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(mebibytes), str(accesses)], preexec_fn=enter, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the program ended with {done.returncode}: {done.stdout}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def tmpfs_swap(mebibytes):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        os.posix_fallocate(file.fileno(), 0, mebibytes * MIB)
        device = subprocess.run(["losetup", "--find", "--show", file.name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        try:
            subprocess.run(["mkswap", device], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["swapon", "--priority", "100", device], check=True)
            try:
                yield
            finally:
                subprocess.run(["swapoff", device], check=True)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--accesses", type=int, default=4000)
    parser.add_argument("--size", type=int, default=64, help="of the program, in MiB")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = {"remote": [], "tmpfs": [], "READ": []}
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        with far_donors(hosts[1], 2, mebibytes=256) as donors:
            for _ in range(arguments.rounds):
                with far_swap(hosts[0], donors, arguments.size + 32):
                    rows["remote"].append(faults(arguments.size, arguments.accesses))
                with tmpfs_swap(arguments.size + 32):
                    rows["tmpfs"].append(faults(arguments.size, arguments.accesses))
                rows["READ"].append(run_load(hosts[0], donors, "--size", 32 * MIB, "--slab", MIB, "--threads", 1, "--depth", 1,
                                             "--reads", 100, "--random", "--requests", 4000))
    for name, reports in rows.items():
        print(f"{name:8}" + "".join(f"  {key} {statistics.median(report[key] for report in reports):8.0f}"
                                    for key in ("p50_us", "p99_us")))
    ratios = [remote["p50_us"] / (tmpfs["p50_us"] + read["p50_us"]) for remote, tmpfs, read in zip(*rows.values())]
    ratio = statistics.median(ratios)
    print(f"remote / (tmpfs + READ), medians of a round: {ratio:.2f}, between {min(ratios):.2f} and {max(ratios):.2f}; aim {AIM}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 1 if ratio > AIM else 0


if __name__ == "__main__":
    sys.exit(main())
