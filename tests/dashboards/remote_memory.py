# SPDX-License-Identifier: Apache-2.0
"""Donors and mounts of remote memory for the scenarios: the right host donates, also to a block pool, the left one has two file
systems. One has a disk copy on a disk that is too small."""

import os
import signal

from netlab.daemon import start_daemon
from netlab.fleet import eventually
from netlab.gateway_host import http_get
from netlab.job import run

_MIB = 1 << 20
DONOR_PORT, MOUNT_PORT, COPIED_PORT, PASSING_PORT, POOL_PORT = 7476, 7477, 7478, 7479, 7480
# An address of no host.
_NOBODY = "10.77.0.99"


class RemoteMemory:
    def __init__(self, fleet):
        self._fleet = fleet
        self._left, self._right = fleet.hosts
        self._folder = fleet.lab.path("far")
        self._small = os.path.join(self._folder, "disk")
        os.makedirs(self._small)
        run(["mount", "-t", "tmpfs", "-o", f"size={2 * _MIB}", "tmpfs", self._small])
        self.donor = self._donate(self._right)
        # A donor of a fleet grants nothing until it has got orders.
        eventually("a donor that grants leases",
                   lambda: "rocegw_memory_draining 0" in http_get(self._right.namespace, DONOR_PORT, "/metrics"))
        self.pool = self._serve_blocks(self._right)
        self.plain = self._mount("plain", MOUNT_PORT)
        self.copied = self._mount("copied", COPIED_PORT, "--disk-copy", os.path.join(self._small, "copy"))

    def _start(self, host, title, *words):
        return start_daemon(self._fleet.lab, ["env", f"ROCEGW_SOCKET={host.attach_socket}", *host.launcher, host.program("rocegw-memory"),
                                              *words], host.directory, title, host.namespace)

    def _donate(self, host):
        return self._start(host, "donor", "donate", "--size", "26MiB", "--quota", "nobody=0", "--metrics", f"0.0.0.0:{DONOR_PORT}",
                           "--address", host.address4, "--announce", self._fleet.donors_dir(host))

    def _serve_blocks(self, host):
        secret = self._secret = os.path.join(self._folder, "pool.secret")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write("the secret of a pool")
        return self._start(host, "block donor", "blocks", "--size", "8MiB", "--secret", secret, "--address", host.address4,
                           "--metrics", f"0.0.0.0:{POOL_PORT}")

    def _mount(self, name, port, *options):
        directory = os.path.join(self._folder, name)
        os.makedirs(directory, exist_ok=True)
        job = self._start(self._left, f"mount {name}", "mount", directory, "--size", "8MiB", "--slab", "1MiB", "--timeout", "3000",
                          "--donor", self._right.address4, "--metrics", f"0.0.0.0:{port}", *options)
        job.path = f"/proc/{job.pid}/root{directory}/file"
        return job

    @staticmethod
    def touch(mount):
        """Writes and reads more than the file system holds."""
        try:
            with open(mount.path, "wb", buffering=0) as file:
                for _ in range(9):
                    file.write(os.urandom(_MIB))
        except OSError:
            pass
        RemoteMemory.read(mount)

    @staticmethod
    def read(mount):
        try:
            with open(mount.path, "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while file.read(_MIB):
                    pass
        except OSError:
            pass

    def ask_without_quota(self):
        """A mount that the donor refuses."""
        self._left.start([self._left.program("rocegw-memory"), "mount", self._folder, "--size", "1MiB", "--slab", "1MiB", "--tenant",
                          "nobody", "--donor", self._right.address4, "--metrics", ""]).wait(60)

    def come_and_go(self):
        """One more mount that writes a page, so that it gets a lease, and ends."""
        mount = self._mount("passing", PASSING_PORT)
        with open(mount.path, "wb", buffering=0) as file:
            file.write(bytes(4096))
            os.fsync(file.fileno())
        mount.stop()

    def fill_donors(self):
        """One more mount, which leaves the donor hardly any room."""
        self.filling = self._mount("filling", PASSING_PORT)

    def make_room(self):
        self.filling.stop()

    def ask_the_fleet(self):
        """Mounts whose donors the fleet names, or does not: there is only one failure domain."""
        for size, replicas in (("1MiB", "1"), ("1MiB", "2")):
            self._left.start([self._left.program("rocegw-memory"), "mount", self._folder, "--size", size, "--slab", "1MiB", "--replicas",
                              replicas, "--donors", "fleet", "--donors-dir", self._fleet.donors_dir(self._left), "--timeout", "500",
                              "--metrics", "nonsense"]).wait(60)

    def lose_donor(self):
        self._fleet.kill(self.donor)

    def join_pool(self):
        """A member, and processes with another secret, which are refused."""
        other = os.path.join(self._folder, "other.secret")
        with open(os.open(other, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write("the secret of another pool")
        for secret in (self._secret, other, other, other, other):
            self._left.start([self._left.program("example_layer_cache"), "--donor", f"{self._right.address4},7479", "--secret", secret,
                              "--layers", "2", "--blocks", "4", "--sequences", "1", "--passes", "2"]).wait(60)

    def stay_in_pool(self):
        """A member by a queue pair, until the pool is lost."""
        self._member = self._left.start([self._left.program("example_layer_cache"), "--donor", f"{self._right.address4},7479",
                                         "--secret", self._secret, "--path", "queue-pairs", "--layers", "2", "--blocks", "4",
                                         "--sequences", "1", "--passes", "2", "--linger"])
        self._member.expect("^lingers", 60)

    def lose_pool(self):
        self._fleet.kill(self.pool)
        self._member.signal(signal.SIGKILL)
        self._member.wait(60)

    def bring_pool_back(self):
        self.pool = self._serve_blocks(self._right)

    def bring_donor_back(self):
        self.donor = self._donate(self._right)

    def announce_address_of_nobody(self):
        """The agent of the right host reports one more donor, whose address is none of its gateway's."""
        folder = self._fleet.donors_dir(self._right)
        with open(os.path.join(folder, "donor.donor"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(folder, "other.donor"), "w", encoding="utf-8") as file:
            file.write(text.replace(self._right.address4, _NOBODY))

    def drain(self):
        """A mount whose data lie at the right host's donor; that one drains once the left host has a donor as well."""
        self.plain.stop()
        self.plain = self._mount("plain", MOUNT_PORT, "--donor", self._left.address4)
        with open(self.plain.path, "wb", buffering=0) as file:
            file.write(os.urandom(2 * _MIB))
            os.fsync(file.fileno())
        self.other_donor = self._donate(self._left)
        self._fleet.controller.ctl("drain", "donor", f"{self._right.name}/donor")

    def end(self):
        for job in (self.plain, self.copied, self.donor, self.other_donor, self.pool):
            job.signal(signal.SIGTERM)
            job.wait(60)
        run(["umount", self._small])
