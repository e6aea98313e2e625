# SPDX-License-Identifier: Apache-2.0
"""The case of files that outlive their server (rocegw-memory mount --keep) while the fleet names the donors (--donors fleet). The fleet
has hosts of its own: gateways that have joined one would keep its objects for later cases."""

import contextlib
import itertools
import os
import random
import signal
import tempfile

from netlab.donor_fleet import DonorFleet
from netlab.fleet import eventually

from ..case import Case, expect
from .files import direct_read, far_mount
from .load_cases import MIB, FarDonor

_NUMBERS = itertools.count()  # a case that is tried again gets another fleet in the same laboratory
_FILES = 6
_FILE_BYTES = MIB


class _Fleet(DonorFleet):
    """Its donors are of the second host."""

    def __init__(self, lab, binaries):
        super().__init__(lab, binaries, name=f"fleet{next(_NUMBERS)}-")

    def add_donor(self, name, number):
        """A donor that serves, in a failure domain of its own."""
        self.donors[name] = FarDonor(self.right, 64, number, ("--lease", "60", "--announce", self.folders[1], "--name", name))
        where = f"{self.right.name}/{name}"
        eventually("an announced donor", lambda: where in self.states())
        self.ctl("update", "donor", where, f"failure_domain=rack-{name}")
        self.ctl("approve", "donor", where)
        eventually("a donor that serves", lambda: self.states()[where][0] == "serving")

    def options(self, *storage):
        return ["--donors", "fleet", "--donors-dir", self.folders[0], "--replicas", 2, "--timeout", 3000, "--keep", *storage]

    def freeze(self, number):
        for daemon in (self.controller.daemon, *(agent.daemon for agent in self.agents)):
            daemon.signal(number)

    def close(self):
        for donor in self.donors.values():
            donor.end()
        for part in (*self.agents, self.controller, *self.hosts):
            if part.daemon:
                part.daemon.stop()


class _Files:
    """Files with random content, of which each version is synced."""

    def __init__(self, seed):
        self._chance = random.Random(seed)
        self._content = {}

    def write(self, path, numbers):
        for number in numbers:
            self._content[number] = self._chance.randbytes(_FILE_BYTES)
            with open(f"{path}/{number}", "wb") as file:
                file.write(self._content[number])
                file.flush()
                os.fsync(file.fileno())

    def check(self, path, when):
        expect(sorted(os.listdir(path)) == sorted(map(str, self._content)), f"{when}: files {sorted(os.listdir(path))}")
        for number, content in self._content.items():
            expect(direct_read(f"{path}/{number}", 0, _FILE_BYTES) == content, f"{when}: file {number} is wrong")


def _kill(mount):
    mount.job.signal(signal.SIGKILL)
    mount.job.wait(10)


def _whole(mount):
    eventually("all replicas", lambda: mount.metrics()["rocegw_memory_session_degraded_slabs"] == 0, 60)


def _continues(mount, when):
    eventually(f"files of an earlier command {when}", lambda: "continues with files of an earlier command" in mount.job.output, 10)
    expect(", 0 pages lost" in mount.job.output, f"{when}:\n{mount.job.output}")


def _at_donors(fleet, folder):
    """Without a disk copy: the donors that the fleet chose have the files, whatever the fleet says later."""
    options, files = fleet.options("--names", os.path.join(folder, "names")), _Files(1)
    with far_mount(fleet.left, [], 16, options) as mount:
        expect(mount.metrics()["rocegw_memory_session_donors"] >= 2, f"too few donors:\n{mount.job.output}")
        files.write(mount.path, range(_FILES))
        _kill(mount)
    # Neither controller nor agent answers: the placement names the donors.
    fleet.freeze(signal.SIGSTOP)
    with far_mount(fleet.left, [], 16, options) as mount:
        _continues(mount, "without controller")
        files.check(mount.path, "without controller")
        files.write(mount.path, range(2))
        _kill(mount)
    fleet.freeze(signal.SIGCONT)
    fleet.ctl("status", "--wait", "--timeout", "60")
    # A donor dies with the server: another one of the fleet gets its replicas, which the placement did not name.
    fleet.add_donor("c", 2)
    fleet.donors["a"].kill()
    with far_mount(fleet.left, [], 16, options) as mount:
        _continues(mount, "without a donor")
        files.check(mount.path, "without a donor")
        _whole(mount)
        expect(fleet.donors["c"].metrics()["rocegw_memory_leased_bytes"] > 0, "the new donor has nothing")
        files.write(mount.path, range(1, 3))
        _kill(mount)
    # The donor that was there all the time is drained while the files are served.
    with far_mount(fleet.left, [], 16, options) as mount:
        files.check(mount.path, "with another donor")
        fleet.add_donor("d", 3)
        fleet.ctl("drain", "donor", f"{fleet.right.name}/b", "--wait", "--timeout", "90")
        files.write(mount.path, range(2, 4))
        _kill(mount)
    fleet.donors["b"].kill()
    with far_mount(fleet.left, [], 16, options) as mount:
        _continues(mount, "after a drain")
        files.check(mount.path, "after a drain")
        files.write(mount.path, [7])
    # Stopped, not killed.
    with far_mount(fleet.left, [], 16, options) as mount:
        files.check(mount.path, "after SIGTERM")


def _in_disk_copy(fleet, folder):
    """With a disk copy: any donors that the fleet names later are filled from it."""
    options, files = fleet.options("--disk-copy", os.path.join(folder, "copy")), _Files(2)
    with far_mount(fleet.left, [], 16, options) as mount:
        files.write(mount.path, range(_FILES))
        _kill(mount)
    with far_mount(fleet.left, [], 16, options) as mount:
        files.check(mount.path, "from the disk copy")
        _whole(mount)


def _fleet(pair):
    """Each mount has the files of the one before, which was killed, also without a controller, after a donor died, and after a drain."""
    fleet = _Fleet(pair.left.lab, pair.left.binaries)
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, contextlib.closing(fleet):
        fleet.start()
        fleet.add_donor("a", 0)
        fleet.add_donor("b", 1)
        _at_donors(fleet, folder)
        _in_disk_copy(fleet, folder)
    return "killed six times"


def far_kept_fleet_cases():
    return [Case("far.kept.fleet", 4200, _fleet)]
