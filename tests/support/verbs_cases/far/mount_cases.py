# SPDX-License-Identifier: Apache-2.0
"""Cases of the file system in remote memory (rocegw-memory mount): the right host donates, the left one mounts."""

import errno
import os
import random
import signal
import tempfile
import threading
import time

from netlab.fleet import eventually

from ..case import Case, expect
from .load_cases import MIB, far_donors
from .files import PAGE, compare_with_model, direct_read, direct_write, far_mount, lost_pages

_NOBODY = 65534


def _model():
    return tempfile.NamedTemporaryFile(prefix="far-model-", dir="/dev/shm")


def _files(pair):
    counts = _compare(pair, ())
    _compare(pair, ["--write-back"])
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _compare(pair, options):
    """Random operations of one file and of four at the same time."""
    with far_donors(pair.right, 2) as donors, far_mount(pair.left, donors, options=options) as mount:
        with _model() as model:
            counts = compare_with_model(f"{mount.path}/file", model.name, 600, seed=1)
        failures = []

        def work(number):
            with _model() as model:
                try:
                    compare_with_model(f"{mount.path}/file{number}", model.name, 150, seed=10 + number)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    failures.append(f"file {number}: {error}")
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(not failures, "; ".join(failures))
        metrics = mount.metrics()
        expect(metrics["rocegw_memory_files_failed_total"] == 0, f"requests failed: {metrics}")
    return counts


def _names(pair):
    """What programs do with names, and that an unlinked file gives its blocks back when it is closed."""
    with far_donors(pair.right, 1) as donors, far_mount(pair.left, donors) as mount:
        root = mount.path
        os.makedirs(f"{root}/a/b")
        with open(f"{root}/a/b/file", "w", encoding="ascii") as file:
            file.write("text")
        os.link(f"{root}/a/b/file", f"{root}/link")
        os.symlink("a/b/file", f"{root}/symbolic")
        os.rename(f"{root}/a", f"{root}/c")
        expect(sorted(os.listdir(root)) == ["c", "link", "symbolic"], f"names: {os.listdir(root)}")
        expect(os.readlink(f"{root}/symbolic") == "a/b/file" and os.stat(f"{root}/link").st_nlink == 2, "links")
        os.chmod(f"{root}/link", 0o4755)
        expect(os.stat(f"{root}/c/b/file").st_mode & 0o7777 == 0o4755, "mode")
        for what, call, error in (("rmdir", lambda: os.rmdir(f"{root}/c"), errno.ENOTEMPTY),
                                  ("open", lambda: os.stat(f"{root}/nothing"), errno.ENOENT),
                                  ("name", lambda: os.mkdir(f"{root}/{'x' * 256}"), errno.ENAMETOOLONG)):
            try:
                call()
            except OSError as failure:
                expect(failure.errno == error, f"{what}: {failure}")
            else:
                expect(False, f"{what} did not fail")
        for number in range(500):
            os.mkdir(f"{root}/c/{number}")
        expect(len(os.listdir(f"{root}/c")) == 501, "a large directory is not listed whole")
        before = os.statvfs(root)
        with open(f"{root}/large", "wb") as file:
            file.write(bytes(16 * MIB))
            file.flush()
            os.unlink(f"{root}/large")
            expect(os.statvfs(root).f_bfree == before.f_bfree - 16 * MIB // before.f_frsize, "an open file has no blocks")
        eventually("free of the unlinked file", lambda: os.statvfs(root).f_bfree == before.f_bfree, 10)
    return "500 directories"


def _full(pair):
    """ENOSPC when the space is full; what was written before is right."""
    with far_donors(pair.right, 1) as donors, far_mount(pair.left, donors, mebibytes=16) as mount:
        data = random.Random(5).randbytes(MIB)
        written = 0
        try:
            with open(f"{mount.path}/file", "wb", buffering=0) as file:
                for _ in range(17):
                    written += file.write(data)
        except OSError as error:
            expect(error.errno == errno.ENOSPC, f"a full space: {error}")
        expect(written == 16 * MIB, f"{written} bytes were written")
        for mebibyte in range(16):
            expect(direct_read(f"{mount.path}/file", mebibyte * MIB, MIB) == data, "wrong bytes")
        os.unlink(f"{mount.path}/file")
        with open(f"{mount.path}/other", "wb", buffering=0) as file:
            file.truncate(MIB)
        expect(direct_read(f"{mount.path}/other", 0, MIB) == bytes(MIB), "a hole shows bytes of another file")
    return "16 MiB written, then ENOSPC"


def _page(number):
    return number.to_bytes(8, "little") * (PAGE // 8)


def _donor_killed(replicas):
    def run(pair):
        pages = 15 * MIB // PAGE
        options = ["--replicas", replicas, "--timeout", 3000]
        # With one replica no donor has room for all pages, so that each has some.
        with far_donors(pair.right, 2, mebibytes=10 if replicas == 1 else 64) as donors, \
                far_mount(pair.left, donors, 16, options) as mount:
            path = f"{mount.path}/file"
            with open(path, "wb") as file:
                for page in range(pages):
                    file.write(_page(page + 1))
                file.flush()
                os.fsync(file.fileno())
            donors[0].kill()
            eventually("without the donor", lambda: mount.metrics()["rocegw_memory_session_donors_lost_total"] == 1, 10)
            begin = time.monotonic()
            lost = lost_pages(path)
            took = time.monotonic() - begin
            metrics = mount.metrics()
            if replicas == 2:
                expect(not lost, f"{len(lost)} pages are lost although there is a replica")
            else:
                expect(0 < len(lost) < pages, f"{len(lost)} of {pages} pages are lost")
                expect(metrics["rocegw_memory_session_lost_pages"] == len(lost), f"{len(lost)} pages fail: {metrics}")
            gone = set(lost)
            for page in range(pages):
                if page not in gone:
                    expect(direct_read(path, page * PAGE, PAGE) == _page(page + 1), f"page {page} is wrong")
            expect(took < 10, f"reading took {took} s")
            # A lost page that is written whole is good again; the remaining donor has room for it.
            for page in lost[:16]:
                eventually("writable", lambda page=page: _rewrites(path, page), 10)
            direct_write(path, 0, _page(77))
            expect(direct_read(path, 0, PAGE) == _page(77), "a write after the loss is wrong")
        return f"{len(lost)} of {pages} pages lost, reading all took {took:.1f} s"
    return Case(f"far.mount.donor_killed.replicas{replicas}", 4200, run)


def _rewrites(path, page):
    try:
        direct_write(path, page * PAGE, _page(page + 5))
    except OSError as error:
        expect(error.errno == errno.EIO, f"page {page}: {error}")
        return False
    expect(direct_read(path, page * PAGE, PAGE) == _page(page + 5), f"page {page} is wrong after it was written")
    return True


def _server_killed(pair):
    """The files end with their server: programs get errors and do not hang, leases end, and the next mount is empty."""
    with far_donors(pair.right, 1, options=("--lease", "6")) as donors:
        with far_mount(pair.left, donors) as mount:
            with open(f"{mount.path}/file", "wb") as file:
                file.write(bytes(MIB))
            with open(f"{mount.path}/file", "rb") as file:
                mount.job.signal(signal.SIGKILL)
                mount.job.wait(10)
                try:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    os.fsync(file.fileno())
                    expect(False, "fsync works without a server")
                except OSError as error:
                    expect(error.errno == errno.ENOTCONN, f"fsync without a server: {error}")
        donors[0].expect_free(20)
        with far_mount(pair.left, donors) as mount:
            expect(os.listdir(mount.path) == [], "the new file system is not empty")
    return "ENOTCONN"


def _user(pair):
    """An ordinary user mounts (fusermount3), and the command ends when somebody unmounts the directory."""
    host = pair.left
    with far_donors(pair.right, 1) as donors, tempfile.TemporaryDirectory(prefix="far-user-") as directory:
        os.chown(directory, _NOBODY, _NOBODY)
        job = host.start([host.program("rocegw-memory"), "mount", directory, "--size", "16MiB", "--slab", "1MiB", "--donor",
                          f"{donors[0].host.address4}:{donors[0].port}", "--metrics", ""], user=_NOBODY)
        try:
            job.expect("mounted", 20)
            path = f"/proc/{job.pid}/root{directory}"
            word = host.run_plain(["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "sh", "-c",
                                   f"echo word >{path}/file; cat {path}/file"])
            expect(word == "word\n", f"the file says {word}")
            host.run_plain(["nsenter", "--mount", "--target", str(job.pid), "umount", directory])
            expect(job.wait(10) == 0, f"the mount ended with {job.returncode}:\n{job.output}")
        finally:
            job.signal(signal.SIGKILL)
            job.wait(10)
        donors[0].expect_free()
    return "by fusermount3"


def far_mount_cases():
    return [Case("far.mount.files", 4200, _files), Case("far.mount.names", 4200, _names), Case("far.mount.full", 4200, _full),
            Case("far.mount.user", 4200, _user), _donor_killed(1), _donor_killed(2), Case("far.mount.server_killed", 4200, _server_killed)]
