# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory over two kinds of devices: the session on one side, the donor on the other. The right host is a guest with
soft-RoCE; the left one has a gateway, or is such a guest as well."""

import os
import signal

from ..case import Case, expect
from .load_cases import MIB, load_report

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


# far_program in a cgroup that holds half of its memory.
_IN_CGROUP = """mkdir -p /tmp/cgroup && mount -t cgroup2 none /tmp/cgroup && echo +memory >/tmp/cgroup/cgroup.subtree_control &&
mkdir /tmp/cgroup/small && echo 8388608 >/tmp/cgroup/small/memory.max && echo $$ >/tmp/cgroup/small/cgroup.procs && exec far_program pageable"""


def _swap_nbd(pair):
    """By hand (it does not pass on a crowded machine): the guest's kernel has the driver nbd: it swaps to a device over the socket of rocegw-memory swap, donors on both sides."""
    guest = pair.right
    here, there = _donate(pair.left), _donate(guest)
    swap = guest.start([guest.program("rocegw-memory"), "swap", "--size", "28MiB", "--slab", "1MiB", "--replicas", "2", "--metrics", "",
                        "--timeout", "30000", "--donor", f"{pair.left.address4}:{_PORT}", "--donor", f"{guest.address4}:{_PORT}"])
    try:
        device = swap.expect(r"swaps to .* (/dev/nbd\d+)", 60).group(1)
        expect(device in guest.run_plain("cat /proc/swaps"), "the kernel does not know the swap")
        program = guest.start(_IN_CGROUP)
        status = program.wait(240)
        expect(status == 0 and "all is as it must be" in program.output, f"far_program ended with {status}:\n{program.output}")
        swapped = dict(line.split() for line in guest.run_plain("cat /proc/vmstat").splitlines())
        expect(int(swapped["pswpout"]) > 1000 and int(swapped["pswpin"]) > 1000, f"nothing was swapped: {swapped['pswpout']}")
        # A donor dies; the pages that are still there come back from the other one.
        here.signal(signal.SIGKILL)
        swap.signal(signal.SIGTERM)
        status = swap.wait(60)
        expect(status == 0, f"swap ended with {status}:\n{swap.output}")
        expect(device not in guest.run_plain("cat /proc/swaps"), "the kernel still knows the swap")
    finally:
        for job in (swap, here, there):
            job.signal(signal.SIGKILL)
            job.wait(30)
    return f"{swapped['pswpout']} pages out, {swapped['pswpin']} pages in"


def far_peer_cases():
    by_hand = [Case("far.swap_nbd", 4200, _swap_nbd)] if os.environ.get("ROCEGW_FAR_SWAP_NBD") else []
    return [*by_hand, _transfers("left", "right"), _transfers("right", "left"), Case("far.peer_killed", 4200, _donor_killed)]
