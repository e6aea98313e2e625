# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory over two kinds of devices: the session on one side, the donor on the other. The right host is a guest with
soft-RoCE; the left one has a gateway, or is such a guest as well."""

import signal

from .case import Case, expect
from .far_cases import MIB, load_report

_PORT = 7475


def _donate(host):
    job = host.start([host.program("rocegw-memory"), "donate", "--size", "32MiB", "--address", host.address4, "--port", str(_PORT),
                      "--metrics", ""])
    job.expect("donates", 60)
    return job


def _transfers(session_on, donor_on):
    def run(pair):
        user, giver = getattr(pair, session_on), getattr(pair, donor_on)
        donor = _donate(giver)
        try:
            words = [user.program("far_load"), "--donor", f"{giver.address4},{_PORT}", "--size", str(8 * MIB), "--slab", str(MIB),
                     "--timeout", "30000"]
            notes = []
            for more in (["--requests", "2000", "--random"], ["--requests", "40", "--block", str(MIB), "--threads", "1", "--depth", "2"],
                         ["--requests", "500", "--from-pool", "--polling", "2"]):
                report = load_report(user.start([*words, *more]), 180)
                expect(report["donors_lost"] == 0, f"the donor was lost: {report}")
                notes.append(f"{report['requests']} requests in {report['seconds']:.1f} s")
        finally:
            donor.signal(signal.SIGTERM)
            status = donor.wait(30)
        expect(status == 0, f"the donor ended with {status}:\n{donor.output}")
        return ", ".join(notes)
    return Case(f"far.session_{session_on}", 4200, run)


def _donor_killed(pair):
    """Two donors of which one dies in the middle: replicas serve."""
    here, there = _donate(pair.left), _donate(pair.right)
    try:
        words = [pair.right.program("far_load"), "--donor", f"{pair.left.address4},{_PORT}", "--donor", f"{pair.right.address4},{_PORT}",
                 "--replicas", "2", "--size", str(4 * MIB), "--slab", str(MIB), "--requests", "3000", "--random", "--pause", "--timeout",
                 "30000"]
        job = pair.right.start(words)
        job.expect("^halfway", 120)
        here.signal(signal.SIGKILL)
        job.signal(signal.SIGUSR1)
        report = load_report(job, 180)
        expect(report["donors_lost"] == 1 and report["lost_pages"] == 0, f"{report}")
    finally:
        for donor in (here, there):
            donor.signal(signal.SIGKILL)
            donor.wait(30)
    return f"{report['retried']} reads from another replica"


def far_peer_cases():
    return [_transfers("left", "right"), _transfers("right", "left"), Case("far.peer_killed", 4200, _donor_killed)]
