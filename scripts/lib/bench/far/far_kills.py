#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files in remote memory (rocegw-memory mount, two replicas on three donors) under kills: a program writes pages with
O_DIRECT, and again and again a donor, the program or the server of the files gets SIGKILL. After each kill every page is read. With
--disk-copy there are one replica and a disk copy, which serves while the donor is dead. With --keep the server dies each time, and
its files are in the next mount as they were synced; sometimes the only donor dies before it.

A page must have the version that was acknowledged last, or the one that was being written. When the server was killed, its
files are gone by design: the program must see an error soon, the leases must end, and the next mount must be empty. The exit
status is 1 when a byte was wrong, an acknowledged page was lost, or a step took longer than its bound. Needs root.

The run is made in pieces, each with a seed and a mode: the modes take turns, unless --mode names one. A piece is a row of
tests/bench/results/far_kills_COMMIT.csv; started again on the same commit the run continues behind the last row, until the rows
have --kills together. --minutes ends a run earlier. Rows of changes that are not committed go to build/bench."""

import argparse
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "scripts", "lib", "bench")]

from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from pieces import Pieces  # noqa: E402
from verbs_cases.case import CaseFailure, expect  # noqa: E402
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


def run_scene(hosts, seed, kills, disk_copy, row):
    """Kills what a draw says, so many times; `row` has the numbers also when a step fails."""
    chance, longest = random.Random(seed), 0.0
    scene = Scene(hosts, chance, disk_copy)
    for _ in range(kills):
        kind = chance.choice(["donor", "donor", "program", "program", "server"])
        begin = time.monotonic()
        try:
            {"donor": scene.kill_donor, "program": scene.kill_program, "server": scene.kill_server}[kind]()
        except Exception as error:
            raise CaseFailure(f"kill {row['kills']} ({kind}): {error}; the mount ({scene.mount.job.returncode}) says: "
                              f"{scene.mount.job.output}") from error
        longest = max(longest, time.monotonic() - begin)
        row |= {"kills": row["kills"] + 1, f"{kind}s": row[f"{kind}s"] + 1, "verified": scene.acknowledged, "longest_s": f"{longest:.2f}"}
    scene.close()


def run_kept(hosts, seed, kills, replicas, row):
    """Kills the server so many times; a donor that dies beside it is one more kill."""
    done = kept_rounds(hosts, kills, seed, True, replicas)
    row |= {"kills": kills + done.donors_killed, "servers": kills, "donors": done.donors_killed, "verified": done.syncs}


MODES = {"replicas": lambda lab, hosts, seed, kills, row: run_scene(hosts, seed, kills, None, row),
         "disk_copy": lambda lab, hosts, seed, kills, row: run_scene(hosts, seed, kills, lab.path("copy"), row),
         "kept": lambda lab, hosts, seed, kills, row: run_kept(hosts, seed, kills, 0, row),
         "kept_replicas": lambda lab, hosts, seed, kills, row: run_kept(hosts, seed, kills, 2, row)}


def piece(binaries, mode, kills, seed):
    """Row of one piece; its column `failure` is empty when no byte was wrong and nothing was lost."""
    row = {"when": time.strftime("%FT%TZ", time.gmtime()), "mode": mode, "seed": seed, "kills": 0, "donors": 0, "programs": 0, "servers": 0,
           "verified": 0, "longest_s": "", "failure": ""}
    try:
        with Lab() as lab:
            hosts = gateway_pair(lab, os.path.abspath(binaries))
            for host in hosts:
                host.start_gateway()
            MODES[mode](lab, hosts, seed, kills, row)
    except (CaseFailure, LabError, OSError) as error:
        row["failure"] = " ".join(str(error).split())[:4000]
    return row


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench far_kills --", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--kills", type=int, default=1000, help="in all rows of this commit together")
    parser.add_argument("--piece", type=int, default=40, help="kills of a row; with --keep those of the server")
    parser.add_argument("--minutes", type=float, help="end this run with the first piece after so many")
    parser.add_argument("--mode", choices=sorted(MODES), help="the only mode of this run")
    parser.add_argument("--seed", type=int, help="of the first piece of a new file; otherwise drawn")
    arguments = parser.parse_args()

    pieces = Pieces("far_kills", "seed")
    seed, killed = pieces.next_seed(arguments.seed), sum(int(row["kills"]) for row in pieces.rows)
    end = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
    print(f"far_kills: {os.path.relpath(pieces.path, ROOT)}, {killed} kills so far, on from seed {seed}", flush=True)
    while killed < arguments.kills and (end is None or time.monotonic() < end):
        mode = arguments.mode or list(MODES)[len(pieces.rows) % len(MODES)]
        row = piece(arguments.binaries, mode, min(arguments.piece, arguments.kills - killed), seed)
        pieces.append([row])
        killed, seed = killed + row["kills"], seed + 1
        print(f"far_kills: {killed} kills; {mode}: {row['donors']} donors, {row['programs']} programs, {row['servers']} servers, "
              f"{row['verified']} writes or syncs verified", flush=True)
        if row["failure"]:
            print(f"far_kills: {mode}, seed {seed - 1}: {row['failure']}")
            return 1
    failed = [row for row in pieces.rows if row["failure"]]
    print(f"far_kills: {killed} of {arguments.kills} kills, {len(failed)} of {len(pieces.rows)} pieces failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
