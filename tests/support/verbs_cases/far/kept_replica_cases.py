# SPDX-License-Identifier: Apache-2.0
"""Cases of files that outlive their server at the donors alone (rocegw-memory mount --keep --names): what is lost with a donor, what a
mount that is stopped leaves, and beginnings that are refused."""

import os
import signal
import tempfile

from netlab.fleet import eventually

from ..case import Case, expect
from .files import PAGE, direct_read, direct_write, far_mount, lost_pages
from .load_cases import FarDonor, far_donors

_PAGES = range(0, 14 << 8, 16)  # of a file: one in each block, in 14 of 16 slabs
_LEASE = ("--lease", "30")


def _content(page, version):
    return page.to_bytes(8, "little") * 256 + version.to_bytes(8, "little") * 256


def _write(path, pages, version):
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(_content(page, version))
        file.flush()
        os.fsync(file.fileno())


def _kill(mount):
    mount.job.signal(signal.SIGKILL)
    mount.job.wait(10)


def _check(path, versions, lost):
    """Exactly the pages in `lost` fail; all others have their version."""
    found = set(lost_pages(path))
    expect(found == lost, f"{len(found)} pages fail, expected {len(lost)}; only one of both: {sorted(found ^ lost)[:20]}")
    for page in set(_PAGES) - lost:
        expect(direct_read(path, page * PAGE, PAGE) == _content(page, versions[page]), f"page {page} is wrong")


def _donor_lost(pair):
    """A donor with the only replicas dies with the server: exactly its pages fail, also in later mounts, until they are written."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, \
            far_donors(pair.right, 2, options=_LEASE) as donors:
        options = ["--keep", "--names", os.path.join(folder, "names"), "--timeout", 3000]
        versions = dict.fromkeys(_PAGES, 1)
        with far_mount(pair.left, donors, 16, options) as mount:
            _write(f"{mount.path}/file", _PAGES, 1)
            _kill(mount)
            donors[0].kill()
        with far_mount(pair.left, donors, 16, options) as mount:
            path = f"{mount.path}/file"
            lost = set(lost_pages(path))
            expect(0 < len(lost) < len(_PAGES), f"{len(lost)} of {len(_PAGES)} pages fail")
            _check(path, versions, lost)
            expect(f"{len(lost)} pages lost" in mount.job.output, f"the log does not say what is lost:\n{mount.job.output}")
            donors[0] = FarDonor(pair.right, 64, 0, _LEASE)
            eventually("replicas", lambda: mount.metrics()["rocegw_memory_session_unserved_slabs"] == 0, 30)
            # Their slabs have new memory, which is zero.
            _check(path, versions, lost)
            again = sorted(lost)[::2]
            for page in again:
                versions[page] = 2
                direct_write(path, page * PAGE, _content(page, 2))
            lost -= set(again)
            # The first fsync may be told of the loss.
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
            _kill(mount)
        with far_mount(pair.left, donors, 16, options) as mount:
            _check(f"{mount.path}/file", versions, lost)
    return f"{len(lost)} of {len(_PAGES)} pages lost, {len(again)} written again"


def _all_donors_lost(pair):
    """Donors that do not know the session any more: names and sizes are there, and all data fails with EIO."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, \
            far_donors(pair.right, 2, options=("--lease", "6")) as donors:
        options = ["--keep", "--names", os.path.join(folder, "names"), "--replicas", 2, "--timeout", 3000]
        with far_mount(pair.left, donors, 16, options) as mount:
            _write(f"{mount.path}/file", _PAGES, 1)
            _kill(mount)
        for donor in donors:
            donor.expect_free(20)
        with far_mount(pair.left, donors, 16, options) as mount:
            _check(f"{mount.path}/file", dict.fromkeys(_PAGES, 1), set(_PAGES))
            _write(f"{mount.path}/other", range(16), 3)
            _kill(mount)
        with far_mount(pair.left, donors, 16, options) as mount:
            _check(f"{mount.path}/file", dict.fromkeys(_PAGES, 1), set(_PAGES))
            expect(direct_read(f"{mount.path}/other", 0, PAGE) == _content(0, 3), "the new file is wrong")
    return "EIO, and new files are kept"


def _donor_cut_off(pair):
    """A donor that hung while the others got new data keeps its old memory and the session. The next server does not use it."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, \
            far_donors(pair.right, 1, options=_LEASE) as there, far_donors(pair.left, 1, options=_LEASE) as here:
        options = ["--keep", "--names", os.path.join(folder, "names"), "--replicas", 2, "--timeout", 1000]
        versions = dict.fromkeys(_PAGES, 1)
        try:
            with far_mount(pair.left, there + here, 16, options) as mount:
                _write(f"{mount.path}/file", _PAGES, 1)
                pair.right.daemon.signal(signal.SIGSTOP)
                versions.update(dict.fromkeys(_PAGES[::2], 2))
                _write(f"{mount.path}/file", _PAGES[::2], 2)
                _kill(mount)
        finally:
            pair.right.daemon.signal(signal.SIGCONT)
        expect(there[0].metrics()["rocegw_memory_leased_bytes"] > 0, "the donor has ended the session")
        with far_mount(pair.left, there + here, 16, options) as mount:
            for _ in range(2):  # reads go to one replica after the other
                _check(f"{mount.path}/file", versions, set())
            eventually("replicas", lambda: mount.metrics()["rocegw_memory_session_degraded_slabs"] == 0, 30)
            for _ in range(2):
                _check(f"{mount.path}/file", versions, set())
    return "its old pages are never read"


def _refused(pair, donors, words, why):
    command = [pair.left.program("rocegw-memory"), "mount", pair.left.directory, "--metrics", "", *map(str, words)]
    for donor in donors:
        command += ["--donor", f"{donor.host.address4}:{donor.port}"]
    job = pair.left.start(command)
    expect(job.wait(60) != 0 and why in job.output, f"{words}:\n{job.output}")


def _stopped(pair):
    """A mount that is stopped leaves everything to the next one; beginnings that do not fit are refused and harm nothing."""
    with tempfile.TemporaryDirectory(prefix="far-", dir=pair.left.directory) as folder, \
            far_donors(pair.right, 3, options=_LEASE) as donors:
        names = os.path.join(folder, "names")
        options = ["--keep", "--names", names, "--replicas", 2]
        fitting = ["--size", "16MiB", "--slab", "1MiB", *options]
        with far_mount(pair.left, donors[:2], 16, options) as mount:
            _write(f"{mount.path}/file", _PAGES, 1)
            with open(f"{mount.path}/not synced", "wb") as file:
                file.write(bytes(range(256)) * 100)
            _refused(pair, donors, fitting, "another process uses it")
        expect(os.stat(f"{names}.donors").st_mode & 0o777 == 0o600, "other users can read the secrets")
        _refused(pair, donors, ["--size", "16MiB", "--slab", "2MiB", *options], "slabs of 1048576 bytes")
        _refused(pair, donors, ["--size", "32MiB", "--slab", "1MiB", *options], "of a space of 16777216 bytes")
        _refused(pair, donors, [*fitting, "--tenant", "other"], "kept for tenant default")
        _refused(pair, donors, ["--size", "16MiB", "--names", names], "--names is for --keep")
        os.rename(f"{names}.donors", f"{names}.elsewhere")
        _refused(pair, donors, fitting, "is missing")
        os.rename(f"{names}.elsewhere", f"{names}.donors")
        # A command that is given one of the two, and another one, uses all three.
        with far_mount(pair.left, donors[1:], 16, options) as mount:
            _check(f"{mount.path}/file", dict.fromkeys(_PAGES, 1), set())
            with open(f"{mount.path}/not synced", "rb") as file:
                expect(file.read() == bytes(range(256)) * 100, "what was not synced is wrong")
            metrics = mount.metrics()
            expect(metrics["rocegw_memory_session_donors"] == 3 and metrics["rocegw_memory_session_degraded_slabs"] == 0,
                   f"replicas are missing: {metrics}")
            expect(metrics["rocegw_memory_session_agreed_bytes_total"] >= len(_PAGES) * PAGE, f"not made equal: {metrics}")
    return "names and data"


def far_kept_replica_cases():
    return [Case("far.kept.donor_lost", 4200, _donor_lost), Case("far.kept.all_donors_lost", 4200, _all_donors_lost),
            Case("far.kept.donor_cut_off", 4200, _donor_cut_off), Case("far.kept.stopped_at_donors", 4200, _stopped)]
