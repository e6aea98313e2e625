# SPDX-License-Identifier: Apache-2.0
"""Steps about what operators are told: explain, doctor, connectivity test, sysdump."""

import glob
import json
import os
import shlex
import signal
import socket

from hosts import Hosts, check
from netlab.fleet import eventually
from netlab.gateway_host import inside_of
from netlab.job import LabError, LocalJob, run


def steal_udp_port():
    """A socket in the gateway's place: the kernel shares out packets among those of one user that allow it."""
    thief = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    thief.bind(("::", 4791))
    return thief


class DiagnosisSteps(Hosts):

    def explain(self):
        """What was refused is told, to the operator and through the tunnel, with its reason"""
        text = "".join(self.controller.ctl("explain", "-g", host.name, "--tenant", "blue") for host in self.hosts)
        check("QUOTA_EXCEEDED" in text and "Requests that were refused" in text, text)
        events = "".join(self.controller.ctl("events", "-g", host.name, "-o", "json") for host in self.hosts)
        check("tenants/blue/pools/fast" in events, events)
        pools = self.controller.ctl("get", "pools", "-g", "left")
        check("blue/fast" in pools and "qps" in pools, pools)
        try:
            self.controller.ctl("explain", "-g", "nowhere")
        except LabError as error:
            check("NOT_FOUND" in str(error), str(error))
        else:
            raise LabError("a gateway that does not exist was explained")

    def doctor(self):
        """Faults that are made are named with their remedies, on the host, through the agent, and of the whole fleet"""
        left, right = self.hosts
        # What this machine lacks itself is not at issue; what is made below is new.
        before = {host.name: self.found(*self.here(host)) for host in self.hosts}
        for host in self.hosts:
            check(self.found(self.controller, "-g", host.name) - before[host.name] == set(),
                  f"the agent's way finds other things than {before[host.name]} of {host.name}")
        # Programs that do nothing keep the path MTU they have agreed on.
        programs = self.start_endless()
        for job in programs:
            job.signal(signal.SIGSTOP)
        # On both: what one end sends and the other does not take would also cut an agent off.
        for host in self.hosts:
            host.set_mtu(1500)
        run(["ethtool", "-K", right.interface, "tx", "off"], namespace=right.namespace)
        thief = inside_of(right.namespace, steal_udp_port)
        try:
            new = {host.name: self.found(*self.here(host)) - before[host.name] for host in self.hosts}
            check(new["left"] == {("gateways/left/ports/port0", "path_mtu")}, f"of left: {new}")
            check(new["right"] == {("gateways/right", "udp_port"), ("gateways/right/ports/port0", "offloads"),
                                   ("gateways/right/ports/port0", "path_mtu")}, f"of right: {new}")
            text = self.doctor_of(right.control_words("doctor"), 10)
            check(f"held by process {os.getpid()} (" in text, text)
            check(f"ethtool -K {right.interface} tx on" in text, text)
            fleet = self.found(self.controller)
            check(new["left"] | new["right"] <= fleet, f"of the fleet: {fleet}")
            check(not [one for one in fleet if one[0] == "fleet"], f"of the fleet as a whole: {fleet}")
            self.kill(self.agents[0])
            eventually("a gateway that is away", lambda: ("gateways/left", "state") in self.found(self.controller))
        finally:
            thief.close()
            for job in programs:
                job.signal(signal.SIGKILL)
                job.wait(10)
            for host in self.hosts:
                host.set_mtu(4200)
            run(["ethtool", "-K", right.interface, "tx", "on"], namespace=right.namespace)
        self.agents[0].start()
        self.in_sync()
        eventually("nothing that was not there before", lambda: all(
            self.found(*self.here(host)) == before[host.name] for host in self.hosts))
        self.perftest(1)

    def here(self, host):
        return host, "--agent-dir", os.path.join(host.directory, "agent")

    def found(self, whom, *words):
        """(object, check) of each finding that is not good: of a host, or through the controller."""
        command = whom.control_words if whom in self.hosts else whom.ctl_words
        document = json.loads(self.doctor_of(command("doctor", *words, "-o", "json")))
        return {(one["object"], one["check"]) for one in document["diagnoses"] if one["severity"] != "OK"}

    def doctor_of(self, command, code=None):
        """What doctor prints. code: what it must end with, else it must be what the worst finding is."""
        # Progress goes where its terminal is.
        job = LocalJob(["sh", "-c", shlex.join(command) + " 2>/dev/null"], namespace=self.hosts[0].namespace)
        ended = job.wait(30)
        check(ended == code if code else ended in (0, 9, 10), f"doctor ended with {ended}:\n{job.output}")
        return job.output

    def connectivity(self):
        """Probes tell whether programs on two hosts reach each other, and of those that do not why; none is left"""
        left, right = self.hosts
        tests = self.tested("--all", "--bandwidth", "--bytes", "4MiB", "--count", "100", code=0)
        check([(one["from"], one["to"]) for one in tests] == [("gateways/left", "gateways/right"), ("gateways/right", "gateways/left")],
              f"pairs are {tests}")
        for one in tests:
            found = one["connectivity"]
            check(found["roundTrips"] == 100 and found["bulkBytes"] == str(4 << 20), f"measured: {one}")
            check(0 < int(found["roundTripMinNs"]) <= int(found["roundTripMedianNs"]) <= int(found["roundTripP99Ns"]), f"{one}")
            check(int(found["bulkBytesPerSecond"]) > 0 and found["transport"] == "channel", f"{one}")
            check(one["address"] == (right if one["to"].endswith("right") else left).address4, f"{one}")
        one, = self.tested("--from", "left", "--to", "left", "--size", "64KiB", "--count", "10", "--pool", "blue/fast", code=0)
        check(one["connectivity"]["roundTrips"] == 10, f"of a host with itself: {one}")
        one, = self.tested("--from", "left", "--to", "right", "--pool", "blue/none", code=10)
        check(one["fault"] == "ATTACH_REFUSED" and "no pool tenants/blue/pools/none" in one["message"], f"{one}")
        self.expect_no_probes()
        # What the right one sends is lost, which it knows when it looks for the way, and no TCP.
        for family in ("-4", "-6"):
            run(["ip", "-n", right.namespace, family, "rule", "add", "pref", "1", "ipproto", "udp", "dport", "4791", "blackhole"])
        try:
            tests = self.tested("left", "right", "--timeout", "5", code=10)
            check([one["fault"] for one in tests] == ["TIMED_OUT", "UNREACHABLE"], f"{tests}")
            check("4791" in tests[0]["remedy"] and "unreachable" in tests[1]["message"], f"{tests}")
            table = self.tested_as_text("left", "right", "--timeout", "5", code=10)
            check("timed out" in table and "remedy: " in table and "0 ok, 2 failed" in table, table)
            self.expect_no_probes()
            # Who asked goes, and so does an agent.
            words = self.controller.ctl_words("connectivity", "test", "--from", "left", "--to", "right", "--timeout", "60")
            gone = LocalJob(words, namespace=left.namespace)
            eventually("two probes", lambda: len(self.probes()) == 2)
            gone.signal(signal.SIGINT)
            gone.wait(10)
            eventually("the end of the probes", lambda: not self.probes())
            gone = LocalJob(words, namespace=left.namespace)
            eventually("two probes", lambda: len(self.probes()) == 2)
            self.kill(self.agents[1])
            check(gone.wait(30) == 10 and "agent away" in gone.output, gone.output)
            eventually("the end of the probes", lambda: not self.probes())
        finally:
            for family in ("-4", "-6"):
                run(["ip", "-n", right.namespace, family, "rule", "del", "pref", "1"])
        one, = self.tested("--from", "left", "--to", "right", code=10)
        check((one["fault"], one["noticedAt"]) == ("AGENT_AWAY", "gateways/right"), f"{one}")
        self.agents[1].start()
        self.in_sync()
        self.tested("--all", code=0)
        self.expect_no_probes()
        check("TestConnectivity" in self.controller.ctl("audit", "list", "-o", "json"), "tests are not on record")

    def tested(self, *words, code):
        return json.loads(self.tested_as_text(*words, "-o", "json", code=code))["tests"]

    def tested_as_text(self, *words, code):
        job = LocalJob(["sh", "-c", shlex.join(self.controller.ctl_words("connectivity", "test", *words)) + " 2>/dev/null"],
                       namespace=self.hosts[0].namespace)
        ended = job.wait(90)
        check(ended == code, f"connectivity test {words} ended with {ended}:\n{job.output}")
        return job.output

    def expect_no_probes(self):
        """They are reaped, and their gateways have everything back."""
        eventually("the end of the probes", lambda: not self.probes())
        for host in self.hosts:
            eventually(f"no session of a probe on {host.name}", lambda h=host: "rocegw-probe" not in h.control("get", "sessions"))

    def probes(self):
        """Processes that are probes of this fleet's agents."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
                with open(os.path.join(os.path.dirname(path), "environ"), "rb") as file:
                    ours = self.lab.directory.encode() in file.read()
            except OSError:
                continue
            if ours and os.path.basename(words[0]) == b"rocegw-probe":
                found.append(os.path.basename(os.path.dirname(path)))
        return found

    def dump(self):
        """sysdump gathers what support asks for"""
        path = self.lab.path("dump.tar.gz")
        self.controller.ctl("sysdump", "-f", path)
        check(os.path.getsize(path) > 1000, "the dump is empty")
