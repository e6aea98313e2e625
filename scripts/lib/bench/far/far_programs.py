#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Completion time of programs that have half or a quarter of their memory in a cgroup, and the rest in swap: in remote memory
(rocegw-memory swap), on this host's disk, compressed here (zram) and on a loop device over tmpfs, beside the same with all of
their memory. Programs: k-means and a logistic regression (far_compute), SQLite in memory, and Redis under a load like YCSB B.

Variants take turns in each round; the table shows medians, and inf for programs that the kernel killed for want of memory: swap was
too slow to make room. Every program checks or prints its result: a run whose result differs
from that with all memory fails the benchmark. Needs root, loop devices, FUSE; redis-server for Redis."""

import argparse
import contextlib
import json
import math
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.far.load_cases import MIB, far_donors  # noqa: E402
from verbs_cases.far.swap_cases import far_swap, limited  # noqa: E402

SHARES = (50, 25)  # percent of the memory that the program would have
ZRAM = "zram0"
SQLITE = """
import hashlib, json, os, random, sqlite3, sys, time
rows, steps = int(sys.argv[1]) * 1024 // 4 * 3, int(sys.argv[2])
base = sqlite3.connect(":memory:")
base.execute("create table t (k integer primary key, v blob)")
base.executemany("insert into t values (?, ?)", ((k, k.to_bytes(8, "little") * 125) for k in range(rows)))
chance, digest, begin = random.Random(1), hashlib.sha256(), time.monotonic()
for step in range(steps):
    k = chance.randrange(rows)
    digest.update(base.execute("select v from t where k = ?", (k,)).fetchone()[0])
    if step % 4 == 0: base.execute("update t set v = ? where k = ?", (step.to_bytes(8, "little") * 125, k))
print(json.dumps({"seconds": time.monotonic() - begin, "digest": digest.hexdigest()}), flush=True)
os._exit(0)
"""


def losetup(path, *options):
    done = subprocess.run(["losetup", *options, "--find", "--show", path], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def swap_on(device):
    subprocess.run(["mkswap", device], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["swapon", "--priority", "100", device], check=True)
    try:
        yield
    finally:
        subprocess.run(["swapoff", device], check=True)


@contextlib.contextmanager
def file_swap(folder, mebibytes, *options):
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, mebibytes * MIB)
        device = losetup(file.name, *options)
        try:
            with swap_on(device):
                yield
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


@contextlib.contextmanager
def zram_swap(mebibytes):
    def tell(name, value):
        with open(f"/sys/block/{ZRAM}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))
    tell("reset", 1)
    tell("disksize", mebibytes * MIB)
    try:
        with swap_on(f"/dev/{ZRAM}"):
            yield
    finally:
        tell("reset", 1)


class Computation:
    """A program that prints its time and a digest of its result. None: the kernel has killed it for want of memory."""

    def __init__(self, *command):
        self.command = list(map(str, command))

    def run(self, enter=None):
        done = subprocess.run(self.command, preexec_fn=enter, timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode == -signal.SIGKILL:
            return None
        if done.returncode != 0:
            raise SystemExit(f"{self.command[0]} ended with {done.returncode}: {done.stdout[-1000:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])


class Redis:
    """Redis, and a client that reads 95 % and writes 5 % of its records, drawn with a skew. The records' bytes are checked."""

    def __init__(self, mebibytes, requests):
        self.records, self.requests = mebibytes * 512, requests

    @staticmethod
    def _value(number, version):
        return (number * 1000003 + version).to_bytes(8, "little") * 125

    def run(self, enter=None):
        with tempfile.TemporaryDirectory(prefix="far-redis-") as folder:
            path = os.path.join(folder, "redis.sock")
            server = subprocess.Popen(["redis-server", "--save", "", "--appendonly", "no", "--port", "0", "--unixsocket", path,
                                       "--dir", folder], preexec_fn=enter, stdout=subprocess.DEVNULL)
            try:
                return self._load(path)
            finally:
                server.send_signal(signal.SIGKILL)
                server.wait(30)

    def _load(self, path):
        for _ in range(200):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                return self._serve(connection)
            time.sleep(0.05)
        raise SystemExit("redis-server does not answer")

    def _serve(self, connection):
        stream = connection.makefile("rwb")

        def call(*words):
            stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

        def answer():
            line = stream.readline()
            return stream.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line
        for first in range(0, self.records, 256):
            numbers = range(first, min(first + 256, self.records))
            for number in numbers:
                call(b"SET", b"%d" % number, self._value(number, 0))
            stream.flush()
            for _ in numbers:
                answer()
        chance, versions, begin = random.Random(1), {}, time.monotonic()
        for _ in range(self.requests):
            number = int(self.records * chance.random() ** 3)
            if chance.random() < 0.05:
                versions[number] = versions.get(number, 0) + 1
                call(b"SET", b"%d" % number, self._value(number, versions[number]))
                stream.flush()
                answer()
            else:
                call(b"GET", b"%d" % number)
                stream.flush()
                if answer() != self._value(number, versions.get(number, 0)):
                    raise SystemExit(f"redis: record {number} is wrong")
        return {"seconds": time.monotonic() - begin, "digest": ""}


def peak_mebibytes(program):
    """Most memory of the program, run in a process of its own so that it counts alone."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        report = program.run()
        report["peak"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        os.write(write, json.dumps(report).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise SystemExit("a program with all of its memory failed")
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="of each program's data, in MiB")
    parser.add_argument("--steps", type=int, default=3000, help="requests of SQLite and Redis")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    compute = os.path.join(binaries, "far_compute")
    programs = {"k-means": Computation(compute, "kmeans", arguments.size, 2),
                "logistic regression": Computation(compute, "logistic", arguments.size, 2),
                "SQLite": Computation(sys.executable, "-c", SQLITE, arguments.size, arguments.steps)}
    if shutil.which("redis-server"):
        programs["Redis"] = Redis(arguments.size, arguments.steps)
    else:
        print("redis-server is not installed: no Redis")
    room = 3 * arguments.size
    swaps = {"disk": lambda: file_swap("/var/tmp", room, "--direct-io=on"), "tmpfs": lambda: file_swap("/dev/shm", room)}
    if os.path.exists(f"/sys/block/{ZRAM}"):
        swaps["zram"] = lambda: zram_swap(room)
    rows = []
    with Lab() as lab:
        hosts = gateway_pair(lab, binaries)
        for host in hosts:
            host.start_gateway()
        with far_donors(hosts[1], 2, mebibytes=2 * room) as donors:
            swaps = {"remote": lambda: far_swap(hosts[0], donors, room), **swaps}
            print(f"{'program':22}{'memory':>8}" + "".join(f"{name + ' s':>12}" for name in swaps), flush=True)
            for name, program in programs.items():
                whole = peak_mebibytes(program)
                print(f"{name:22}{'100 %':>8}{whole['seconds']:12.2f}", flush=True)
                rows.append({"program": name, "share": 100, "seconds": whole["seconds"]})
                for share in SHARES:
                    times = {kind: [] for kind in swaps}
                    for _ in range(arguments.rounds):
                        for kind, make in swaps.items():
                            with make(), limited(max(int(whole["peak"] * share / 100), 4)) as enter:
                                report = program.run(enter)
                            if report is not None and report["digest"] != whole["digest"]:
                                raise SystemExit(f"{name} with {share} % and swap {kind}: another result")
                            times[kind].append(report["seconds"] if report is not None else math.inf)
                    print(f"{name:22}{f'{share} %':>8}" + "".join(f"{statistics.median(each):12.2f}" for each in times.values()),
                          flush=True)
                    rows.append({"program": name, "share": share, "times": times})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
