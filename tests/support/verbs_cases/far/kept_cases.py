# SPDX-License-Identifier: Apache-2.0
"""Cases of files that outlive their server (rocegw-memory mount --keep): the server gets SIGKILL at random moments while threads
create, write, rename, remove and sync files; what was synced is there again in the next mount."""

import errno
import mmap
import os
import random
import signal
import struct
import tempfile
import threading
import time
from typing import NamedTuple

from netlab.fleet import eventually

from ..case import Case, CaseFailure, expect
from .files import PAGE, direct_read, far_mount
from .load_cases import FarDonor, far_donors

_THREADS = 3
_PAGES = 24  # of a file
_STAMP = struct.Struct("<4Q")
_MAGIC = 0x6b657074


def _stamp(file, page, version):
    return _STAMP.pack(_MAGIC, file, page, version) * (PAGE // _STAMP.size)


class _File:
    """What may be found of a file: for each page the version that was synced last, and the one that was written last."""

    def __init__(self):
        self.synced, self.written = {}, {}
        self.must_exist = False  # its name was synced
        self.may_exist = True    # False: its removal was synced


class _Writer:
    """Works in a directory of its own until the server is dead. Only this thread knows the numbers of its files."""

    def __init__(self, seed, number, directory, files, numbers, killed):
        self._chance = random.Random(f"{seed} {number}")
        self._directory = directory
        self._files = files      # by number of the file; those of all threads
        self._numbers = numbers  # iterator of new numbers, of this thread
        self._killed = killed    # event: the server is dead, or will be at once
        self.names = {}          # name to number, as far as the thread knows
        self.steps, self.syncs, self.failure = 0, 0, None
        self.doing = ""          # the last step
        self._buffer = mmap.mmap(-1, PAGE)
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while True:
                self._step()
                self.steps += 1
        except OSError as error:
            # The path leads through /proc to the server's root.
            # EIO: the kernel has not got a request into the buffer of a server that it was killing (fuse_dev_do_read).
            if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT, errno.EIO) or not self._killed.is_set():
                self.failure = error
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.failure = error

    def _step(self):
        name = f"f{self._chance.randrange(6)}"
        path = os.path.join(self._directory, name)
        number = self.names.get(name)
        kind = self._chance.choice(["write"] * 6 + ["sync"] * 3 + ["remove", "rename"])
        self.doing = f"{kind} {path}"
        if number is None:
            number = next(self._numbers)
            self._files[number] = _File()
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self.names[name] = number
            kind = "write"
        file = self._files[number]
        if kind == "write":
            page = self._chance.randrange(_PAGES)
            version = file.written.get(page, 0) + 1
            file.written[page] = version  # from now on it may be found
            self._buffer[:] = _stamp(number, page, version)
            handle = os.open(path, os.O_WRONLY | (os.O_DIRECT if self._chance.random() < 0.7 else 0))
            try:
                expect(os.pwrite(handle, self._buffer, page * PAGE) == PAGE, "a write was short")
            finally:
                os.close(handle)
        elif kind == "sync":
            written = dict(file.written)
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            file.synced, file.must_exist = written, True
            self.syncs += 1
        elif kind == "remove":
            file.must_exist = False
            os.unlink(path)
            del self.names[name]
            if self._chance.random() < 0.5:
                self._sync_directory()
                file.may_exist = False
        else:
            other = f"f{self._chance.randrange(6)}"
            if other == name:
                return
            replaced = self.names.get(other)
            if replaced is not None:
                self._files[replaced].must_exist = False
            os.rename(path, os.path.join(self._directory, other))
            del self.names[name]
            self.names[other] = number
            if self._chance.random() < 0.5:
                self._sync_directory()
                if replaced is not None:
                    self._files[replaced].may_exist = False

    def _sync_directory(self):
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _versions(content, torn):
    """The file and the page that a page's content names, and its oldest and newest version; None: it is no page. A torn page, which
    was being written when the server was killed, may have parts of several versions."""
    stamps = set(_STAMP.iter_unpack(content))
    versions = [version for _, _, _, version in stamps]
    if len({stamp[:3] for stamp in stamps}) != 1 or min(stamps)[0] != _MAGIC or (len(versions) != 1 and not torn):
        return None
    return min(stamps)[1], min(stamps)[2], min(versions), max(versions)


def _found(path, files, torn):
    """Number of the file that the path has, or None when it has no written page. The versions that it has are synced from now on."""
    size = os.stat(path).st_size
    data = direct_read(path, 0, _PAGES * PAGE)
    expect(len(data) == size and size % PAGE == 0, f"{path} has {size} bytes, {len(data)} could be read")
    number, oldest, newest = None, {}, {}
    for page in range(size // PAGE):
        content = data[page * PAGE:(page + 1) * PAGE]
        if content == bytes(PAGE):
            continue
        named = _versions(content, torn)
        expect(named is not None and named[1] == page, f"{path}: page {page} is wrong: {content[:64].hex()}")
        at_file, _, oldest[page], newest[page] = named
        expect(number in (None, at_file), f"{path}: page {page} is one of another file")
        number = at_file
        expect(newest[page] <= files[number].written.get(page, 0),
               f"{path}: page {page} has version {newest[page]}, which nobody wrote")
    if number is None:
        return None
    file = files[number]
    expect(file.may_exist, f"{path} is there, whose removal was synced")
    for page, version in file.synced.items():
        expect(oldest.get(page, 0) >= version, f"{path}: page {page} has version {oldest.get(page, 0)}, synced was {version}")
    file.synced, file.written = oldest, newest
    return number


_LEASE = ("--lease", "30")  # a server that is killed has a successor within this time


def _await_replicas(mount):
    eventually("all replicas", lambda: mount.metrics()["rocegw_memory_session_degraded_slabs"] == 0, 60)


class KeptRounds(NamedTuple):
    """Work of the threads in all rounds, and kills of donors beside the server's."""
    syncs: int
    steps: int
    donors_killed: int


def kept_rounds(hosts, rounds, seed, kill_donors, replicas=0):
    """Kills the server once in each round. `replicas` 0: the files are kept in a disk copy, and there is one donor; else at
    one donor more than there are replicas, of which one is killed at a time."""
    left, right = hosts
    files, syncs, steps, donors_killed = {}, 0, 0, 0
    numbers = [iter(range(1 + thread, 1 << 60, _THREADS)) for thread in range(_THREADS)]
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="far-", dir=left.directory) as folder, \
            far_donors(right, replicas + 1, mebibytes=512, options=_LEASE) as donors:
        storage = ["--names", os.path.join(folder, "names"), "--replicas", replicas] if replicas else \
            ["--disk-copy", os.path.join(folder, "copy")]
        options = [*storage, "--keep", "--timeout", 3000]
        victim = None  # number of the donor that is dead
        names = [{} for _ in range(_THREADS)]
        for number in range(rounds + 1):
            with far_mount(left, donors, 16, options) as mount:
                directories = [os.path.join(mount.path, f"d{thread}") for thread in range(_THREADS)]
                seen = set()
                for thread, directory in enumerate(directories):
                    if number == 0:
                        os.mkdir(directory)
                        names[thread] = {}
                        continue
                    names[thread] = {}
                    for name in sorted(os.listdir(directory)):
                        found = _found(os.path.join(directory, name), files, replicas != 0)
                        expect(found not in seen or found is None, f"file {found} is there twice")
                        if found is None:
                            os.unlink(os.path.join(directory, name))
                            continue
                        seen.add(found)
                        names[thread][name] = found
                missing = [file for file, state in files.items() if state.must_exist and state.synced and file not in seen]
                expect(not missing, f"files {missing} are missing, which were synced")
                for file in [file for file in files if file not in seen]:
                    del files[file]
                handle = os.open(mount.path, os.O_RDONLY)
                os.fsync(handle)  # the directories, and what was found
                os.close(handle)
                for file in seen:
                    files[file].must_exist = True
                if victim is not None:
                    donors[victim] = FarDonor(right, 512, victim, _LEASE)
                    victim = None
                if replicas and kill_donors:
                    _await_replicas(mount)
                if number == rounds:
                    break
                killed = threading.Event()
                writers = [_Writer(chance.random(), thread, directories[thread], files, numbers[thread], killed)
                           for thread in range(_THREADS)]
                for thread, writer in enumerate(writers):
                    writer.names = names[thread]
                    writer.thread.start()
                time.sleep(chance.random() * 0.5)
                early = [(writer.doing, writer.failure) for writer in writers if writer.failure is not None]
                expect(not early, f"failed before the server was killed: {early}: {mount.metrics() if early else ''}")
                if kill_donors and chance.random() < 0.7:
                    victim = chance.randrange(len(donors))
                    donors_killed += 1
                donor_first = chance.random() < 0.5
                if victim is not None and donor_first:
                    donors[victim].kill()
                    time.sleep(chance.random() * 0.1)
                killed.set()
                mount.job.signal(signal.SIGKILL)
                mount.job.wait(10)
                if victim is not None and not donor_first:
                    donors[victim].kill()
                for writer in writers:
                    writer.thread.join(60)
                    expect(not writer.thread.is_alive(), "a program hangs whose server is dead")
                    expect(writer.failure is None,
                           f"round {number}, step {writer.steps} ({writer.doing}) failed: {writer.failure!r}")
                    syncs, steps = syncs + writer.syncs, steps + writer.steps
            # The next mount finds the donor dead, or without memory of the session.
            if victim is not None and (not replicas or chance.random() < 0.5):
                donors[victim] = FarDonor(right, 512, victim, _LEASE)
                victim = None
    return KeptRounds(syncs, steps, donors_killed)


def _killed(name, kill_donors, rounds, replicas=0):
    def run(pair):
        """What was synced is there after each kill, and no file has a page of another one."""
        seed = int(os.environ.get("ROCEGW_TEST_SEED", random.randrange(1 << 32)))
        try:
            done = kept_rounds((pair.left, pair.right), rounds, seed, kill_donors, replicas)
        except Exception as error:
            raise CaseFailure(f"ROCEGW_TEST_SEED={seed}: {error}") from error
        expect(done.syncs > 0, f"ROCEGW_TEST_SEED={seed}: no syncs")
        return f"seed {seed}: {rounds} kills, {done.steps} steps, {done.syncs} syncs"
    return Case(f"far.kept.{name}", 4200, run)


def _stopped(pair):
    """A mount that is stopped leaves everything to the next one, synced or not; wrong beginnings are refused."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, far_donors(pair.right, 1) as donors:
        copy = os.path.join(folder, "copy")
        options = ["--disk-copy", copy, "--keep"]
        with far_mount(pair.left, donors, 16, options) as mount:
            os.mkdir(f"{mount.path}/directory", 0o750)
            with open(f"{mount.path}/directory/file", "wb") as file:
                file.write(b"text" * 5000)
            os.link(f"{mount.path}/directory/file", f"{mount.path}/link")
            os.symlink("directory/file", f"{mount.path}/symbolic")
            os.utime(f"{mount.path}/link", ns=(10**9, 2 * 10**9))
            before = os.statvfs(mount.path)
        with far_mount(pair.left, donors, 16, options) as mount:
            expect(os.stat(f"{mount.path}/directory").st_mode & 0o7777 == 0o750, "mode")
            state = os.stat(f"{mount.path}/directory/file")
            expect(state.st_nlink == 2 and state.st_mtime_ns == 2 * 10**9, f"attributes: {state}")
            for name in ("link", "symbolic", "directory/file"):
                with open(f"{mount.path}/{name}", "rb") as file:
                    expect(file.read() == b"text" * 5000, f"{name} is wrong")
            after = os.statvfs(mount.path)
            expect((after.f_bfree, after.f_ffree) == (before.f_bfree, before.f_ffree), f"{before} has become {after}")
            # Space that is needed at once after a removal.
            for _ in range(3):
                with open(f"{mount.path}/large", "wb") as file:
                    file.write(bytes(14 << 20))
                    file.flush()
                    os.fsync(file.fileno())
                os.unlink(f"{mount.path}/large")
            eventually("room", lambda: os.statvfs(mount.path).f_bfree == after.f_bfree, 20)
        os.rename(f"{copy}.names", f"{copy}.elsewhere")
        for words, why in ((options, "is missing, which has the names"), (["--keep"], "needs --names, or --disk-copy")):
            command = [pair.left.program("rocegw-memory"), "mount", folder, "--size", "16MiB", "--slab", "1MiB", "--metrics", "",
                       "--donor", f"{donors[0].host.address4}:{donors[0].port}", *words]
            job = pair.left.start(command)
            expect(job.wait(30) != 0 and why in job.output, f"{words}:\n{job.output}")
    return "names, attributes, data"


def far_kept_cases():
    return [_killed("killed", False, 6), _killed("all_killed", True, 5),
            _killed("one_replica", False, 4, 1), _killed("replicas", False, 5, 2), _killed("replicas_all_killed", True, 6, 2),
            Case("far.kept.stopped", 4200, _stopped)]
