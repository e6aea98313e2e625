#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Donors of a shared block pool as objects of the fleet, as real processes: one controller, two hosts with an agent and a gateway each;
donors (rocegw-memory blocks --announce) on the right host, members (examples/layer_cache --pool) on the left one. Needs root.

  tests/e2e/fleet/run_pool.py --binaries build/dev/bin
"""

import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.donor_fleet import DonorFleet  # noqa: E402
from netlab.fleet import eventually  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import last_words, run_steps  # noqa: E402
from verbs_cases.far.load_cases import load_report  # noqa: E402
from verbs_cases.far.shared_pool_cases import BlockDonor, secret_file  # noqa: E402

MIB = 1 << 20
STEPS = ("appear", "approve", "members", "drain", "undrain", "quota", "limit", "withdrawn")
LONGER_THAN_LEAVING = 40


def check(condition, text):
    if not condition:
        raise LabError(text)


class Pool(DonorFleet):
    """All steps, each a method whose docstring is its line of the report."""

    def __init__(self, lab, binaries):
        super().__init__(lab, binaries)
        self.secret = secret_file(self.right, "pool.secret", "the secret of one tenant")

    def await_states(self, wanted, seconds=30):
        """Waits until each donor has a state, and a lease or none. `wanted`: by name."""
        by_place = {f"right/{name}": state for name, state in wanted.items()}
        try:
            eventually(f"donors as {wanted}", lambda: self.states() == by_place, seconds)
        except LabError as error:
            raise LabError(f"{error}: {self.states()}") from error

    def metric(self, donor, name):
        return self.donors[donor].metrics()["rocegw_memory_pool_" + name]

    def member(self, *options, tenant="red"):
        words = [self.left.program("example_layer_cache"), "--secret", self.secret, "--pool", "kv", "--tenant", tenant, "--donors-dir",
                 self.folders[0], "--blocks", "16", "--layers", "8", "--sequences", "2", "--replicas", "2", *options]
        return self.left.start(words)

    def refused(self, why, **options):
        job = self.member("--passes", "1", **options)
        check(job.wait(60) == 2 and why in job.output, f"a member, not '{why}':\n{job.output}")

    def appear(self):
        """Donors of a pool are donors of the fleet; before they are approved they are closed, and the pool has no members"""
        self.start()
        # Programs of a host get donors for tenants that have a pool there.
        self.ctl("create", "tenant", "red")
        self.ctl("create", "pool", "red/p", "gateways.all=true")
        for number, name in enumerate("abc"):
            self.donors[name] = BlockDonor(self.right, self.secret, 64, number,
                                           ("--announce", self.folders[1], "--name", name, "--pool", "kv", "--tenant", "red"))
        self.await_states({name: ("unapproved", 0) for name in "abc"})
        text = self.ctl("describe", "donor", "right/a")
        check("kv" in text and self.right.address4 in text, f"a donor is described as\n{text}")
        for name in "abc":
            self.ctl("update", "donor", f"right/{name}", f"failure_domain=rack-{name}")
            check(self.metric(name, "open_bytes") == 0, "a donor without approval has a table")
        self.refused("block pool kv of tenants/red has 0 MiB")

    def approve(self):
        """Approved donors open their tables, and are found by the name of the pool, not as donors for sessions"""
        for name in "abc":
            self.ctl("approve", "donor", f"right/{name}")
        self.await_states({name: ("serving", 1) for name in "abc"})
        found = self.ctl("find", "donors", "--size", "1MiB", "--replicas", "2", "--pool", "kv", "--tenant", "red", "-o", "name").split()
        check(found == [f"gateways/right/donors/{name}" for name in "abc"], f"found: {found}")
        for words, why in ((("--size", "1MiB", "--tenant", "red"), "0 MiB"),
                           (("--size", "1MiB", "--tenant", "red", "--pool", "other"), "block pool other"),
                           (("--size", "1MiB", "--pool", "kv"), "block pool kv of tenants/default has 0 MiB")):
            try:
                self.ctl("find", "donors", *words)
            except LabError as error:
                check(why in str(error), f"not '{why}':\n{error}")
            else:
                raise LabError(f"donors for {words}")

    def members(self):
        """Members find the donors by their agent, and one another's values"""
        first = load_report(self.member("--passes", "1"))
        check(first["made"] == 256 and first["donors_up"] == 3 and first["errors"] == first["wrong"] == 0, f"the first member: {first}")
        second = load_report(self.member("--passes", "1"))
        check(second["made"] == 0 and second["donors_up"] == 3, f"the second member: {second}")

    def drain(self):
        """A drain of a donor takes its memory back; members leave it before, and no value is lost"""
        busy = self.member("--passes", "100000")
        quiet = self.member("--passes", "1", "--linger")
        busy.expect("^ready", 60)
        quiet.expect("^lingers", 60)
        self.ctl("drain", "donor", "right/a", "--wait", "--timeout", str(LONGER_THAN_LEAVING))
        self.await_states({"a": ("drained", 0), "b": ("serving", 1), "c": ("serving", 1)})
        check(self.metric("a", "open_bytes") == self.metric("a", "values") == self.metric("a", "connections") == 0,
              f"the drained donor: {self.donors['a'].metrics()}")
        check(busy.running, f"the member under load has ended:\n{busy.output}")
        # A member under load has no end: what it says when it is asked counts.
        busy.signal(signal.SIGKILL)
        busy.wait(10)
        quiet.signal(signal.SIGUSR1)
        report = load_report(quiet)
        check(report["donors_lost"] == 0 and report["donors_up"] == 2 and report["errors"] == 0, f"a member that left: {report}")
        after = load_report(self.member("--passes", "1"))
        check(after["made"] == 0 and after["donors_up"] == 2, f"each value had a second replica: {after}")

    def undrain(self):
        """Members that run join a donor that is back, and put replicas there"""
        quiet = self.member("--passes", "1", "--linger")
        quiet.expect("^lingers", 60)
        self.ctl("undrain", "donor", "right/a")
        self.await_states({name: ("serving", 1) for name in "abc"})
        eventually("replicas at the donor that is back", lambda: self.metric("a", "values") > 50, 60)
        quiet.signal(signal.SIGUSR1)
        report = load_report(quiet)
        check(report["donors_up"] == 3 and report["restored"] > 50, f"a member: {report}")

    def quota(self):
        """A quota bounds the table; without any the donor is closed"""
        whole = self.metric("b", "open_bytes")
        for quota, most in (("16MiB", 16 * MIB), ("0", 0)):
            self.ctl("update", "donor", "right/b", f"quotas=[{{tenant: tenants/red, bytes: {quota}}}]")
            eventually(f"a table of at most {most} bytes", lambda most=most: self.metric("b", "open_bytes") <= most
                       and (self.metric("b", "open_bytes") > most // 2 or most == 0), LONGER_THAN_LEAVING)
        self.await_states({"a": ("serving", 1), "b": ("serving", 0), "c": ("serving", 1)})
        found = self.ctl("find", "donors", "--size", "1MiB", "--pool", "kv", "--tenant", "red", "-o", "name")
        check("right/donors/b" not in found, f"a closed donor is found:\n{found}")
        self.ctl("update", "donor", "right/b", "quotas=[]")
        eventually("the whole table", lambda: self.metric("b", "open_bytes") == whole, LONGER_THAN_LEAVING)
        self.await_states({name: ("serving", 1) for name in "abc"})

    def limit(self):
        """Tables count against the tenant's limit over all donors"""
        self.ctl("update", "tenant", "red", "donated_bytes=100MiB")
        eventually("shares of three donors", lambda: self.ctl("describe", "tenant", "red").count("right/donors/") == 3)

        def total():
            return sum(self.metric(name, "open_bytes") for name in "abc")
        check(total() > 100 * MIB, "the tables fit already")
        # What was leased before the limit stays (DonorShare); nothing new is opened beyond it.
        for name in "abc":
            self.ctl("drain", "donor", f"right/{name}", "--wait", "--timeout", str(LONGER_THAN_LEAVING))
        for name in "abc":
            self.ctl("undrain", "donor", f"right/{name}")
        eventually("tables within the limit", lambda: 0 < total() <= 100 * MIB, LONGER_THAN_LEAVING)
        self.ctl("update", "tenant", "red", "donated_bytes=")

    def withdrawn(self):
        """A donor that is asked to stop is absent at once"""
        for donor in self.donors.values():
            check(donor.end() == 0, f"a donor ended badly:\n{donor.job.output}")
        self.await_states({name: ("absent", 0) for name in "abc"}, 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        pool = Pool(lab, os.path.abspath(arguments.binaries))
        return run_steps("pool", [getattr(pool, step) for step in STEPS],
                         lambda: last_words(pool.controller, *pool.agents, *pool.hosts))


if __name__ == "__main__":
    sys.exit(main())
