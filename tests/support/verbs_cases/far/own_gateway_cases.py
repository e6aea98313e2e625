# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory whose own gateway is restarted, and of programs that are stopped while they wait for donors: the right host
donates, the left one uses the memory."""

import contextlib
import errno
import os
import random
import signal
import tempfile
import threading
import time

from netlab.fleet import eventually
from netlab.job import LabError

from ..case import Case, expect
from .files import PAGE, direct_read, direct_write, far_mount
from .load_cases import MIB, far_donors, load_report, start_load
from .nbd_cases import far_device
from .nbd_client import NbdClient

_FILE = 8 * MIB
_ROUNDS = 3


def kill_gateway(host):
    host.daemon.signal(signal.SIGKILL)
    host.daemon.wait(20)


def stop_gateway(host):
    """SIGTERM, as systemctl restart sends it: the gateway disconnects its programs from their peers."""
    status = host.stop_gateway()
    expect(status == 0, f"the gateway ended with {status}")


class _Writer:
    """Thread that writes and reads pages of something as long as it is asked to, each at once against a model. No request may fail."""

    def __init__(self, write, read, size):
        self._write = write
        self._read = read
        self.model = bytearray(size)
        self.requests = 0
        self.longest = 0.0
        self.failure = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        chance = random.Random(7)
        try:
            while not self._stop.is_set():
                offset = chance.randrange(len(self.model) // PAGE) * PAGE
                began = time.monotonic()
                if chance.random() < 0.6:
                    data = chance.randbytes(PAGE)
                    self._write(offset, data)
                    self.model[offset:offset + PAGE] = data
                else:
                    expect(self._read(offset, PAGE) == self.model[offset:offset + PAGE], f"wrong bytes at {offset}")
                self.longest = max(self.longest, time.monotonic() - began)
                self.requests += 1
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failure = error

    @contextlib.contextmanager
    def running(self):
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(60)
        expect(self.failure is None, f"a request failed after {self.requests}: {self.failure!r}")

    def await_more(self):
        """Returns when requests have begun and ended since."""
        before = self.requests
        eventually("requests that go on", lambda: self.requests > before + 50 or self.failure is not None, 60)
        expect(self.failure is None, f"a request failed after {self.requests}: {self.failure!r}")


def _restarts(pair, writer, kill=kill_gateway):
    """The writer's gateway is killed and started again, some times; then everything is compared."""
    with writer.running():
        for _ in range(_ROUNDS):
            writer.await_more()
            kill(pair.left)
            pair.left.start_gateway()
            writer.await_more()
    for offset in range(0, len(writer.model), MIB):
        expect(writer._read(offset, MIB) == writer.model[offset:offset + MIB], f"wrong bytes at {offset}")  # pylint: disable=protected-access


def _file_writer(mount):
    path = f"{mount.path}/file"
    with open(path, "wb") as file:
        file.write(bytes(_FILE))
        file.flush()
        os.fsync(file.fileno())
    return _Writer(lambda offset, data: direct_write(path, offset, data), lambda offset, length: direct_read(path, offset, length), _FILE)


def _mount(name, replicas, end_gateway):
    def run(pair):
        """The session continues at its donors: no request fails, nothing is lost."""
        with far_donors(pair.right, replicas) as donors, far_mount(pair.left, donors, 16, ["--replicas", replicas]) as mount:
            writer = _file_writer(mount)
            _restarts(pair, writer, end_gateway)
            metrics = mount.metrics()
            expect(metrics["rocegw_memory_session_lost_pages"] == 0 and metrics["rocegw_memory_session_donors_lost_total"] == 0
                   and metrics["rocegw_memory_session_device_losses_total"] == _ROUNDS
                   and metrics["rocegw_memory_session_suspended_donors"] == 0, f"the session: {metrics}")
            for donor in donors:
                expect(donor.metrics()["rocegw_memory_sessions_continued_total"] == _ROUNDS, "the donor has not continued the session")
        return f"{writer.requests} requests, the longest took {writer.longest:.1f} s"
    return Case(f"far.own_gateway.{name}{replicas}", 4200, run)


def _disk_copy(pair):
    """With a disk copy requests are served while the gateway is away."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, far_donors(pair.right, 1) as donors, \
            far_mount(pair.left, donors, 16, ["--disk-copy", os.path.join(folder, "copy")]) as mount:
        writer = _file_writer(mount)

        def kill(host):
            kill_gateway(host)
            writer.await_more()  # from the disk
        _restarts(pair, writer, kill)
        eventually("replicas", lambda: mount.metrics()["rocegw_memory_session_degraded_slabs"] == 0, 60)
        expect(mount.metrics()["rocegw_memory_session_lost_pages"] == 0, "pages are lost")
    return f"{writer.requests} requests, the longest took {writer.longest:.1f} s"


def _device(pair):
    """A block device of nbdkit goes on as well."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, far_donors(pair.right, 2) as donors, \
            far_device(pair.left, donors, 8, folder, "replicas=2") as device:
        client = NbdClient(device.path)
        writer = _Writer(client.write, client.read, _FILE)
        _restarts(pair, writer)
        client.close()
    return f"{writer.requests} requests, the longest took {writer.longest:.1f} s"


def _library(pair):
    """A program of the library: the gateway is away for a moment between two halves of its requests, and again under them."""
    with far_donors(pair.right, 2) as donors:
        job = start_load(pair.left, donors, "--replicas", 2, "--size", 16 * MIB, "--slab", MIB, "--requests", 20000, "--threads", 2,
                         "--random", "--pause", "--settle", "--timeout", 5000)
        try:
            job.expect("^halfway", 60)
            kill_gateway(pair.left)
            pair.left.start_gateway()
            job.signal(signal.SIGUSR1)
            time.sleep(0.3)
            kill_gateway(pair.left)
            pair.left.start_gateway()
            report = load_report(job)
        finally:
            job.signal(signal.SIGKILL)
    expect(report["lost_pages"] == 0 and report["donors_lost"] == 0, f"the session: {report}")
    return f"longest wait {report['max_us'] / 1e6:.1f} s"


def _away(pair):
    """A gateway that stays away for longer than leases last: exactly the data is lost, and the mount works again afterwards."""
    with far_donors(pair.right, 1, options=("--lease", "6")) as donors, far_mount(pair.left, donors, 16) as mount:
        writer = _file_writer(mount)
        path = f"{mount.path}/file"
        direct_write(path, 0, b"x" * PAGE)
        kill_gateway(pair.left)
        began = time.monotonic()
        try:
            direct_read(path, 0, PAGE)
        except OSError as error:
            expect(error.errno == errno.EIO, f"a read without donors: {error}")
        else:
            expect(False, "a page was read that no donor could give")
        took = time.monotonic() - began
        expect(took < 10, f"the read took {took:.1f} s")
        pair.left.start_gateway()
        eventually("donors", lambda: mount.metrics()["rocegw_memory_session_degraded_slabs"] == 0, 60)
        for offset in range(0, _FILE, MIB):
            data = random.Random(offset).randbytes(MIB)
            direct_write(path, offset, data)
            writer.model[offset:offset + MIB] = data
        for offset in range(0, _FILE, MIB):
            expect(direct_read(path, offset, MIB) == writer.model[offset:offset + MIB], f"wrong bytes at {offset}")
        expect(mount.metrics()["rocegw_memory_session_lost_pages"] == 0, "pages that were written whole are lost")
    return f"EIO after {took:.1f} s"


def _stopped_opening(pair):
    """SIGTERM ends a mount and a swap that wait for donors, at once and with status 0; leases are given back."""
    notes = []
    with far_donors(pair.right, 1) as donors:
        there = f"{donors[0].host.address4}:{donors[0].port}"
        # A host that does not answer, and not enough memory at the one that does.
        nobody = f"{donors[0].host.address4.rsplit('.', 1)[0]}.250:7475"
        for command in ("mount", "swap"):
            words = [pair.left.program("rocegw-memory"), command, "--size", "48MiB", "--slab", "1MiB", "--metrics", "", "--replicas", "2",
                     "--donor", there, "--donor", nobody]
            with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder:
                words += [folder] if command == "mount" else ["--directory", os.path.join(folder, "swap"), "--device", "loop"]
                job = pair.left.start(words)
                try:
                    eventually("leases", lambda: donors[0].metrics()["rocegw_memory_leased_bytes"] > 0 or not job.running, 30)
                    expect(job.running, f"{command} has ended:\n{job.output}")
                    began = time.monotonic()
                    job.signal_program(signal.SIGTERM)
                    status = job.wait(20)
                    took = time.monotonic() - began
                except LabError:
                    job.signal(signal.SIGKILL)
                    raise
                expect(status == 0 and took < 3, f"{command} ended with {status} after {took:.1f} s:\n{job.output}")
                notes.append(f"{command}: {took:.1f} s")
            donors[0].expect_free()
    return ", ".join(notes)


def far_own_gateway_cases():
    mounts = [_mount(name, replicas, end) for name, end in (("mount", kill_gateway), ("stopped", stop_gateway)) for replicas in (1, 2)]
    return mounts + [Case("far.own_gateway.disk_copy", 4200, _disk_copy), Case("far.own_gateway.nbd", 4200, _device),
                     Case("far.own_gateway.library", 4200, _library), Case("far.own_gateway.away", 4200, _away),
                     Case("far.stopped_opening", 4200, _stopped_opening)]
