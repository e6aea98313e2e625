# SPDX-License-Identifier: Apache-2.0
"""Cases of block pools that processes share: several examples/layer_cache, donors (rocegw-memory blocks) on the right."""

import contextlib
import os
import re
import signal

from netlab.daemon import start_daemon
from netlab.fleet import eventually
from netlab.gateway_host import http_get

from ..case import Case, expect
from .load_cases import load_report

_SAMPLE = re.compile(r"^(rocegw_memory_pool_\w+?(?:\{[^}]*\})?) ([-+0-9.eE]+)$", re.MULTILINE)
_SHAPE = ("--blocks", 16, "--layers", 8)  # of 64 KiB: 8 MiB for each sequence


def secret_file(host, name, text):
    path = os.path.join(host.directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.chmod(path, 0o640)
    return path


class BlockDonor:
    """rocegw-memory blocks on a host."""

    def __init__(self, host, secret, mebibytes, number, options=()):
        self.host, self.number = host, number
        self.port = 7479 + 10 * number
        self._metrics = self.port + 1
        self._words = [*host.launcher, host.program("rocegw-memory"), "blocks", "--size", f"{mebibytes}MiB", "--secret", secret,
                       "--address", host.address4, "--port", str(self.port), "--metrics", f"127.0.0.1:{self._metrics}", *options]
        self.start()

    def start(self):
        self.job = start_daemon(self.host.lab, ["env", f"ROCEGW_SOCKET={self.host.attach_socket}", *self._words],
                                self.host.directory, f"block donor {self.number} of {self.host.name}", self.host.namespace)

    def metrics(self):
        page = http_get(self.host.namespace, self._metrics, "/metrics")
        return {name: float(value) for name, value in _SAMPLE.findall(page)}

    def kill(self):
        self.job.signal(signal.SIGKILL)
        self.job.wait(10)

    def end(self):
        return self.job.stop() if self.job.running else self.job.returncode


@contextlib.contextmanager
def block_donors(host, count, mebibytes):
    secret = secret_file(host, "pool.secret", "the secret of one tenant")
    donors = [BlockDonor(host, secret, mebibytes, number) for number in range(count)]
    try:
        yield donors, secret
    finally:
        ended = [(donor, donor.end()) for donor in donors]
    for donor, status in ended:
        expect(status in (0, -signal.SIGKILL), f"a donor ended with {status}:\n{donor.job.output}")


def _start(host, donors, secret, *options):
    words = [host.program("example_layer_cache"), "--secret", secret]
    for donor in donors:
        words += ["--donor", f"{donor.host.address4},{donor.port}"]
    return host.start([*words, *map(str, (*_SHAPE, *options))])


def run_members(host, donors, secret, *options):
    job = _start(host, donors, secret, *options)
    job.expect("^ready", 60)
    return load_report(job)


def _shared(path):
    """What one process has put is found by another one, which puts nothing. The donors' own host has no endpoint to them."""
    by_endpoint = 2 if path == "endpoints" else 0

    def run(pair):
        with block_donors(pair.right, 2, 64) as (donors, secret):
            usual = ("--sequences", 3, "--passes", 2, "--path", path)
            first = run_members(pair.left, donors, secret, *usual)
            expect(first["made"] == 384 and first["hits"] == 768 and first["evictions"] == 0, f"there is room for all: {first}")
            second = run_members(pair.left, donors, secret, *usual)
            expect(second["made"] == 0 and second["misses"] == 0, f"the other process did not find the values: {second}")
            expect(second["donors_by_endpoint"] == by_endpoint and second["donors_up"] == 2, f"another path: {second}")
            values = sum(donor.metrics()["rocegw_memory_pool_values"] for donor in donors)
            expect(values == 384, f"{values} values")
            own = run_members(pair.right, donors, secret, "--sequences", 3, "--passes", 1)
            expect(own["made"] == 0 and own["donors_by_endpoint"] == 0, f"a process on the donors' host: {own}")
            for donor in donors:
                eventually("no connection is left", lambda donor=donor: donor.metrics()["rocegw_memory_pool_connections"] == 0, 10)
        return f"layer of 1 MiB: average {second['average_us']} us, p99 {second['p99_us']} us"
    return Case(f"far.shared.{path.replace('-', '_')}", 4200, run)


def _evicts(pair):
    """Four processes use more values than there is room for, the same ones, and one of them is killed at it."""
    with block_donors(pair.right, 2, 16) as (donors, secret):
        usual = ("--sequences", 6, "--passes", 4)
        jobs = [_start(pair.left, donors, secret, *usual) for _ in range(4)]
        for job in jobs:
            job.expect("^ready", 60)
        jobs[0].signal(signal.SIGKILL)
        jobs[0].wait(10)
        reports = [load_report(job) for job in jobs[1:]]
        expect(all(report["evictions"] > 0 and report["hits"] > 0 for report in reports), f"nothing was evicted: {reports}")
        last = run_members(pair.left, donors, secret, "--sequences", 1, "--passes", 3)
        expect(last["hits"] > 3 * 128 - 40, f"one sequence has room: {last}")
    return f"{sum(report['hits'] for report in reports)} hits, {sum(report['evictions'] for report in reports)} evictions"


def _donor_killed(pair):
    """A donor of three is killed under two processes, with two replicas: no value is lost. It comes back, empty."""
    with block_donors(pair.right, 3, 64) as (donors, secret):
        usual = ("--sequences", 2, "--replicas", 2, "--timeout", 1000)
        jobs = [_start(pair.left, donors, secret, *usual, "--passes", 60) for _ in range(2)]
        for job in jobs:
            job.expect("^ready", 60)
        donors[0].kill()
        reports = [load_report(job) for job in jobs]
        expect(all(report["donors_lost"] == 1 for report in reports), f"the donor was not lost: {reports}")
        donors[0].start()
        after = run_members(pair.left, donors, secret, *usual, "--passes", 2)
        expect(after["donors_up"] == 3, f"the donor is not back: {after}")
        again = run_members(pair.left, donors, secret, *usual, "--passes", 1)
        expect(again["made"] == 0, f"values are missing: {again}")
    return f"{sum(report['made'] for report in reports)} blocks made, {sum(report['lost'] for report in reports)} gets failed"


def _values(donors):
    return sum(donor.metrics()["rocegw_memory_pool_values"] for donor in donors)


def _restored(pair):
    """A donor of three is killed while two members do nothing: each value gets its second replica again, so that the next donor may
    die as well. The first one comes back empty, and gets replicas."""
    with block_donors(pair.right, 3, 96) as (donors, secret):
        usual = ("--sequences", 2, "--replicas", 2, "--timeout", 1000)
        jobs = [_start(pair.left, donors, secret, *usual, "--passes", 1, "--linger") for _ in range(2)]
        for job in jobs:
            job.expect("^lingers", 60)
        expect(_values(donors) == 512, f"{_values(donors)} values of 256, twice")
        donors[0].kill()
        eventually("two replicas", lambda: _values(donors[1:]) == 512, 30)
        donors[0].start()
        eventually("replicas at the donor that is back", lambda: donors[0].metrics()["rocegw_memory_pool_values"] > 100, 30)
        donors[1].kill()
        after = run_members(pair.left, (donors[0], donors[2]), secret, *usual, "--passes", 2)
        expect(after["made"] == 0 and after["misses"] == 0, f"values are missing: {after}")
        for job in jobs:
            job.signal(signal.SIGUSR1)
        reports = [load_report(job) for job in jobs]
        restored = [report["restored"] for report in reports]
        expect(sum(restored) >= 256, f"values that were restored: {restored}")
    return f"{restored} replicas restored by two members"


def _strangers(pair):
    """A process with another secret gets in nowhere, and floods of it do not keep members out."""
    with block_donors(pair.right, 1, 64) as (donors, secret):
        other = secret_file(pair.right, "other.secret", "the secret of another tenant")
        for path in ("endpoints", "queue-pairs"):
            job = _start(pair.left, donors, other, "--path", path)
            status = job.wait(60)
            expect(status == 2 and "another secret" in job.output, f"a stranger ended with {status}:\n{job.output}")
        refused = donors[0].metrics()['rocegw_memory_pool_refused_joins_total{reason="secret"}']
        expect(refused == 2, f"{refused} refusals")
        flood = pair.left.start(["sh", "-c", f"while :; do {pair.left.program('example_layer_cache')} --secret {other} "
                                 f"--donor {pair.right.address4},{donors[0].port} 2>/dev/null; done"])
        try:
            report = run_members(pair.left, donors, secret, "--sequences", 1, "--passes", 2)
        finally:
            flood.signal(signal.SIGKILL)
            flood.wait(10)
        expect(report["hits"] == 256, f"a member: {report}")
    return "both paths refused"


def far_shared_pool_cases():
    return [_shared("endpoints"), _shared("queue-pairs"), Case("far.shared.evicts", 4200, _evicts),
            Case("far.shared.donor_killed", 4200, _donor_killed), Case("far.shared.restored", 4200, _restored), Case("far.shared.strangers", 4200, _strangers)]
