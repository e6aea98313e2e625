#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files in remote memory (rocegw-memory mount, two replicas on three donors) under kills: a program writes pages with
O_DIRECT, and again and again a donor, the program or the server of the files gets SIGKILL. After each kill every page is read. With
--disk-copy there are one replica and a disk copy, which serves while the donor is dead. With --keep the server dies each time, and
its files are in the next mount as they were synced; sometimes the only donor dies before it.

A page must have the version that was acknowledged last, or the one that was being written. When the server was killed, its
files are gone by design: the program must see an error soon, the leases must end, and the next mount must be empty. The exit
status is 1 when a byte was wrong, an acknowledged page was lost, or a step took longer than its bound. Needs root."""

import argparse
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.case import expect  # noqa: E402
from verbs_cases.far.kept_cases import kept_rounds  # noqa: E402
from verbs_cases.far.load_cases import FarDonor, MIB  # noqa: E402
from verbs_cases.far.files import PAGE, FarMount, direct_read  # noqa: E402

PAGES = 1024
DONORS = 3
# Writes versions of pages in a random order and reports each write that was acknowledged. The seed makes the order.
WRITER = """
import mmap, os, random, struct, sys
path, seed, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
versions = list(struct.unpack(f"<{pages}Q", sys.stdin.buffer.read(8 * pages)))
file, buffer, chance = os.open(path, os.O_WRONLY | os.O_DIRECT), mmap.mmap(-1, 4096), random.Random(seed)
while True:
    page = chance.randrange(pages)
    versions[page] += 1
    buffer[:] = struct.pack("<QQ", page, versions[page]) * 256
    os.pwrite(file, buffer, page * 4096)
    os.write(1, struct.pack("<Q", page))
"""


class Scene:
    """Donors, mount and writer of a run."""

    def __init__(self, hosts, chance, disk_copy=None):
        self.left, self.right = hosts
        self.chance = chance
        # With a disk copy one donor without a replica: each time that it dies only the disk is left.
        self.options = ["--replicas", "1", "--disk-copy", disk_copy] if disk_copy else ["--replicas", "2"]
        self.donors = [self._donor(number) for number in range(1 if disk_copy else DONORS)]
        self.mount = self.writer = None
        self.versions = [0] * PAGES
        self.acknowledged = 0
        self._open()

    def _donor(self, number):
        # Leases of a server that was killed end when they expire.
        return FarDonor(self.right, 64, number, ("--lease", "6"))

    def _open(self):
        self.mount = FarMount(self.left, self.donors, 16, ["--slab", "1MiB", "--timeout", "3000", *self.options])
        expect(os.listdir(self.mount.path) == [], "a new file system is not empty")
        self._wait_until_whole()
        self.versions = [0] * PAGES
        self.path = f"{self.mount.path}/file"
        with open(self.path, "wb") as file:
            for page in range(PAGES):
                file.write(struct.pack("<QQ", page, 0) * 256)
        self._start_writer()

    def _wait_until_whole(self):
        def whole():
            metrics = self.mount.metrics()
            return metrics["rocegw_memory_session_donors"] == len(self.donors) and metrics["rocegw_memory_session_degraded_slabs"] == 0
        eventually("connected to all donors, with all replicas", whole, 30)

    def _start_writer(self):
        self.writer = subprocess.Popen([sys.executable, "-c", WRITER, self.path, str(self.chance.randrange(1 << 30)), str(PAGES)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.writer.stdin.write(struct.pack(f"<{PAGES}Q", *self.versions))
        self.writer.stdin.close()
        self._take_reports(0.05 * self.chance.random(), at_least=1)

    def _take_reports(self, seconds, at_least=0):
        """Counts what the writer says for a while, and until it has said something."""
        end, taken = time.monotonic() + seconds, 0
        while taken < at_least or time.monotonic() < end:
            ready, _, _ = select.select([self.writer.stdout], [], [], max(0.0, end - time.monotonic()) if taken >= at_least else 10)
            if not ready:
                expect(taken >= at_least, "the writer hangs: " + self._look())
                return
            data = os.read(self.writer.stdout.fileno(), 8 * 8192)
            if not data:
                return
            for (page,) in struct.iter_unpack("<Q", data):
                self.versions[page] += 1
            taken += len(data) // 8
            self.acknowledged += len(data) // 8

    def _look(self):
        """What the writer and the threads of the mount wait for."""
        lines = [f"in flight {self.mount.metrics()['rocegw_memory_files_in_flight_bytes']}, writer {self.writer.poll()}"]
        for pid in (self.writer.pid, self.mount.job.pid):
            for thread in os.listdir(f"/proc/{pid}/task"):
                where = f"/proc/{pid}/task/{thread}"
                with open(f"{where}/comm", encoding="ascii") as name, open(f"{where}/stack", encoding="ascii") as stack, \
                        open(f"{where}/stat", encoding="ascii") as stat:
                    state = stat.read().rsplit(")", 1)[1].split()[0]
                    lines.append(f"{name.read().strip()} {state} {' < '.join(line.split()[-1] for line in stack)[:200]}")
        return "\n".join(lines)

    def check(self):
        """Every page, while nobody writes."""
        wrong = []
        for first in range(0, PAGES, 256):
            data = direct_read(self.path, first * PAGE, MIB)
            for page in range(first, first + 256):
                content = data[(page - first) * PAGE:(page - first + 1) * PAGE]
                if content not in [struct.pack("<QQ", page, self.versions[page] + more) * 256 for more in (0, 1)]:
                    wrong.append(page)
                # The write that was under way may be there.
                self.versions[page] = struct.unpack_from("<Q", content, 8)[0]
        expect(not wrong, f"{len(wrong)} pages are wrong, the first one is {wrong[:1]}")

    def _end_writer(self):
        self.writer.kill()
        self._take_reports(10)
        self.writer.wait(10)
        self.writer.stdout.close()

    def kill_program(self):
        self._end_writer()
        self.check()
        self._start_writer()

    def kill_donor(self):
        number = self.chance.randrange(len(self.donors))
        lost = self.mount.metrics()["rocegw_memory_session_donors_lost_total"]
        self.donors[number].kill()
        eventually("without the donor", lambda: self.mount.metrics()["rocegw_memory_session_donors_lost_total"] > lost, 10)
        self._take_reports(0.02, at_least=1)
        self._end_writer()
        self.check()
        self.donors[number] = self._donor(number)
        self._wait_until_whole()
        self._start_writer()

    def kill_server(self):
        self.mount.job.signal(signal.SIGKILL)
        self.mount.job.wait(10)
        self._take_reports(10)
        expect(self.writer.wait(10) != 0, "the program did not see that the server is dead")
        self.writer.stdout.close()
        for donor in self.donors:
            donor.expect_free(20)
        self._open()

    def close(self):
        self._end_writer()
        self.check()
        expect(self.mount.job.stop(30) == 0, "the mount did not end well")
        for donor in self.donors:
            expect(donor.end() == 0, "a donor did not end well")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disk-copy", action="store_true", help="one donor without a replica, and a disk copy")
    parser.add_argument("--keep", action="store_true", help="files that outlive their server, which is killed each time")
    parser.add_argument("--replicas", type=int, default=0, help="with --keep: so many at donors, of which one is killed too, and no disk copy")
    arguments = parser.parse_args()
    chance, counts, longest = random.Random(arguments.seed), {}, {}
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        if arguments.keep:
            syncs, steps = kept_rounds(hosts, arguments.kills, arguments.seed, True, arguments.replicas)
            print(json.dumps({"kills": arguments.kills, "steps": steps, "syncs": syncs, "wrong": 0, "lost": 0}))
            return 0
        scene = Scene(hosts, chance, lab.path("copy") if arguments.disk_copy else None)
        for number in range(arguments.kills):
            kind = chance.choice(["donor", "donor", "program", "program", "server"])
            begin = time.monotonic()
            try:
                {"donor": scene.kill_donor, "program": scene.kill_program, "server": scene.kill_server}[kind]()
            except Exception as error:
                raise SystemExit(f"kill {number} ({kind}, seed {arguments.seed}): {error}\nthe mount ({scene.mount.job.returncode}) says:\n"
                                 f"{scene.mount.job.output}") from error
            counts[kind] = counts.get(kind, 0) + 1
            longest[kind] = max(longest.get(kind, 0), time.monotonic() - begin)
            if number % 50 == 49:
                print(f"{number + 1} kills, {scene.acknowledged} writes were acknowledged, none is wrong", flush=True)
        scene.close()
    print(json.dumps({"kills": counts, "acknowledged_writes": scene.acknowledged, "wrong": 0, "lost": 0,
                      "longest_s": {kind: round(seconds, 2) for kind, seconds in longest.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
