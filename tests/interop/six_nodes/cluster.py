# SPDX-License-Identifier: Apache-2.0
"""Six hosts with gateways, agents and the adapter generic on one bridge, two groups of three replicas of examples/kv_store, and a
controller, as an operator sees them."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), HERE]

from kv_service import PORT, RDMA_PORT, Service  # noqa: E402
from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.gateway_host import GatewayHost  # noqa: E402
from netlab.job import LabError, run  # noqa: E402

SERVICE = os.path.join(HERE, "kv_service.py")
ADAPTER = os.path.join(ROOT, "agent", "migration", "adapters", "generic.py")
NODES, MTU = 6, 4200
CALLS = ("health", "ok-to-stop", "add-path", "verify-path", "remove-new", "remove-old")
QUESTIONS = ("transport", "bytes", "exercise", "journal", "outstanding", "clients-on-old")
COUNT_TCP = (f"add table inet kv; add counter inet kv replica_bytes; add chain inet kv arrives {{ type filter hook input priority 0; }}; "
             f"add chain inet kv leaves {{ type filter hook output priority 0; }}; "
             f"add rule inet kv arrives tcp dport {PORT} counter name replica_bytes; "
             f"add rule inet kv leaves tcp sport {PORT} counter name replica_bytes")


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
        self.services = self._services()
        self.canaries = self.services[:2]  # the canary of each group runs on a host of the other one
        self.describe("r")
        adapter = os.path.join(self.adapters, "generic")
        with open(adapter, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport ROCEGW_GENERIC_DIR={self.descriptions} ROCEGW_GENERIC_STATE={lab.path('backups')}\n"
                       f"exec {os.path.abspath(ADAPTER)}\n")
        os.chmod(adapter, 0o755)
        self.migrations = 0
        self.journals = 0

    def _hosts(self):
        hub, hosts = self.lab.namespace("hub"), []
        for number in range(1, NODES + 1):
            namespace = self.lab.namespace(f"n{number}")
            self.lab.veth(namespace, "link0", hub, f"to{number}", MTU)
            addresses = (f"10.77.0.{number}", f"fd77::{number}")
            self.lab.address(namespace, "link0", f"{addresses[0]}/24", f"{addresses[1]}/64")
            run(["nft", COUNT_TCP], namespace=namespace)
            hosts.append(GatewayHost(self.lab, f"n{number}", namespace, "link0", addresses, self.binaries))
        self.lab.bridge(hub, "bridge0", [f"to{number}" for number in range(1, NODES + 1)], MTU)
        return hosts

    def _services(self):
        """Groups n1 n3 n5 and n2 n4 n6: no rack has two replicas of a group. Checks of a node come from the next host."""
        nodes = {}
        for number, host in enumerate(self.hosts):
            group = self.hosts[number % 2::2]
            files = self.lab.path(f"service-{host.name}")
            os.mkdir(files)
            nodes[host.name] = {"address": host.address4, "namespace": host.namespace, "files": files,
                                "peer": self.hosts[(number + 1) % NODES].name, "canary_host": f"n{2 - number % 2}",
                                "canary_of": f"n{2 - number % 2}", "group": ",".join(f"{one.address4}:{PORT}" for one in group),
                                "launcher": [os.path.join(self.binaries, "rocegw-run"), "--socket", host.attach_socket, "--"]}
            for name, transport in (("kv.conf", "tcp"), ("kv.tcp", "tcp"), ("kv.gateway", "rdma")):
                with open(os.path.join(files, name), "w", encoding="utf-8") as file:
                    file.write(f"name {host.name}\nnumber {number + 1}\nlisten {host.address4} {PORT}\nrdma_port {RDMA_PORT}\n"
                               f"transport {transport}\nfolder {files}\nsync no\n")
                    file.writelines(f"replica {one.name} {one.address4} {PORT}\n" for one in group if one is not host)
        self.lab_file = self.lab.path("lab.json")
        text = {"program": os.path.join(self.binaries, "kv_store"), "nodes": nodes}
        with open(self.lab_file, "w", encoding="utf-8") as file:
            json.dump(text, file)
        return [Service(text, host.name) for host in self.hosts]

    def describe(self, rack, **questions):
        """Two nodes in each rack. Another name of the racks is another inventory. questions: words in the place of the usual ones."""
        files = {"path": self.lab.path("service-{node}/kv.conf"), "tcp": self.lab.path("service-{node}/kv.tcp"),
                 "gateway": self.lab.path("service-{node}/kv.gateway")}
        nodes = [{"name": host.name, "transport": "tcp", "domains": {"rack": f"{rack}{number // 2}"}} for number, host in enumerate(self.hosts)]
        description = {"class": "negotiated", "nodes": nodes, "files": [files],
                       "commands": {call: [SERVICE, self.lab_file, call] for call in CALLS},
                       "questions": {**{name: [SERVICE, self.lab_file, name] for name in QUESTIONS}, **questions}}
        with open(os.path.join(self.descriptions, "kv.json.new"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        os.replace(os.path.join(self.descriptions, "kv.json.new"), os.path.join(self.descriptions, "kv.json"))

    def start(self):
        for host in self.hosts:
            host.start_gateway()
        self.controller.start()
        for service, host, agent in zip(self.services, self.hosts, self.agents):
            check(service.start_replica(), f"replica {host.name}: {service.path('replica.log')}")
            agent.join(self.controller.join_file(host.name)).start()
        self.start_canaries()
        self.await_agents()

    def stop(self):
        for service in self.services:
            for kind in ("canary", "replica"):
                service.stop(kind)

    def start_canaries(self):
        self.journals += 1
        for service in self.canaries:
            check(service.start_canary(f"journal{self.journals}"), "the canary does not write")

    def await_agents(self):
        eventually("six agents", lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == NODES, 60)

    def await_groups(self):
        eventually("whole groups", lambda: not any(service.in_step() for service in self.services), 60)

    # What the operator does -------------------------------------------------------------------------------------------

    def migrate(self, *words):
        return self.controller.ctl("migrate", *words)

    def seen(self):
        return json.loads(self.migrate("status", self.name, "-o", "json"))["migration"]

    @property
    def name(self):
        return f"m{self.migrations}"

    def plan(self, name):
        inventory, plan = self.lab.path("inventory.json"), self.lab.path("plan.json")
        with open(inventory, "w", encoding="utf-8") as file:
            file.write(run([os.path.join(self.binaries, "rocegwctl"), "migrate", "inventory", "kv", "-o", "json", "--",
                            os.path.join(self.adapters, "generic")]))
        self.migrate("plan", inventory, "--to", "gateway", "--waves", "canary=1,100%", "--per-domain", "rack", "--max-unavailable", "2",
                     "--soak", "1s", "--auto-approve", "--name", name, "-f", plan)
        return plan

    def begin(self, deadline="20s"):
        """A migration whose first wave is one node, and whose waves nobody has to approve."""
        self.migrations += 1
        self.migrate("start", self.plan(self.name), "--timeout", "120")
        self.migrate("set", self.name, "retry-after=1s", "lost-after=5s", "step-deadline=" + deadline)

    def await_state(self, *states):
        try:
            return eventually(" or ".join(states), lambda: self.seen()["state"] in states and self.seen(), 180)
        except LabError as error:
            raise LabError(f"{error}\n{self.migrate('status', self.name)}\n{self.migrate('events', self.name)}") from error

    def go_back(self):
        """Everything as before: a rollback, and TCP on each node."""
        self.migrate("rollback", self.name, "--all")
        self.await_state("ROLLED_BACK")
        check({service.transport() for service in self.services} == {"tcp"}, "a node does not use TCP")
        self.migrate("delete", self.name)
        self.await_groups()

    def expect_failed_node(self, *words):
        """The canary node was brought back, or a person decides about it; no other one was touched."""
        found = self.await_state("PAUSED")
        check(any(word in found["reason"] for word in words), found["reason"])
        check([node["state"] for node in found["nodes"]].count("PENDING") == NODES - 1, str(found["nodes"]))
        return found

    def number_of_first(self):
        """The node that changes first: waves are in the order of names within a rack."""
        return next(number for number, host in enumerate(self.hosts) if host.name == self.seen()["nodes"][0]["name"])
