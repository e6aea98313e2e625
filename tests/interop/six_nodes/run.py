#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Six hosts with gateways, agents and the adapter generic on one bridge, migrated by a real controller: failures of the list in
docs/operate/migration.md are injected, each ends where a person can leave, and then all six are migrated and verified. The service
is that of tests/e2e/migration. Some minutes; needs root.

  tests/interop/six_nodes/run.py --binaries build/ci/bin"""

import argparse
import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "tests", "e2e", "migration")]

from echo_service import Node  # noqa: E402
from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.gateway_host import GatewayHost  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import run_steps  # noqa: E402

SERVICE = os.path.join(ROOT, "tests", "e2e", "migration", "echo_service.py")
ADAPTER = os.path.join(ROOT, "agent", "migration", "adapters", "generic.py")
NODES, MTU = 6, 4200
CALLS = ("add-path", "verify-path", "remove-new", "remove-old", "health")
QUESTIONS = ("transport", "bytes", "exercise", "journal", "outstanding", "clients-on-old")


def check(condition, text):
    if not condition:
        raise LabError(text)


class Cluster:
    def __init__(self, lab, binaries):
        self.lab = lab
        self.binaries = binaries
        self.hosts = self._hosts()
        self.controller = Controller(lab, self.hosts[0], binaries)
        self.adapters, self.descriptions = lab.path("adapters"), lab.path("descriptions")
        for folder in (self.adapters, self.descriptions):
            os.mkdir(folder, 0o755)
        self.agents = [Agent(lab, host, binaries, f"migration: {{adapters_dir: {self.adapters}}}\nmetrics: {{address: \"\"}}\n")
                       for host in self.hosts]
        self.nodes = self._nodes()
        self.describe("r")
        adapter = os.path.join(self.adapters, "generic")
        with open(adapter, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport ROCEGW_GENERIC_DIR={self.descriptions} ROCEGW_GENERIC_STATE={lab.path('backups')}\n"
                       f"exec {os.path.abspath(ADAPTER)}\n")
        os.chmod(adapter, 0o755)
        self.migrations = 0

    def _hosts(self):
        hub, hosts = self.lab.namespace("hub"), []
        for number in range(1, NODES + 1):
            namespace = self.lab.namespace(f"n{number}")
            self.lab.veth(namespace, "link0", hub, f"to{number}", MTU)
            addresses = (f"10.77.0.{number}", f"fd77::{number}")
            self.lab.address(namespace, "link0", f"{addresses[0]}/24", f"{addresses[1]}/64")
            hosts.append(GatewayHost(self.lab, f"n{number}", namespace, "link0", addresses, self.binaries))
        self.lab.bridge(hub, "bridge0", [f"to{number}" for number in range(1, NODES + 1)], MTU)
        return hosts

    def _nodes(self):
        """Each node's client is on the next host."""
        nodes = {}
        for host, peer in zip(self.hosts, self.hosts[1:] + self.hosts[:1]):
            files = self.lab.path(f"service-{host.name}")
            os.mkdir(files)
            nodes[host.name] = {"address": host.address4, "peer": peer.name, "namespace": host.namespace, "files": files,
                                "launcher": [os.path.join(self.binaries, "rocegw-run"), "--socket", host.attach_socket, "--"]}
            for name, transport in (("service.conf", "tcp"), ("service.tcp", "tcp"), ("service.gateway", "gateway")):
                with open(os.path.join(files, name), "w", encoding="utf-8") as file:
                    file.write(f"transport {transport}\n")
        self.lab_file = self.lab.path("lab.json")
        lab = {"file": self.lab_file, "nodes": nodes, "slow": 0}
        with open(self.lab_file, "w", encoding="utf-8") as file:
            json.dump(lab, file)
        return [Node(lab, host.name) for host in self.hosts]

    def describe(self, rack, **questions):
        """Two nodes in each rack. Another name of the racks is another inventory. questions: words in the place of the usual ones."""
        files = {"path": self.lab.path("service-{node}/service.conf"), "tcp": self.lab.path("service-{node}/service.tcp"),
                 "gateway": self.lab.path("service-{node}/service.gateway")}
        nodes = [{"name": host.name, "transport": "tcp", "domains": {"rack": f"{rack}{number // 2}"}} for number, host in enumerate(self.hosts)]
        description = {"class": "dual-path", "nodes": nodes, "files": [files],
                       "commands": {call: [SERVICE, self.lab_file, call] for call in CALLS},
                       "questions": {**{name: [SERVICE, self.lab_file, name] for name in QUESTIONS}, **questions}}
        with open(os.path.join(self.descriptions, "echo.json.new"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        os.replace(os.path.join(self.descriptions, "echo.json.new"), os.path.join(self.descriptions, "echo.json"))

    # What the operator does -------------------------------------------------------------------------------------------

    def migrate(self, *words):
        return self.controller.ctl("migrate", *words)

    def seen(self):
        return json.loads(self.migrate("status", self.name, "-o", "json"))["migration"]

    @property
    def name(self):
        return f"m{self.migrations}"

    def begin(self):
        """A migration whose first wave is one node, and whose waves nobody has to approve."""
        self.migrations += 1
        inventory, plan = self.lab.path("inventory.json"), self.lab.path("plan.json")
        with open(inventory, "w", encoding="utf-8") as file:
            file.write(run([os.path.join(self.binaries, "rocegwctl"), "migrate", "inventory", "echo", "--", os.path.join(self.adapters, "generic")]))
        self.migrate("plan", inventory, "--to", "gateway", "--waves", "canary=1,100%", "--per-domain", "rack", "--max-unavailable", "2",
                     "--soak", "1s", "--auto-approve", "--name", self.name, "-f", plan)
        self.migrate("start", plan, "--timeout", "120")
        self.migrate("set", self.name, "retry-after=1s", "lost-after=5s", "step-deadline=20s")

    def await_state(self, *states):
        try:
            return eventually(" or ".join(states), lambda: self.seen()["state"] in states and self.seen(), 120)
        except LabError as error:
            raise LabError(f"{error}\n{self.migrate('status', self.name)}\n{self.migrate('events', self.name)}") from error

    def go_back(self):
        """Everything as before: a rollback, and TCP on each node."""
        self.migrate("rollback", self.name, "--all")
        self.await_state("ROLLED_BACK")
        check({node.transport() for node in self.nodes} == {"tcp"}, "a node does not use TCP")
        self.migrate("delete", self.name)

    def canary(self):
        """The node that changes first: waves are in the order of names within a rack."""
        return next(node for node in self.nodes if node.name == self.seen()["nodes"][0]["name"])

    # Steps ------------------------------------------------------------------------------------------------------------

    def starts(self):
        """Six hosts join, and their services run over TCP."""
        for host in self.hosts:
            host.start_gateway()
        self.controller.start()
        for node, host, agent in zip(self.nodes, self.hosts, self.agents):
            run(["ip", "netns", "exec", host.namespace, SERVICE, self.lab_file, "start-tcp", node.name])
            agent.join(self.controller.join_file(host.name)).start()
        eventually("six agents", lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == NODES)
        return ""

    def case_08_silent_fallback(self):
        """A service that says RDMA and moves its bytes over TCP goes back, and the others are as they were."""
        for node in self.nodes:
            node.falls_back(True)
        self.begin()
        found = self.await_state("PAUSED")
        for node in self.nodes:
            node.falls_back(False)
        check(found["pauseReason"] == "node-failed" and "its bytes go over tcp" in found["reason"], found["reason"])
        check([node["state"] for node in found["nodes"]].count("PENDING") == NODES - 1, str(found["nodes"]))
        self.go_back()
        return found["reason"]

    def case_03_gateway_killed(self):
        """A gateway that is killed when its node begins fails the new path, and the service goes on over TCP."""
        self.begin()
        victim = next(host for host in self.hosts if host.name == self.canary().name)
        victim.daemon.signal(signal.SIGKILL)
        victim.daemon.wait(10)
        found = self.await_state("PAUSED")
        check(found["pauseReason"] in ("node-failed", "lost-node", "node-blocked"), found["reason"])
        victim.start_gateway()
        eventually("the gateway is back", lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == NODES, 60)
        self.go_back()
        return found["reason"]

    def case_01_controller_killed(self):
        """The next controller goes on where the killed one was, and all six are migrated."""
        self.begin()
        self.controller.daemon.signal(signal.SIGKILL)
        self.controller.daemon.wait(10)
        self.controller.start()
        check(int(self.await_state("COMPLETED")["epoch"]) == 2, "the epoch is another one")
        self.go_back()
        return ""

    def case_04_node_lost(self):
        """A host whose agent and gateway are gone is quarantined, and goes on when it is back and a person says so."""
        self.begin()
        name = self.canary().name
        host, agent = next((host, agent) for host, agent in zip(self.hosts, self.agents) if host.name == name)
        for daemon in (agent.daemon, host.daemon):
            daemon.signal(signal.SIGKILL)
            daemon.wait(10)
        found = self.await_state("PAUSED")
        check(found["pauseReason"] == "lost-node" and found["nodes"][0]["state"] == "QUARANTINED", found["reason"])
        host.start_gateway()
        agent.start()
        eventually("the node is back", lambda: self.seen()["nodes"][0].get("reachable"), 60)
        self.migrate("retry", self.name, "--node", name)
        self.migrate("resume", self.name)
        self.await_state("COMPLETED")
        self.go_back()
        return found["reason"]

    def case_07_udp_blocked_one_way(self):
        """UDP 4791 is blocked after the preflight: the new path is taken away again, and never carried I/O."""
        self.begin()
        namespace = next(host for host in self.hosts if host.name == self.canary().name).namespace
        run(["nft", "add table inet blocked; add chain inet blocked in { type filter hook input priority 0; }; "
             "add rule inet blocked in udp dport 4791 drop"], namespace=namespace)
        found = self.await_state("PAUSED")
        run(["nft", "delete table inet blocked"], namespace=namespace)
        check(found["pauseReason"] == "node-failed" and "verify-path" in found["reason"], found["reason"])
        self.go_back()
        return found["reason"]

    def case_18_other_data(self):
        """A canary workload that read other data stops everything; a person decides about the node."""
        self.begin()
        node = self.canary()
        with open(node.path("journal"), "a", encoding="ascii") as journal:
            journal.write("gateway broken\n")
        found = self.await_state("PAUSED")
        check("read other data than it wrote" in found["reason"], found["reason"])
        check([one["state"] for one in found["nodes"]].count("PENDING") == NODES - 1, str(found["nodes"]))
        os.remove(node.path("journal"))
        self.go_back()
        return found["reason"]

    def case_30_tool_hangs(self):
        """A tool that does not answer is ended at the step's deadline."""
        self.describe("r", outstanding=["sleep", "1000"])
        self.begin()
        self.migrate("set", self.name, "step-deadline=4s")
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

    def all_six(self):
        """All six nodes use their gateways, by both witnesses, and go on doing so."""
        self.begin()
        self.await_state("COMPLETED")
        table = self.migrate("verify", self.name)
        check(table.count("verified") == NODES, table)
        for node in self.nodes:
            with open(node.path("journal"), encoding="ascii") as journal:
                check("broken" not in journal.read(), f"{node.name}: other data came back")
        return f"{table.count('verified')} verified"

    def steps(self):
        return (self.starts, self.case_01_controller_killed, self.case_03_gateway_killed, self.case_04_node_lost,
                self.case_07_udp_blocked_one_way, self.case_08_silent_fallback, self.case_14_drift, self.case_18_other_data,
                self.case_30_tool_hangs, self.case_32_output_not_understood, self.all_six)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        cluster = Cluster(lab, os.path.abspath(arguments.binaries))
        try:
            return run_steps("six_nodes", cluster.steps())
        finally:
            for node in cluster.nodes:
                for server in ("tcp", "rdma"):
                    node.stop(server)


if __name__ == "__main__":
    sys.exit(main())
