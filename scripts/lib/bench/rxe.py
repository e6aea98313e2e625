#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per packet, message and connection of the gateways and of Linux's soft-RoCE driver, in the same guest and over
the same veth. QEMU counts guest time in instructions, so a loaded machine gives the same figures as a quiet one. A count has
all that the guest runs: kernel, gateways and programs, at both ends. Pairs: rxe-rxe, gateway-gateway, gateway-rxe.

Each workload runs with two numbers of messages; the difference of both counts belongs to the messages alone. Fails when a
packet of 4 KiB between gateways costs over a third of what it costs between two rxe devices."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
GUEST = os.path.join(ROOT, "tests", "interop", "guest")
INIT = os.path.join(ROOT, "tests", "bench", "rxe", "guest_init")
PAIRS = ("rxe-rxe", "gateway-gateway", "gateway-rxe")
# Packets, messages or connections of one unit of the workload's number; title.
WORKLOADS = {"write_4k": (256, "packet of 4 KiB (WRITE of 1 MiB)"), "write_1k": (1024, "packet of 1 KiB (WRITE of 1 MiB)"),
             "write_64": (1, "WRITE of 64 B"), "send_64": (1, "SEND of 64 B"), "connect": (1, "connection by rdma_cm")}
# Instructions of rxe divided by those of the gateways: gate, then aims.
GATE = {"write_4k": 3.0}
AIMS = {"write_1k": 5.0, "write_64": 10.0, "send_64": 10.0, "connect": 10.0}
LINE = re.compile(r"^COUNT (\w+)\.(\d+) (\d+) (\d+)\s*$", re.MULTILINE)


def make_image(folder, binaries):
    """(kernel, initramfs)"""
    cache = os.path.join(binaries, "..", "guest")
    os.makedirs(cache, exist_ok=True)
    find = subprocess.run([os.path.join(GUEST, "find-kernel"), os.path.abspath(os.path.join(cache, "kernel"))], check=True,
                          capture_output=True, text=True)
    kernel_root = find.stdout.splitlines()[-1]
    base = os.path.join(folder, "base")
    programs = [os.path.join(binaries, name) for name in ("rocegwd", os.path.join("..", "lib", "librocegw-verbs.so"))]
    subprocess.run([os.path.join(GUEST, "build-initramfs"), "--module", "veth", "--module", "crc32-pclmul",
                    kernel_root, base, "/bin/busybox", *programs], check=True)
    # The agent of the interop guest is not needed; busybox takes its place.
    # A second archive behind the first one replaces its first process. rocegw-run is linked statically.
    os.mkdir(os.path.join(folder, "bin"))
    shutil.copy(INIT, os.path.join(folder, "init"))
    shutil.copy(os.path.join(binaries, "rocegw-run"), os.path.join(folder, "bin"))
    os.chmod(os.path.join(folder, "init"), 0o755)
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=b"init\nbin/rocegw-run\n", cwd=folder, check=True,
                             capture_output=True).stdout
    with open(base, "ab") as file:
        file.write(archive)
    boot = os.path.join(kernel_root, "boot")
    kernel = sorted(name for name in os.listdir(boot) if name.startswith("vmlinuz-") and name.endswith("-amd64"))[-1]
    return os.path.join(boot, kernel), base


def run_guest(image, pair, arguments):
    """Console output of a guest that runs all workloads over one pair."""
    kernel, initramfs = image
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off",
               # Instructions that copy a whole buffer would count as one.
               "-cpu", "max,-erms,-fsrm", "-m", "2048", "-nographic", "-no-reboot", "-kernel", kernel, "-initrd", initramfs,
               "-append", f"console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off tsc=reliable rocegw.pair={pair} "
                          f"rocegw.scale={arguments.scale} rocegw.workloads={','.join(arguments.workload or WORKLOADS)}"]
    try:
        guest = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=arguments.timeout, check=False)
        output = guest.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    return output.decode("utf-8", "replace").replace("\r", "")


def costs_of(output):
    """Instructions of one packet, message or connection, by workload."""
    counts = {}
    for name, number, busy, status in LINE.findall(output):
        if status == "0":
            counts.setdefault(name, []).append((int(number), int(busy)))
    costs = {}
    for name, (unit, _) in WORKLOADS.items():
        if len(counts.get(name, [])) == 2:
            (few, cost_of_few), (many, cost_of_many) = counts[name]
            costs[name] = (cost_of_many - cost_of_few) / (many - few) / unit
    return costs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=1, help="accepted and ignored: counts do not vary")
    parser.add_argument("--scale", type=int, default=4, help="length of the workloads; longer ones are counted more exactly")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one guest")
    parser.add_argument("--pair", action="append", choices=PAIRS)
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--console", help="folder that keeps the guests' output")
    arguments = parser.parse_args()
    pairs = arguments.pair or PAIRS
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        image = make_image(folder, os.path.abspath(arguments.binaries))
        for pair in pairs:
            output = run_guest(image, pair, arguments)
            if arguments.console:
                with open(os.path.join(arguments.console, f"{pair}.txt"), "w", encoding="utf-8") as file:
                    file.write(output)
            results[pair] = costs_of(output)
            if len(results[pair]) < len(set(arguments.workload or WORKLOADS)):
                print(f"{pair}: some workloads failed; last of the guest's output:\n{output[-3000:]}", file=sys.stderr)
    print(f"{'instructions, both ends, of a':<36}" + "".join(f"{pair:>18}" for pair in pairs) + f"{'rxe / gateways':>16}")
    missed = len([pair for pair in pairs if len(results[pair]) < len(set(arguments.workload or WORKLOADS))])
    for name, (_, title) in WORKLOADS.items():
        rxe = results.get("rxe-rxe", {}).get(name)
        gateways = results.get("gateway-gateway", {}).get(name)
        ratio = rxe / gateways if rxe and gateways else None
        cells = "".join(f"{results[pair][name]:>18,.0f}" if name in results[pair] else f"{'failed':>18}" for pair in pairs)
        verdict = ""
        if ratio is not None:
            wanted = GATE.get(name, AIMS.get(name))
            verdict = f"{ratio:>16.2f}  {'gate' if name in GATE else 'aim'} {wanted:.0f}{'' if ratio >= wanted else ': MISSED'}"
            missed += name in GATE and ratio < wanted
        print(f"{title:<36}{cells}{verdict}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
