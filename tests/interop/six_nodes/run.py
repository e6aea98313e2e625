#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Six hosts with gateways and agents on one bridge, and a key-value store of our own on them (examples/kv_store: two groups of three
replicas), migrated by a real controller with the adapter generic. Failures of the list in docs/operate/migration.md are injected,
each ends where a person can leave, and then all six are migrated, verified and finalized. Canary workloads write and compare all the
time. Some minutes; needs root.

  tests/interop/six_nodes/run.py --binaries build/ci/bin [--case NAME]..."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "support"), HERE]

from cluster import NODES, Cluster, check  # noqa: E402
from netlab.fleet import eventually  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import run_steps  # noqa: E402

# A connection of a client that stays on TCP: it reads one key for ever, and ignores that the replica offers another transport.
STAY_ON_TCP = """
import socket, struct, sys, time
sys.path.insert(0, sys.argv[3])
from kv_wire import request
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    while True:
        request(connection, 6, b"check")
        time.sleep(0.2)
"""


class Cases(Cluster):
    @contextlib.contextmanager
    def injected(self, call, script):
        """The script runs at that call of each node; {node} in it is the node's name."""
        for service in self.services:
            with open(service.path("before-" + call), "w", encoding="utf-8") as file:
                file.write(script.replace("{node}", service.name).replace("{files}", service.node["files"]))
        try:
            yield
        finally:
            for service in self.services:
                os.remove(service.path("before-" + call))

    @contextlib.contextmanager
    def client_on_tcp(self, number):
        service = self.services[number]
        words = ["ip", "netns", "exec", service.node["namespace"], sys.executable, "-c", STAY_ON_TCP, service.node["address"], "7100", HERE]
        with subprocess.Popen(words) as client:
            try:
                yield
            finally:
                client.kill()

    def packets(self, number, rule=None):
        """A rule for packets that arrive at a host; None removes it."""
        namespace = self.hosts[number].namespace
        if rule is None:
            run(["nft", "delete table inet blocked"], namespace=namespace)
        else:
            run(["nft", f"add table inet blocked; add chain inet blocked in {{ type filter hook input priority 0; }}; "
                 f"add rule inet blocked in {rule} drop"], namespace=namespace)

    # Steps ------------------------------------------------------------------------------------------------------------

    def starts(self):
        """Six hosts join, and their replicas serve over TCP."""
        self.start()
        self.await_groups()
        return ""

    def case_01_controller_killed(self):
        """The next controller goes on where the killed one was, and all six are migrated."""
        self.begin()
        self.controller.daemon.signal(signal.SIGKILL)
        self.controller.daemon.wait(10)
        self.controller.start()
        check(int(self.await_state("COMPLETED")["epoch"]) == 2, "the epoch is another one")
        self.go_back()
        return ""

    def case_02_agent_killed(self):
        """An agent that is killed while its node changes and starts again finishes the node."""
        self.begin()
        agent = self.agents[self.number_of_first()]
        agent.daemon.signal(signal.SIGKILL)
        agent.daemon.wait(10)
        agent.start()
        self.await_state("COMPLETED")
        self.go_back()
        return ""

    def case_03_gateway_killed(self):
        """A gateway that is killed when its node begins fails the new path, and the replica goes on over TCP."""
        self.begin()
        victim = self.hosts[self.number_of_first()]
        victim.daemon.signal(signal.SIGKILL)
        victim.daemon.wait(10)
        found = self.await_state("PAUSED")
        check(found["pauseReason"] in ("node-failed", "lost-node", "node-blocked"), found["reason"])
        victim.start_gateway()
        self.await_agents()
        self.go_back()
        return found["reason"]

    def case_04_node_lost(self):
        """A host whose agent, gateway and replica are gone is quarantined, and goes on when it is back and a person says so."""
        self.begin()
        number = self.number_of_first()
        host, agent, service = self.hosts[number], self.agents[number], self.services[number]
        for daemon in (agent.daemon, host.daemon):
            daemon.signal(signal.SIGKILL)
            daemon.wait(10)
        service.stop("replica")
        found = self.await_state("PAUSED")
        check(found["pauseReason"] == "lost-node" and found["nodes"][0]["state"] == "QUARANTINED", found["reason"])
        host.start_gateway()
        service.start_replica()
        agent.start()
        eventually("the node is back", lambda: self.seen()["nodes"][0].get("reachable"), 60)
        self.await_groups()
        self.migrate("retry", self.name, "--node", service.name)
        self.migrate("resume", self.name)
        self.await_state("COMPLETED")
        self.go_back()
        return found["reason"]

    def case_06_whole_packets_are_lost(self):
        """A path that loses whole packets connects; the verification writes them and finds it."""
        with self.injected("exercise", "nft -f - <<'END'\nadd table inet blocked\n"
                           "add chain inet blocked in { type filter hook input priority 0; }\n"
                           "add rule inet blocked in udp dport 4791 meta length > 1500 drop\nEND\n"):
            self.begin(deadline="60s")
            number = self.number_of_first()
            found = self.await_state("PAUSED")
        self.packets(number)
        check("verify: " in found["reason"], found["reason"])
        self.go_back()
        return found["reason"]

    def case_07_udp_blocked_one_way(self):
        """UDP 4791 is blocked after the preflight: the new path is taken away again, and never carried I/O."""
        self.begin()
        number = self.number_of_first()
        self.packets(number, "udp dport 4791")
        found = self.expect_failed_node("verify-path")
        self.packets(number)
        self.go_back()
        return found["reason"]

    def case_08_silent_fallback(self):
        """A replica that says RDMA, and does not listen there any more: clients use TCP without a word. Its node goes back."""
        with self.injected("exercise", "rm -f {files}/rdma-path; sleep 2"):
            self.begin()
            found = self.expect_failed_node("its bytes go over tcp")
        self.go_back()
        return found["reason"]

    def case_11_a_replica_is_missing(self):
        """A group that lacks a replica changes no further one: two of three is its least majority."""
        self.services[4].stop("replica")
        self.migrations += 1
        try:
            self.migrate("start", self.plan(self.name), "--timeout", "120")
            raise LabError("the migration began")
        except LabError as error:
            text = str(error)
        check("replica n5 is down" in text, text)
        self.services[4].start_replica()
        self.await_groups()
        self.migrate("abort", self.name)
        self.migrate("delete", self.name)
        return "the preflight blocks it"

    def case_13_configuration_is_not_read(self):
        """A configuration that the replica does not understand changes nothing there: the old path never drains."""
        for service in self.services:
            with open(service.path("kv.gateway"), "a", encoding="utf-8") as file:
                file.write("transprot rdma\n")
        self.begin(deadline="6s")
        found = self.expect_failed_node("drain")
        for service in self.services:
            with open(service.path("kv.gateway"), encoding="utf-8") as file:
                lines = file.readlines()
            with open(service.path("kv.gateway"), "w", encoding="utf-8") as file:
                file.writelines(line for line in lines if "transprot" not in line)
        self.go_back()
        return found["reason"]

    def case_14_drift(self):
        """Somebody changes the cluster: no further node begins."""
        self.begin()
        # The inventory is read each half a minute: the first wave has to be under way for so long.
        self.migrate("set", self.name, "soak=90s")
        self.describe("other-")
        found = self.await_state("PAUSED")
        check(found["pauseReason"] == "drift", found["reason"])
        self.describe("r")
        self.go_back()
        return found["reason"]

    def case_15_a_second_migration(self):
        """A second migration of the cluster is refused while the first one runs."""
        self.begin()
        try:
            self.migrate("start", self.plan("second"), "--timeout", "30")
            raise LabError("two migrations of one cluster")
        except LabError as error:
            text = str(error)
        check(self.name in text, text)
        self.await_state("COMPLETED")
        self.go_back()
        return ""

    def case_16_the_way_back_fails(self):
        """A replica dies while its node changes: its way back fails, a person repairs it and says retry."""
        with self.injected("exercise", "kill -9 $(cat {files}/replica.pid); exit 1"):
            self.begin()
            number = self.number_of_first()
            eventually("the way back fails", lambda: self.seen()["nodes"][0]["state"] == "ROLLBACK_FAILED", 120)
        found = self.seen()
        service = self.services[number]
        service.start_replica()
        self.await_groups()
        self.migrate("retry", self.name, "--node", service.name)
        eventually("the node is as before", lambda: self.seen()["nodes"][0]["state"] == "ROLLED_BACK", 120)
        self.go_back()
        return found["reason"]

    def case_18_other_data(self):
        """A canary workload that reads other data than was acknowledged stops everything; a person decides about the node."""
        self.begin()
        number = self.number_of_first()
        name = f"journal{self.journals}-7"
        group = self.services[number].node["group"]
        run(self.services[number].words("put", group, name, "something else"))
        found = self.expect_failed_node("read other data than it wrote")
        for canary in self.canaries:
            canary.stop("canary", signal.SIGTERM)
        self.start_canaries()
        self.go_back()
        return found["reason"]

    def case_20_descriptors_are_exhausted(self):
        """A replica that may open hardly a descriptor more accepts no queue pair: the new path is not verified."""
        with self.injected("add-path", "pid=$(cat {files}/replica.pid); used=$(ls /proc/$pid/fd | sort -n | tail -n 1); "
                           "prlimit --pid $pid --nofile=$((used + 4)):"):
            self.begin()
            found = self.expect_failed_node("verify-path", "add-path")
        for service in self.services:
            run(["prlimit", "--pid", str(service.pid("replica")), "--nofile=1024:"])
        self.go_back()
        return found["reason"]

    def case_22_a_client_on_the_old_path(self):
        """Finalize leaves the old path of a replica that a client still reaches over TCP; later it removes it."""
        self.begin()
        self.await_state("COMPLETED")
        with self.client_on_tcp(2):
            eventually("a client on TCP", lambda: self.services[2].clients("tcp") == 1)
            self.migrate("finalize", self.name)
            self.await_state("COMPLETED")
            held = [node["name"] for node in self.seen()["nodes"] if node["state"] != "OLD_REMOVED"]
            check(held == ["n3"], str(held))
            check(not os.path.exists(self.services[2].path("rdma-only")), "the old path is removed")
        self.migrate("finalize", self.name)
        self.await_state("FINALIZED")
        return f"{held[0]} was held"

    def case_17_rollback_after_finalize(self):
        """After finalize there is no way back but another migration."""
        try:
            self.migrate("rollback", self.name, "--all")
            raise LabError("rolled back")
        except LabError as error:
            text = str(error)
        check("plan a migration back" in text, text)
        return ""

    def case_23_the_old_path_never_drains(self):
        """A client that goes on using the old path after the switch: the node goes back when the step's time is over."""
        with self.client_on_tcp(0):
            self.begin(deadline="6s")
            check(self.number_of_first() == 0, "another node is the first one")
            found = self.expect_failed_node("drain")
        self.go_back()
        return found["reason"]

    def case_30_tool_hangs(self):
        """A tool that does not answer is ended at the step's deadline."""
        self.describe("r", outstanding=["sleep", "1000"])
        self.begin(deadline="4s")
        found = self.await_state("PAUSED")
        self.describe("r")
        check("drain: " in found["reason"] and "in time" in found["reason"], found["reason"])
        self.go_back()
        return found["reason"]

    def case_32_output_not_understood(self):
        """An answer that is no number pauses at the node; resume asks again."""
        self.describe("r", outstanding=["echo", "many"])
        self.begin()
        found = self.await_state("PAUSED")
        check(found["pauseReason"] == "inconclusive" and "drain: " in found["reason"], found["reason"])
        self.describe("r")
        self.migrate("resume", self.name)
        self.await_state("COMPLETED")
        self.go_back()
        return found["reason"]

    def all_six(self):
        """All six nodes use their gateways, by both witnesses, and go on doing so; every acknowledged value is there."""
        self.begin()
        self.await_state("COMPLETED")
        table = self.migrate("verify", self.name)
        check(table.count("verified") == NODES, table)
        said = []
        for canary in self.canaries:
            canary.stop("canary", signal.SIGTERM)
            with open(canary.path("canary.status"), encoding="utf-8") as file:
                said.append(file.read().strip())
            check(said[-1].startswith("intact"), said[-1])
            group = self.services[int(canary.node["canary_of"][1:]) - 1].node["group"]
            said.append(run(canary.words("compare", group, canary.path(f"journal{self.journals}"))).strip())
        # The last step of the proof uses them again.
        self.start_canaries()
        return f"{table.count('verified')} verified; " + "; ".join(said)

    def steps(self):
        cases = sorted(name for name in dir(self) if name.startswith("case_"))
        last = ["case_22_a_client_on_the_old_path", "case_17_rollback_after_finalize"]
        return [getattr(self, name) for name in ["starts", *(name for name in cases if name not in last), "all_six"]] + \
            [self.undo_all_six, *(getattr(self, name) for name in last)]

    def undo_all_six(self):
        """And back: all six use TCP again."""
        self.go_back()
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--case", action="append", help="only this case (case_08 is enough); may be repeated")
    arguments = parser.parse_args()
    began = time.monotonic()
    with Lab() as lab:
        cases = Cases(lab, os.path.abspath(arguments.binaries))
        steps = cases.steps()
        if arguments.case:
            steps = steps[:1] + [step for step in steps if step.__name__.startswith(tuple(arguments.case))]
        try:
            return run_steps("six_nodes", steps)
        finally:
            cases.stop()
            print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
