# SPDX-License-Identifier: Apache-2.0
"""Cases of the window onto remote memory (rocegw_memory_map.h): far_window loads and stores on the left."""

import signal

from ..case import Case, expect
from .load_cases import MIB, far_donors, load_report


def _start(host, donors, *options):
    words = [host.program("far_window")]
    for donor in donors:
        words += ["--donor", f"{donor.host.address4},{donor.port}"]
    job = host.start([*words, "--slab", str(MIB), *map(str, options)])
    job.expect("^ready", 60)
    return job


def run_window(host, donors, *options):
    """Report of far_window."""
    return load_report(_start(host, donors, *options))


def _load_store(*options):
    def run(pair):
        return _load_and_store(pair, *options)
    return run


def _load_and_store(pair, *options):
    with far_donors(pair.right, 2) as donors:
        report = run_window(pair.left, donors, "--size", 16 * MIB, "--resident", 2 * MIB, "--steps", 8000, *options)
        expect(report["resident"] <= 2 * MIB // 4096, f"more pages are resident than may be: {report}")
        expect(report["evicted"] > 0 and report["written_back"] > 0 and report["faults"] > 0, f"nothing was evicted: {report}")
        expect(report["write_back_failures"] == 0, f"write back failed: {report}")
        expect(report["reactivated"] > 0, f"no page was used again: {report}")
        donors[0].expect_free()
    return f"fault p50 {report['fault_p50_us']} us, read {report['read_p50_us']} us, scan {report['scan_mib_per_s']} MiB/s"


def _donor_killed(replicas, *faults):
    def run(pair):
        # The first donor that connects gets the first leases; the others have room for what is stored later.
        with far_donors(pair.right, replicas + 1) as donors:
            options = ["--size", 16 * MIB, "--resident", 2 * MIB, "--steps", 6000, "--pause", "--replicas", replicas,
                       "--timeout", 3000, *faults]
            job = _start(pair.left, donors, *options, *(["--expect-lost"] if replicas == 1 else []))
            try:
                job.expect("^halfway", 120)
                donors[0].kill()
                job.signal(signal.SIGUSR1)
                report = load_report(job)
            finally:
                job.signal(signal.SIGKILL)
                job.wait(10)
        expect((report["lost"] > 0) == (replicas == 1), f"lost pages: {report}")
        return f"{report['lost']} pages lost"
    return Case(f"far.map.donor_killed.{'in_thread' if faults else f'replicas{replicas}'}", 4200, run)


def far_map_cases():
    return [Case("far.map.load_store", 4200, _load_store()), _donor_killed(1), _donor_killed(2),
            Case("far.map.in_thread", 4200, _load_store("--faulting-thread")), _donor_killed(1, "--faulting-thread")]
