# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory with a disk copy: donors and sessions are killed, and the disk has what was flushed."""

import os
import re
import signal
import tempfile
import time

from netlab.fleet import eventually

from ..case import Case, expect
from .load_cases import MIB, FarDonor, far_donors, load_report, start_load
from .files import PAGE, far_mount, lost_pages


def _no_replica_left(pair):
    """The only donor dies halfway: everything is read from the disk copy, nothing is lost, and a donor that comes is filled."""
    with tempfile.TemporaryDirectory(prefix="far-disk-") as directory, far_donors(pair.right, 1) as donors:
        job = start_load(pair.left, donors, "--size", 16 * MIB, "--slab", MIB, "--requests", 4000, "--threads", 2, "--random",
                         "--pause", "--settle", "--timeout", 3000, "--disk-copy", f"{directory}/copy")
        try:
            job.expect("^halfway", 60)
            donors[0].kill()
            job.signal(signal.SIGUSR1)
            job.expect("^done", 60)
            donors[0] = FarDonor(pair.right, 64)
            report = load_report(job)
        finally:
            job.signal(signal.SIGKILL)
    expect(report["donors_lost"] == 1 and report["lost"] == report["lost_pages"] == 0, f"the disk copy did not serve: {report}")
    expect(report["disk_read"] > 0 and report["degraded"] == 0 and report["restored_bytes"] > 0,
           f"the new donor was not filled from the disk: {report}")
    return f"{report['disk_read'] // 1024} KiB read from the disk, {report['restored_bytes'] // 1024} KiB copied to the new donor"


def _everything_killed(pair):
    """Program and donors get SIGKILL at the same time: the disk copy is the only survivor."""
    rounds = []
    with tempfile.TemporaryDirectory(prefix="far-disk-") as directory:
        copy = f"{directory}/copy"
        for number in range(3):
            with far_donors(pair.right, 2) as donors:
                job = pair.left.start(_far_disk(pair, donors, copy, "write"))
                job.expect("^flushed 1$", 60)
                time.sleep(0.03 * number)
                for victim in (job, donors[0].job, donors[1].job):
                    victim.signal(signal.SIGKILL)
                job.wait(10)
            flushed = int(re.findall(r"^flushed (\d+)$", job.output, re.MULTILINE)[-1])
            with far_donors(pair.right, 2) as donors:
                job = pair.left.start(_far_disk(pair, donors, copy, "verify", flushed))
                status = job.wait(60)
                expect(status == 0, f"after version {flushed} was flushed, verify ended with {status}:\n{job.output}")
                donors[0].expect_free()
            rounds.append(job.output.splitlines()[-1])
    return "; ".join(rounds)


def _far_disk(pair, donors, copy, *words):
    command = [pair.left.program("far_disk"), *map(str, words), "--replicas", "2", "--disk-copy", copy]
    for donor in donors:
        command += ["--donor", f"{donor.host.address4},{donor.port}"]
    return command


def _mount(pair):
    """Files whose only donor dies are served from the disk; fsync waits for it. The copy ends with the files."""
    pages = 2 * MIB // PAGE
    with tempfile.TemporaryDirectory(prefix="far-disk-") as directory, far_donors(pair.right, 1) as donors:
        copy = f"{directory}/copy"
        with far_mount(pair.left, donors, 16, ["--timeout", 3000, "--disk-copy", copy]) as mount:
            path = f"{mount.path}/file"
            with open(path, "wb") as file:
                for page in range(pages):
                    file.write(page.to_bytes(8, "little") * (PAGE // 8))
                file.flush()
                os.fsync(file.fileno())
            expect(mount.metrics()["rocegw_memory_session_disk_written_bytes_total"] >= 2 * MIB, "fsync did not wait for the disk")
            donors[0].kill()
            eventually("without the donor", lambda: mount.metrics()["rocegw_memory_session_donors_lost_total"] == 1, 10)
            lost = lost_pages(path)
            expect(not lost, f"{len(lost)} pages are lost although the disk has them")
            with open(path, "r+b", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                for page in range(pages):
                    expect(file.read(PAGE) == page.to_bytes(8, "little") * (PAGE // 8), f"page {page} is wrong")
                file.write(b"more")
                os.fsync(file.fileno())
        expect(not os.path.exists(copy), "the copy of files that are gone stayed")
    return f"{pages} pages from the disk"


def far_disk_cases():
    return [Case("far.disk.no_replica_left", 4200, _no_replica_left), Case("far.disk.everything_killed", 4200, _everything_killed),
            Case("far.disk.mount", 4200, _mount)]
