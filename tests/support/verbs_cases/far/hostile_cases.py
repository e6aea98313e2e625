# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory with peers that do not keep to the protocol (tests/bench/far/far_stranger.cc), and with failures at the worst
moment."""

import contextlib
import errno
import re
import signal
import time

from netlab.fleet import eventually
from netlab.job import LabError

from ..case import Case, expect
from .load_cases import MIB, FarDonor, far_donors, load_report, run_load, start_load

_REMOTE_ACCESS_ERROR = 10  # IBV_WC_REM_ACCESS_ERR
_BAD_DONOR_PORT = 7675


@contextlib.contextmanager
def _stranger(host, *words):
    job = host.start([host.program("far_stranger"), *map(str, words)])
    try:
        yield job
    finally:
        with contextlib.suppress(LabError):
            job.signal(signal.SIGKILL)
            job.wait(10)


def _said(host, *words):
    """What a stranger says that ends by itself."""
    with _stranger(host, *words) as job:
        status = job.wait(30)
        expect(status == 0, f"far_stranger {words} ended with {status}:\n{job.output}")
        return dict(re.findall(r"^(\w+) (\d+)$", job.output, re.MULTILINE))


def _sessions(pair):
    with far_donors(pair.right, 1) as donors:
        with _stranger(pair.left, "sessions", donors[0].host.address4, donors[0].port, "greedy") as job:
            opened = int(job.expect(r"^sessions (\d+)", 120).group(1))
            expect(64 <= opened < 128, f"a host has {opened} of 256 sessions")
            # Another tenant on another host is let in.
            run_load(pair.right, donors, "--size", MIB, "--slab", MIB, "--requests", 500)
            expect(donors[0].metrics()["rocegw_memory_sessions_refused_total"] >= 1, "the refused session is not counted")
        eventually("free of sessions", lambda: donors[0].metrics()["rocegw_memory_sessions"] == 0, 20)
    return f"{opened} sessions of one host"


def _sizes(pair):
    with far_donors(pair.right, 1, mebibytes=4096) as donors:
        for size, error in ((4096, errno.EINVAL), (2 << 30, errno.EINVAL), (MIB + 1, errno.EINVAL), (MIB, 0)):
            said = _said(pair.left, "lease", donors[0].host.address4, donors[0].port, size)
            expect(int(said["error"]) == error, f"a lease of {size} bytes: {said}")
    return "leases have sizes of slabs"


def _floods(pair):
    """Neither messages nor requests keep the donor from other sessions, from ending leases, and from its own end."""
    notes = []
    with far_donors(pair.right, 1, options=("--lease", "6")) as donors:
        began = time.monotonic()
        run_load(pair.right, donors, "--size", 8 * MIB, "--slab", MIB, "--requests", 200)
        longest = 2 + 5 * (time.monotonic() - began)  # on this machine, at the moment
        for flood in ("messages", "requests"):
            with _stranger(pair.left, flood, donors[0].host.address4, donors[0].port) as job:
                job.expect("^floods", 30)
                time.sleep(1)
                began = time.monotonic()
                victim = start_load(pair.right, donors, "--size", 8 * MIB, "--slab", MIB, "--requests", 2000, "--pause")
                took = time.monotonic() - began
                expect(took < longest, f"{flood}: the session was open after {took:.1f} s")
                notes.append(f"{flood}: open after {took:.1f} s")
                victim.expect("^halfway", 60)
                victim.signal(signal.SIGKILL)
                victim.wait(10)
                # The stranger has 8 leases of 64 KiB on each of 8 connections at most.
                eventually("the leases of the killed victim end", lambda: donors[0].metrics()["rocegw_memory_leased_bytes"] < 8 * MIB, 20)
                if flood == "requests":
                    began = time.monotonic()
                    expect(donors[0].end() == 0, "the donor did not end well")
                    expect(time.monotonic() - began < 5, "the donor did not end in time")
    return ", ".join(notes)


def _costly(pair):
    """Sessions that lease and return large memory in a loop do not hold up a session that leases little."""
    with far_donors(pair.right, 1, mebibytes=4096) as donors:
        with _stranger(pair.left, "messages", donors[0].host.address4, donors[0].port, 64 * MIB) as job:
            job.expect("^floods", 30)
            time.sleep(1)
            granted = donors[0].metrics()["rocegw_memory_leases_granted_total"]
            began = time.monotonic()
            # 16 leases, one answer after the other.
            run_load(pair.right, donors, "--size", 16 * MIB, "--slab", MIB, "--requests", 200)
            took = time.monotonic() - began
            more = donors[0].metrics()["rocegw_memory_leases_granted_total"] - granted
            expect(more > 16, f"the flood has stopped: {more} leases")
            expect(took < 10, f"the session took {took:.1f} s beside {more:.0f} leases of the flood")
    return f"{took:.1f} s beside {more:.0f} large leases"


def _cross(pair):
    with far_donors(pair.right, 1) as donors:
        said = _said(pair.left, "cross", donors[0].host.address4, donors[0].port)
    expect(said == {"own": "0", "other": str(_REMOTE_ACCESS_ERROR)}, f"statuses of reads of a lease: {said}")
    return "a key means nothing to another session"


def _talking_donor(pair):
    with far_donors(pair.right, 1) as donors, _stranger(pair.right, "donor", pair.right.address4, _BAD_DONOR_PORT, "talk") as bad:
        bad.expect("^donates", 30)
        job = start_load(pair.left, donors, "--donor", f"{pair.right.address4},{_BAD_DONOR_PORT}", "--size", 16 * MIB, "--slab", MIB,
                         "--requests", 4000, "--pause")
        try:
            job.expect("^halfway", 60)
            eventually("a second session", lambda: bad.output.count("session 1") >= 2, 30)
            job.signal(signal.SIGUSR1)
            report = load_report(job)
        finally:
            job.signal(signal.SIGKILL)
    expect(report["donors_lost"] >= 1 and report["timeouts"] == 0 and report["lost_pages"] == 0, f"only the bad donor is lost: {report}")
    return f"{report['donors_lost']} connections of the bad donor ended"


def _slow_donor(pair):
    with _stranger(pair.right, "donor", pair.right.address4, _BAD_DONOR_PORT, "slow") as bad:
        bad.expect("^donates", 30)
        began = time.monotonic()
        job = pair.left.start([pair.left.program("far_load"), "--donor", f"{pair.right.address4},{_BAD_DONOR_PORT}", "--size", str(16 * MIB),
                               "--slab", "65536"])
        status = job.wait(25)
        expect(status == 2 and "in time" in job.output, f"far_load ended with {status}:\n{job.output}")
    return f"gave up after {time.monotonic() - began:.0f} s"


def _restored_twice(pair):
    """The donor that gets a copy is killed and comes back while the source hangs: the copy begins anew."""
    with far_donors(pair.right, 1, mebibytes=64) as there:
        target = FarDonor(pair.left, 64, 1)
        try:
            job = start_load(pair.left, [*there, target], "--replicas", 2, "--size", 64 * MIB, "--slab", 64 * MIB, "--requests", 16000,
                             "--block", 65536, "--random", "--pause", "--settle", "--timeout", 10000)
        except BaseException:
            target.end()
            raise
        try:
            job.expect("^halfway", 120)
            target.kill()
            target = FarDonor(pair.left, 64, 1)
            eventually("leased again", lambda: target.metrics()["rocegw_memory_leased_bytes"] > 0, 20)
            time.sleep(0.1)
            pair.right.daemon.signal(signal.SIGSTOP)
            # What the target has is written; the next stretch waits for the source.
            time.sleep(0.3)
            target.kill()
            target = FarDonor(pair.left, 64, 1)
            eventually("leased once more", lambda: target.metrics()["rocegw_memory_leased_bytes"] > 0, 8)
            time.sleep(0.3)
            pair.right.daemon.signal(signal.SIGCONT)
            # The copy ends; reads come from both replicas then.
            time.sleep(3)
            job.signal(signal.SIGUSR1)
            report = load_report(job)
        finally:
            pair.right.daemon.signal(signal.SIGCONT)
            job.signal(signal.SIGKILL)
            target.end()
    expect(report["degraded"] == 0 and report["lost_pages"] == 0 and report["timeouts"] == 0, f"replicas were not restored: {report}")
    return f"{report['restored_bytes'] // MIB} MiB copied"


def _restored_under_load(pair):
    """Requests that fill the send queues of the donors do not keep a replica from being restored."""
    with far_donors(pair.right, 3, mebibytes=32) as donors:
        job = start_load(pair.left, donors, "--replicas", 2, "--size", 32 * MIB, "--slab", 8 * MIB, "--requests", 400000, "--random",
                         "--threads", 4, "--depth", 256, "--batching", 0, "--timeout", 5000, "--settle")
        try:
            time.sleep(1)
            donors[0].kill()
            report = load_report(job, 240)
        finally:
            job.signal(signal.SIGKILL)
    expect(report["restored_bytes"] < 2 * 32 * MIB, f"stretches were copied again and again: {report}")
    return f"{report['restored_bytes'] // MIB} MiB copied"


def _gateway_restarted(pair):
    """A donor ends with its gateway, so that its service manager starts it again: a deaf one would still be named to everybody."""
    donor = FarDonor(pair.right, 16)
    try:
        run_load(pair.left, [donor], "--size", MIB, "--slab", MIB, "--requests", 200)
        pair.right.stop_gateway()
        pair.right.start_gateway()
        status = donor.job.wait(20)
        expect(status not in (0, -signal.SIGTERM), f"the donor ended with {status}:\n{donor.job.output}")
    finally:
        donor.end()
    with far_donors(pair.right, 1) as donors:
        run_load(pair.left, donors, "--size", MIB, "--slab", MIB, "--requests", 200)
    return f"status {status}"


def far_hostile_cases():
    return [Case("far.hostile.sessions", 4200, _sessions), Case("far.hostile.sizes", 4200, _sizes),
            Case("far.hostile.floods", 4200, _floods), Case("far.hostile.costly", 4200, _costly), Case("far.hostile.cross", 4200, _cross),
            Case("far.hostile.talking_donor", 4200, _talking_donor), Case("far.hostile.slow_donor", 4200, _slow_donor),
            Case("far.hostile.restored_twice", 4200, _restored_twice), Case("far.hostile.restored_under_load", 4200, _restored_under_load),
            Case("far.hostile.gateway_restarted", 4200, _gateway_restarted)]
