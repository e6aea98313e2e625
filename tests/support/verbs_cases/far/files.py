# SPDX-License-Identifier: Apache-2.0
"""Random operations on a file in a mounted file system, compared with a model file on tmpfs, and the mount itself."""

import contextlib
import ctypes
import mmap
import os
import random
import signal
import tempfile

from netlab.daemon import start_daemon
from netlab.gateway_host import http_get
from netlab.job import LabError

from ..case import CaseFailure, expect

PAGE = 4096


class FarMount:
    """rocegw-memory mount on a host. `path` is the mounted directory as this process sees it: programs of a host have a mount
    namespace of their own."""

    def __init__(self, host, donors, mebibytes, options=()):
        self.host = host
        self.metrics_port = 7577
        self.directory = tempfile.mkdtemp(prefix="far-", dir=host.directory)
        words = [*host.launcher, host.program("rocegw-memory"), "mount", self.directory, "--size", f"{mebibytes}MiB",
                 "--metrics", f"127.0.0.1:{self.metrics_port}", *map(str, options)]
        for donor in donors:
            words += ["--donor", f"{donor.host.address4}:{donor.port}"]
        self.job = start_daemon(host.lab, ["env", f"ROCEGW_SOCKET={host.attach_socket}", *words], host.directory,
                                f"mount of {host.name}", host.namespace)
        self.path = f"/proc/{self.job.pid}/root{self.directory}"
        # The root of the process leads to what is mounted there.
        expect(os.stat(self.path).st_dev != os.stat(host.directory).st_dev, "nothing is mounted")

    def metrics(self):
        page = http_get(self.host.namespace, self.metrics_port, "/metrics")
        lines = [line.split() for line in page.splitlines() if line.startswith("rocegw_memory_")]
        return {name: float(value) for name, value in lines}


@contextlib.contextmanager
def far_mount(host, donors, mebibytes=64, options=()):
    """The mount; if it still runs, it is stopped as a service manager does, and must end well."""
    mount = FarMount(host, donors, mebibytes, ["--slab", "1MiB", *options])
    try:
        yield mount
    except LabError as error:
        mount.job.signal(signal.SIGKILL)
        raise LabError(f"{error}\n{mount.job.output}") from error
    finally:
        status = mount.job.stop(30)
    expect(status in (0, -signal.SIGKILL), f"the mount ended with {status}:\n{mount.job.output}")


def direct_read(path, offset, length):
    """Bytes as they are in remote memory, not in the page cache. Offset and length are multiples of a page."""
    with open(os.open(path, os.O_RDONLY | os.O_DIRECT), "rb", buffering=0) as file, mmap.mmap(-1, length) as buffer:
        file.seek(offset)
        got = file.readinto(buffer)
        return bytes(buffer[:got])


def direct_write(path, offset, data):
    with open(os.open(path, os.O_WRONLY | os.O_DIRECT), "wb", buffering=0) as file, mmap.mmap(-1, len(data)) as buffer:
        buffer[:] = data
        file.seek(offset)
        expect(file.write(buffer) == len(data), "a direct write was short")


def lost_pages(path):
    """Numbers of the pages that cannot be read (EIO)."""
    lost = []
    with open(os.open(path, os.O_RDONLY | os.O_DIRECT), "rb", buffering=0) as file, mmap.mmap(-1, PAGE) as buffer:
        for page in range(os.fstat(file.fileno()).st_size // PAGE):
            file.seek(page * PAGE)
            try:
                file.readinto(buffer)
            except OSError as error:
                expect(error.errno == 5, f"page {page}: {error}")
                lost.append(page)
    return lost


def _map_write(path, offset, data):
    size = os.stat(path).st_size
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        memory[offset:offset + len(data)] = data
        memory.flush()


def _write(path, offset, data, sync):
    with open(path, "r+b", buffering=0) as file:
        file.seek(offset)
        expect(file.write(data) == len(data), "a write was short")
        if sync:
            os.fsync(file.fileno())


def _read(path, offset, length):
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        return file.read(length)


def _map_read(path, offset, length):
    if os.stat(path).st_size == 0:
        return b""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        return memory[offset:offset + length]


def compare_with_model(path, model, steps, seed, most=1 << 20):
    """Does the same random operations on both files and compares them. Returns how many operations of each kind there were."""
    chance = random.Random(seed)
    counts = {}
    for file in (path, model):
        with open(file, "wb"):
            pass
    for step in range(steps):
        kind = chance.choice(["write", "write", "read", "read", "direct write", "direct read", "map write", "map read",
                              "truncate", "punch", "reopen"])
        size = os.stat(model).st_size
        offset, length = chance.randrange(most), chance.randrange(1, chance.choice([200, 9000, 150000]))
        counts[kind] = counts.get(kind, 0) + 1
        where = f"seed {seed}, step {step}: {kind} at {offset} of {length} bytes"
        if kind == "write":
            data, sync = chance.randbytes(length), chance.random() < 0.1
            for file in (path, model):
                _write(file, offset, data, sync)
        elif kind == "direct write":
            data, offset = chance.randbytes((length // PAGE + 1) * PAGE), offset // PAGE * PAGE
            direct_write(path, offset, data)
            _write(model, offset, data, False)
        elif kind == "map write" and size > 0:
            offset = chance.randrange(size)
            data = chance.randbytes(min(length, size - offset))
            for file in (path, model):
                _map_write(file, offset, data)
        elif kind == "read":
            expect(_read(path, offset, length) == _read(model, offset, length), f"{where}: wrong bytes")
        elif kind == "map read":
            expect(_map_read(path, offset, length) == _map_read(model, offset, length), f"{where}: wrong bytes")
        elif kind == "direct read":
            offset, length = offset // PAGE * PAGE, (length // PAGE + 1) * PAGE
            expect(direct_read(path, offset, length) == _read(model, offset, length), f"{where}: wrong bytes")
        elif kind == "truncate" and chance.random() < 0.5:
            for file in (path, model):
                os.truncate(file, offset)
        elif kind == "punch":
            for file in (path, model):
                _punch(file, offset, length)
        elif kind == "reopen" and chance.random() < 0.2:
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        expect(os.stat(path).st_size == os.stat(model).st_size, f"{where}: wrong size")
    with open(path, "rb") as one, open(model, "rb") as other:
        expect(one.read() == other.read(), f"seed {seed}: the files differ in the end")
    return counts


def _punch(path, offset, length):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file:
        # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
        if libc.fallocate(file.fileno(), 3, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
            raise CaseFailure(f"fallocate: {os.strerror(ctypes.get_errno())}")
