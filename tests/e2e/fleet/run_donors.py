#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Donors of remote memory as objects of the fleet, as real processes: one controller, two hosts with an agent and a gateway
each; donors of the right host, files of the left one in their memory. Needs root, FUSE.

  tests/e2e/fleet/run_donors.py --binaries build/dev/bin
"""

import argparse
import os
import random
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.daemon import start_daemon  # noqa: E402
from netlab.donor_fleet import DonorFleet  # noqa: E402
from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import http_get  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import last_words, run_steps  # noqa: E402
from verbs_cases.far.files import direct_read, direct_write  # noqa: E402
from verbs_cases.far.load_cases import FarDonor  # noqa: E402
from verbs_cases.far.nbd_cases import far_device  # noqa: E402
from verbs_cases.far.nbd_client import NbdClient  # noqa: E402

MIB = 1 << 20
FILE_BYTES = 8 * MIB
STEPS = ("appear", "approve", "find", "mount", "others", "quota", "limit", "drain", "undrain", "later", "drained_gateway", "killed", "agent_away", "controller_away",
         "withdrawn")
METRICS = 7477


def check(condition, text):
    if not condition:
        raise LabError(text)


class Donors(DonorFleet):
    """All steps, each a method whose docstring is its line of the report."""

    def __init__(self, lab, binaries):
        super().__init__(lab, binaries)
        self.lab = lab
        self.files = None
        self.path = None
        self.data = random.Random(1).randbytes(FILE_BYTES)

    def start_donor(self, name, number):
        self.donors[name] = FarDonor(self.right, 64, number, ["--announce", self.folders[1], "--name", name])

    def mount_words(self, tenant="default"):
        path = os.path.join(self.left.directory, f"far-{tenant}")
        os.makedirs(path, exist_ok=True)
        words = [*self.left.launcher, self.left.program("rocegw-memory"), "mount", path, "--size", "16MiB", "--slab", "1MiB",
                 "--replicas", "2", "--donors", "fleet", "--donors-dir", self.folders[0], "--tenant", tenant,
                 "--metrics", f"127.0.0.1:{METRICS}"]
        return path, ["env", f"ROCEGW_SOCKET={self.left.attach_socket}", *words]

    def mount_metrics(self):
        page = http_get(self.left.namespace, METRICS, "/metrics")
        return {line.split()[0]: float(line.split()[1]) for line in page.splitlines() if line.startswith("rocegw_memory_")}

    def content_is_right(self):
        for offset in range(0, FILE_BYTES, MIB):
            check(direct_read(f"{self.path}/file", offset, MIB) == self.data[offset:offset + MIB], f"wrong bytes at {offset}")

    def appear(self):
        """Donors that announce themselves to their agent are objects of the fleet, with a state"""
        self.start()
        for number, name in enumerate("abcd"):
            self.start_donor(name, number)
        wanted = {f"right/{name}": ("unapproved", 0) for name in "abcd"}
        eventually(f"four donors: {self.states()}", lambda: self.states() == wanted)
        text = self.ctl("describe", "donor", "right/a")
        check(self.right.address4 in text and "64MiB" in text, f"a donor is described as\n{text}")
        for name in "abcd":
            self.ctl("update", "donor", f"right/{name}", f"failure_domain=rack-{name}")

    def approve(self):
        """Donors are used when an administrator has approved them, and not before or after"""
        try:
            self.ctl("find", "donors", "--size", "1MiB")
        except LabError as error:
            check("0 MiB" in str(error), f"donors without approval:\n{error}")
        else:
            raise LabError("donors without approval are found")
        check(self.donors["a"].metrics()["rocegw_memory_draining"] == 1, "a donor without approval grants leases")
        for name in "abcd":
            self.ctl("approve", "donor", f"right/{name}")
        wanted = {f"right/{name}": ("serving", 0) for name in "abcd"}
        eventually(f"four donors that serve: {self.states()}", lambda: self.states() == wanted)
        self.ctl("revoke", "donor", "right/d")
        eventually("a revoked donor that grants nothing",
                   lambda: self.donors["d"].metrics()["rocegw_memory_draining"] == 1)
        check("right/donors/d" not in self.ctl("find", "donors", "--size", "1MiB", "-o", "name"), "a revoked donor is found")
        self.ctl("approve", "donor", "right/d")
        eventually(f"four donors that serve: {self.states()}", lambda: self.states() == wanted)
        text = self.ctl("audit", "list", "-o", "json")
        check("ApproveDonor" in text and "RevokeDonor" in text, "approvals are not in the audit")

    def find(self):
        """The controller finds room in different failure domains, and says what is there when it is not enough"""
        text = self.ctl("find", "donors", "--size", "32MiB", "--replicas", "2", "-o", "name")
        check(set(text.split()) == {f"gateways/right/donors/{name}" for name in "abcd"}, f"found:\n{text}")
        for words, why in ((("--size", "1GiB"), "256 MiB"), (("--size", "65MiB", "--replicas", "4"), "4 failure domains")):
            try:
                self.ctl("find", "donors", *words)
            except LabError as error:
                check(why in str(error), f"what is missing is not said:\n{error}")
            else:
                raise LabError(f"donors for {words}")

    def mount(self):
        """A program gets its donors from the fleet, by the agent of its host; replicas are in different domains"""
        directory, words = self.mount_words()
        self.files = start_daemon(self.lab, words, self.left.directory, "rocegw-memory mount", self.left.namespace)
        # Programs of a host have a mount namespace of their own.
        self.path = f"/proc/{self.files.pid}/root{directory}"
        with open(f"{self.path}/file", "wb"):
            pass
        for offset in range(0, FILE_BYTES, MIB):
            direct_write(f"{self.path}/file", offset, self.data[offset:offset + MIB])
        self.content_is_right()
        # The session begins with as many donors as it needs, and joins the others afterwards.
        eventually("four donors of the session", lambda: self.mount_metrics()["rocegw_memory_session_donors"] == 4)
        metrics = self.mount_metrics()
        check(metrics["rocegw_memory_session_donors"] == 4 and metrics["rocegw_memory_session_shared_domain_slabs"] == 0,
              f"the session: {metrics}")
        eventually(f"32 leases: {self.states()}", lambda: sum(leases for _, leases in self.states().values()) >= 30)

    def others(self):
        """A block device and a program with --far get their donors from the fleet as well"""
        fleet = ("donors=fleet", f"donors-dir={self.folders[0]}", "replicas=2")
        with far_device(self.left, [], 8, self.left.directory, *fleet) as device:
            client = NbdClient(device.path)
            client.write(1 << 20, self.data[:MIB])
            check(client.read(1 << 20, MIB) == self.data[:MIB], "wrong bytes of the block device")
            client.close()
        words = ["env", f"ROCEGW_SOCKET={self.left.attach_socket}", self.left.launcher[0], "--far", "0.75", "--far-size", "48MiB",
                 "--far-least", "512KiB", "--far-report", "--far-replicas", "2", "--far-donors", "fleet",
                 "--far-donors-dir", self.folders[0], "--", self.left.program("far_program")]
        job = self.left.start_plain(words)
        check(job.wait(120) == 0 and "all is as it must be" in job.output, f"far_program:\n{job.output}")
        check(re.search(r"rocegw-far: at most \d+ MiB mapped, \d+ faults, \d+ pages read, [1-9]", job.output),
              f"far_program has used no remote memory:\n{job.output}")

    def quota(self):
        """Quotas of the fleet hold at the donor; a tenant without a pool on the host gets nothing"""
        for tenant in ("red", "blue"):
            self.ctl("create", "tenant", tenant)
        self.ctl("create", "pool", "red/p", "gateways.all=true")
        for name in "abc":
            self.ctl("update", "donor", f"right/{name}", "quotas=[{tenant: tenants/red, bytes: 0}]")
        for tenant, why in (("red", "1 failure domain"), ("blue", "no pool")):
            _, words = self.mount_words(tenant)
            job = self.left.start_plain(words)
            check(job.wait(30) == 3 and why in job.output, f"tenant {tenant}:\n{job.output}")
        # The donor refuses as well what names it without the fleet.
        donor = self.donors["a"]
        eventually("a donor that follows the quota",
                   lambda: "Applied generation: 4" in " ".join(self.ctl("describe", "donor", "right/a").split()))
        words = self.mount_words("red")[1]
        at = words.index("--donors")
        words[at:at + 4] = ["--donor", f"{donor.host.address4}:{donor.port}"]
        words[words.index("--replicas") + 1] = "1"
        job = self.left.start_plain(words)
        check(job.wait(60) == 3 and "refused" in job.output, f"the donor:\n{job.output}")

    def limit(self):
        """A tenant's limit over all donors holds at the donors, however its sessions come to them"""
        for name in "abc":
            self.ctl("update", "donor", f"right/{name}", "quotas=[]")
        self.ctl("update", "tenant", "red", "donated_bytes=24MiB")

        def leased(tenant):
            sums = [donor.metrics().get(f'rocegw_memory_tenant_leased_bytes{{tenant="{tenant}"}}', 0) for donor in self.donors.values()]
            return sum(sums)

        eventually("shares of four donors", lambda: self.ctl("describe", "tenant", "red").count("right/donors/") == 4)
        # 32 MiB are wanted.
        _, words = self.mount_words("red")
        job = self.left.start_plain(words)
        check(job.wait(30) == 3 and "limit over all donors is 24 MiB" in job.output, f"more than the limit:\n{job.output}")
        # A session that names donors itself gets no more than their shares.
        at = words.index("--donors")
        words[at:at + 4] = [word for donor in self.donors.values() for word in ("--donor", f"{donor.host.address4}:{donor.port}")]
        job = self.left.start_plain(words)
        check(job.wait(60) == 3 and ("not as much memory" in job.output or "Disk quota exceeded" in job.output), f"more than the shares:\n{job.output}")
        self.ctl("update", "tenant", "red", "donated_bytes=40MiB")
        _, words = self.mount_words("red")
        words[words.index("--metrics") + 1] = f"127.0.0.1:{METRICS + 20}"
        eventually("donors that follow larger shares", lambda: self.mounts(words), 60)
        check(leased("red") <= 40 * MIB, f"{leased('red')} bytes are leased")
        self.ctl("update", "tenant", "red", "donated_bytes=")

    def mounts(self, words):
        """Whether the command mounts; the mount is ended again."""
        try:
            files = start_daemon(self.lab, words, self.left.directory, "rocegw-memory mount of red", self.left.namespace)
        except LabError:
            return False
        check(0 < self.donors["a"].metrics().get('rocegw_memory_tenant_leased_bytes{tenant="red"}', 0), "no lease")
        check(files.stop() == 0, "the mount ended badly")
        return True

    def drain(self):
        """Drains of two donors at once move data to others and return the leases; nothing is lost, nothing fails"""
        before = self.mount_metrics()
        # The session learns of both drains at the same moment: slabs with both replicas there cannot leave one first.
        self.files.signal(signal.SIGSTOP)
        for name in "ba":
            self.ctl("drain", "donor", f"right/{name}")
        eventually("donors that follow their orders",
                   lambda: all(self.donors[name].metrics()["rocegw_memory_draining"] == 1 for name in "ab"))
        self.files.signal(signal.SIGCONT)
        self.ctl("drain", "donor", "right/a", "--wait", "--timeout", "60")
        eventually(f"two empty donors: {self.states()}",
                   lambda: self.states()["right/a"] == self.states()["right/b"] == ("drained", 0))
        for name in "ab":
            check(self.donors[name].metrics()["rocegw_memory_leased_bytes"] == 0, "the donor has leases")
        after = self.mount_metrics()
        check(after["rocegw_memory_session_returned_leases_total"] > 0 and after["rocegw_memory_session_donors_lost_total"] == 0
              and after["rocegw_memory_session_degraded_slabs"] == 0 and after["rocegw_memory_session_lost_pages"] == 0,
              f"the session: {before} {after}")
        check(after["rocegw_memory_session_draining_donors"] == 2, f"the session: {after}")
        self.content_is_right()
        text = self.ctl("find", "donors", "--size", "1MiB", "-o", "name")
        check("right/donors/a" not in text, f"a donor that drains is found:\n{text}")

    def undrain(self):
        """A donor that is back in service has room again"""
        for name in "ab":
            self.ctl("undrain", "donor", f"right/{name}")
        eventually(f"donors that serve: {self.states()}",
                   lambda: self.states()["right/a"] == self.states()["right/b"] == ("serving", 0))

    def later(self):
        """A running session uses donors that come later when its own have no room left for a slab"""
        for number, name in ((4, "e"), (5, "f")):
            self.start_donor(name, number)
        eventually(f"two more donors: {self.states()}",
                   lambda: all(self.states().get(f"right/{name}") == ("unapproved", 0) for name in "ef"))
        for name in "ef":
            self.ctl("update", "donor", f"right/{name}", f"failure_domain=rack-{name}")
            self.ctl("approve", "donor", f"right/{name}")
        for name in "abcd":
            self.ctl("drain", "donor", f"right/{name}")
        eventually(f"four empty donors: {self.states()}",
                   lambda: all(self.states()[f"right/{name}"] == ("drained", 0) for name in "abcd"), 60)
        metrics = self.mount_metrics()
        check(metrics["rocegw_memory_session_donors"] == 6 and metrics["rocegw_memory_session_degraded_slabs"] == 0
              and metrics["rocegw_memory_session_lost_pages"] == 0, f"the session: {metrics}")
        self.content_is_right()
        for name in "abcd":
            self.ctl("undrain", "donor", f"right/{name}")
        eventually("donors that serve", lambda: {state for state, _ in self.states().values()} == {"serving"})
        for name in "ef":
            self.ctl("drain", "donor", f"right/{name}", "--wait", "--timeout", "60")
            check(self.donors.pop(name).end() == 0, "a donor ended badly")
            eventually("an absent donor", lambda name=name: self.states()[f"right/{name}"][0] == "absent")
            self.ctl("delete", "donor", f"right/{name}")
        self.content_is_right()

    def drained_gateway(self):
        """A drain of a gateway takes its donors along"""
        self.ctl("drain", "right")
        eventually("no donor that serves", lambda: {state for state, _ in self.states().values()} <= {"draining", "drained"})
        self.ctl("undrain", "right")
        eventually("donors that serve", lambda: {state for state, _ in self.states().values()} == {"serving"})
        self.content_is_right()

    def killed(self):
        """A donor that dies is absent; its replicas are restored on the others"""
        self.donors["d"].kill()
        eventually(f"an absent donor: {self.states()}", lambda: self.states()["right/d"][0] == "absent")
        eventually("all replicas", lambda: self.mount_metrics()["rocegw_memory_session_degraded_slabs"] == 0)
        self.content_is_right()
        self.start_donor("d", 3)
        eventually(f"a donor that is back: {self.states()}", lambda: self.states()["right/d"][0] == "serving")

    def agent_away(self):
        """Without its agent a donor is silent after a while, and serves its sessions"""
        self.agents[1].daemon.signal(signal.SIGKILL)
        self.agents[1].daemon.wait(10)
        eventually(f"silent donors: {self.states()}", lambda: {state for state, _ in self.states().values()} == {"silent"}, 60)
        self.content_is_right()
        self.agents[1].start()
        eventually(f"donors that serve: {self.states()}", lambda: {state for state, _ in self.states().values()} == {"serving"})

    def controller_away(self):
        """A controller that dies keeps the donors' specs; the next one has their states again"""
        self.ctl("drain", "donor", "right/c")
        self.controller.daemon.signal(signal.SIGKILL)
        self.controller.daemon.wait(10)
        self.controller.start()
        eventually(f"a drained donor: {self.states()}",
                   lambda: self.states()["right/c"] == ("drained", 0) and self.states()["right/a"][0] == "serving", 60)
        self.ctl("undrain", "donor", "right/c")
        self.content_is_right()

    def withdrawn(self):
        """A donor that is asked to stop is absent at once, and can be deleted"""
        check(self.files.stop() == 0, f"the mount ended badly:\n{self.files.output}")
        for donor in self.donors.values():
            check(donor.end() == 0, f"a donor ended badly:\n{donor.job.output}")
        eventually(f"absent donors: {self.states()}", lambda: {state for state, _ in self.states().values()} == {"absent"}, 10)
        self.ctl("delete", "donor", *(f"right/{name}" for name in "abcd"))
        check(self.states() == {}, f"donors: {self.states()}")
        text = self.ctl("audit", "list", "-o", "json")
        check("gateways/right/donors/a" in text and "DrainDonor" in text, "donors are not in the audit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        donors = Donors(lab, os.path.abspath(arguments.binaries))
        return run_steps("donors", [getattr(donors, step) for step in STEPS],
                         lambda: last_words(donors.controller, *donors.agents, *donors.hosts))


if __name__ == "__main__":
    sys.exit(main())
