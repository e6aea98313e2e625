# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory: the right host donates memory, programs of the left host use it, over both gateways."""

import contextlib
import json
import re
import signal

from netlab.daemon import start_daemon
from netlab.fleet import eventually
from netlab.gateway_host import http_get
from netlab.job import LabError

from ..case import Case, CaseFailure, expect

MIB = 1 << 20
_SAMPLE = re.compile(r"^(rocegw_memory_\w+?)(\{[^}]*\})? ([-+0-9.eE]+)$", re.MULTILINE)


class FarDonor:
    """rocegw-memory donate on a host."""

    def __init__(self, host, mebibytes, number=0, options=()):
        self.host = host
        self.port = 7475 + 10 * number
        self._metrics = self.port + 1
        words = [*host.launcher, host.program("rocegw-memory"), "donate", "--size", f"{mebibytes}MiB",
                 "--address", host.address4, "--port", str(self.port), "--metrics", f"127.0.0.1:{self._metrics}", *options]
        self.job = start_daemon(host.lab, ["env", f"ROCEGW_SOCKET={host.attach_socket}", *words], host.directory,
                                f"donor {number} of {host.name}", host.namespace)

    def metrics(self):
        page = http_get(self.host.namespace, self._metrics, "/metrics")
        return {name + labels: float(value) for name, labels, value in _SAMPLE.findall(page)}

    def expect_free(self, seconds=10):
        """Leases end with their session a moment later, and not only when they expire (15 s). Those of a program that was killed
        expire: give the donor a short --lease."""
        eventually("free of leases", lambda: self.metrics()["rocegw_memory_leased_bytes"] == 0, seconds)

    def status(self):
        job = self.host.start_plain([self.host.program("rocegw-memory"), "status", "--metrics", f"127.0.0.1:{self._metrics}"])
        expect(job.wait(20) == 0, f"status failed:\n{job.output}")
        return job.output

    def kill(self):
        self.job.signal(signal.SIGKILL)
        self.job.wait(10)

    def end(self):
        """Status of a donor that is asked to stop."""
        return self.job.stop() if self.job.running else self.job.returncode


@contextlib.contextmanager
def far_donors(host, count, mebibytes=64, options=()):
    """Donors of one host; those that still run are stopped as a service manager does, and must end well."""
    donors = [FarDonor(host, mebibytes, number, options) for number in range(count)]
    killed = False
    try:
        yield donors
    except BaseException:
        killed = True
        raise
    finally:
        ended = [(donor, donor.end()) for donor in donors]
        for donor, status in ended:
            expect(killed or status in (0, -signal.SIGKILL), f"a donor ended with {status}:\n{donor.job.output}")


def start_load(host, donors, *options):
    """far_load on a host; its session is open."""
    words = [host.program("far_load")]
    for donor in donors:
        words += ["--donor", f"{donor.host.address4},{donor.port}"]
    job = host.start([*words, *map(str, options)])
    job.expect("^ready", 60)
    return job


def load_report(job, timeout=120):
    """What far_load counted. CaseFailure when a byte was wrong."""
    status = job.wait(timeout)
    found = re.search(r"^\{.*\}$", job.output, re.MULTILINE)
    expect(status == 0 and found, f"far_load ended with {status}:\n{job.output[-3000:]}")
    return json.loads(found.group(0))


def run_load(host, donors, *options):
    return load_report(start_load(host, donors, *options))


def _transfers(pair):
    """Every way of batching and of polling, small and large blocks, from a pool, copied and registered."""
    notes = []
    with far_donors(pair.right, 2) as donors:
        for batching in range(4):
            report = run_load(pair.left, donors, "--batching", batching, "--requests", 4000, "--slab", MIB, "--window", 32768,
                              "--depth", 32, "--reads", 0 if batching else 50)
            expect(batching & 1 or report["merged"] == 0, f"merged without being asked to: {report}")
            expect(not batching & 1 or report["operations"] < report["requests"], f"nothing was merged: {report}")
            expect(batching != 2 or report["doorbells"] < report["operations"], f"nothing was chained: {report}")
            notes.append(f"{batching}: {report['operations']} operations, {report['doorbells']} doorbells")
        for polling in range(5):
            run_load(pair.left, donors, "--polling", polling, "--pollers", 2, "--requests", 2000, "--random")
        large = ("--block", MIB, "--requests", 100, "--threads", 2, "--depth", 4)
        report = run_load(pair.left, donors, *large, "--copy-limit", 65536)
        expect(report["registered"] > 0 and report["copied_bytes"] == 0, f"large blocks were copied: {report}")
        report = run_load(pair.left, donors, *large, "--copy-limit", 4 * MIB)
        expect(report["registered"] == 0 and report["copied_bytes"] > 0, f"blocks were registered: {report}")
        report = run_load(pair.left, donors, *large, "--from-pool")
        expect(report["copied_bytes"] == 0 and report["registered"] == 0, f"the pool was not used: {report}")
        donors[0].expect_free()
    return "; ".join(notes)


def _window(pair):
    with far_donors(pair.right, 1) as donors:
        report = run_load(pair.left, donors, "--window", 16384, "--batching", 0, "--requests", 4000, "--depth", 16)
    expect(report["peak_in_flight"] <= 16384 and report["window_refusals"] > 0, f"the window did not hold: {report}")
    return f"{report['window_refusals']} operations waited"


def _quota(pair):
    with far_donors(pair.right, 1, options=("--tenant-size", "16MiB", "--quota", "nobody=0")) as donors:
        words = [pair.left.program("far_load"), "--donor", f"{pair.right.address4},{donors[0].port}"]
        for tenant, why in (("large", "not as much memory"), ("nobody", "quota")):
            job = pair.left.start([*words, "--size", str(32 * MIB), "--slab", str(MIB), "--tenant", tenant])
            expect(job.wait(30) == 2 and why in job.output, f"tenant {tenant}:\n{job.output}")
        run_load(pair.left, donors, "--size", 16 * MIB, "--slab", MIB, "--requests", 2000)
        # The donor hears of the end of a session with its messages.
        eventually("a donor without leases", lambda: re.search(r"^leased +0 B$", donors[0].status(), re.MULTILINE))
        expect(re.search(r"^donated +64.0 MiB$", donors[0].status(), re.MULTILINE), f"status:\n{donors[0].status()}")
        expect(donors[0].metrics()["rocegw_memory_sessions_refused_total"] == 1, "the refused session is not counted")
    return "refused above the quota"


def _zeroed(pair):
    """far_load checks that blocks which it has not written are zero: the second program gets the first one's memory."""
    with far_donors(pair.right, 1, mebibytes=16) as donors:
        everything = ("--size", 16 * MIB, "--slab", MIB, "--threads", 1, "--requests", 4096)
        run_load(pair.left, donors, *everything, "--reads", 0, "--tenant", "first")
        run_load(pair.left, donors, *everything, "--reads", 100, "--tenant", "second")
    return "the second tenant's memory is zero"


def _donor_killed(replicas, donor_count):
    def run(pair):
        with far_donors(pair.right, donor_count, mebibytes=128) as donors:
            options = ["--replicas", replicas, "--size", 32 * MIB, "--slab", MIB, "--requests", 20000, "--random",
                       "--timeout", 3000]
            job = start_load(pair.left, donors, *options, *(["--expect-lost"] if replicas == 1 else []))
            donors[0].kill()
            report = load_report(job)
            expect(report["donors_lost"] >= 1, f"the killed donor was not noticed: {report}")
            expect(replicas == 1 or report["lost"] == report["lost_pages"] == 0, f"pages were lost: {report}")
        return f"{report['retried']} reads from another replica, {report['lost']} lost blocks"
    return Case(f"far.donor_killed.replicas{replicas}", 4200, run)


def _restored(pair):
    """After a donor's death its replicas are copied to a third donor; then the second one may die as well."""
    with far_donors(pair.right, 3, mebibytes=64) as donors:
        job = start_load(pair.left, donors, "--replicas", 2, "--size", 16 * MIB, "--slab", MIB, "--requests", 16000,
                         "--threads", 2, "--pause", "--settle", "--timeout", 3000)
        job.expect("^halfway", 60)
        try:
            donors[0].kill()
            job.signal(signal.SIGUSR1)
            report = load_report(job)
        finally:
            job.signal(signal.SIGKILL)
    expect(report["restored_bytes"] > 0 and report["degraded"] == 0 and report["lost_pages"] == 0,
           f"replicas were not restored: {report}")
    return f"{report['restored_bytes'] // 1024} KiB copied"


def _host_hangs(pair):
    """One replica on each host; the gateway of the right one hangs for longer than the session waits for a donor."""
    with far_donors(pair.right, 1) as there, far_donors(pair.left, 1) as here:
        job = start_load(pair.left, there + here, "--replicas", 2, "--size", 16 * MIB, "--slab", MIB, "--requests", 8000,
                         "--threads", 2, "--random", "--pause", "--settle", "--timeout", 1000)
        try:
            job.expect("^halfway", 60)
            pair.right.daemon.signal(signal.SIGSTOP)
            job.signal(signal.SIGUSR1)
            # The rest is served by the left host alone; --settle waits for the right one to come back.
            job.expect("^done", 30)
            pair.right.daemon.signal(signal.SIGCONT)
            report = load_report(job)
        finally:
            pair.right.daemon.signal(signal.SIGCONT)
            job.signal(signal.SIGKILL)
    expect(report["timeouts"] >= 1 and report["lost_pages"] == 0, f"the hanging host was not noticed: {report}")
    expect(report["max_us"] < 6e6, f"a request waited for {report['max_us']} us: {report}")
    expect(report["degraded"] == 0 and report["restored_bytes"] > 0, f"replicas were not restored: {report}")
    return f"longest wait {report['max_us'] / 1e6:.1f} s, {report['restored_bytes'] // 1024} KiB copied afterwards"


def _program_killed(pair):
    """The leases of a killed program expire, and their memory can be leased again."""
    with far_donors(pair.right, 1, mebibytes=16, options=("--lease", "6")) as donors:
        job = start_load(pair.left, donors, "--size", 16 * MIB, "--slab", MIB, "--pause", "--requests", 4000)
        try:
            job.expect("^halfway", 60)
            expect(donors[0].metrics()["rocegw_memory_leased_bytes"] == 16 * MIB, "no lease")
        except LabError as error:
            raise CaseFailure(str(error)) from error
        finally:
            job.signal(signal.SIGKILL)
            job.wait(10)
        donors[0].expect_free(20)
        run_load(pair.left, donors, "--size", 16 * MIB, "--slab", MIB, "--requests", 2000)
    pair.right.expect_idle()
    return "its memory was leased again"


def far_cases():
    return [Case("far.transfers", 4200, _transfers), Case("far.window", 4200, _window), Case("far.quota", 4200, _quota),
            Case("far.zeroed", 4200, _zeroed), _donor_killed(1, 2), _donor_killed(2, 3),
            Case("far.restored", 4200, _restored), Case("far.host_hangs", 4200, _host_hangs),
            Case("far.program_killed", 4200, _program_killed)]
