#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of two nodes, migrated from TCP to gateways and back by a real controller: agents run the generic adapter, each
daemon is killed on the way, a real client compares its data on each path. Needs root.

  tests/e2e/migration/run --binaries build/dev/bin"""

import argparse
import json
import os
import shlex
import signal
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from echo_service import Node  # noqa: E402
from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.gateway_host import gateway_pair, http_get  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import last_words, run_steps  # noqa: E402

PROMETHEUS, CANARY = 9090, 7999  # ports
GATE = 'up{job=~"gateway|canary"} == 1'
STEPS = ("plan", "preflight_fails", "path_blocked", "ill", "network", "start", "exclusive", "kill_controller", "approve", "kill_agent", "complete", "verify", "rollback", "no_prometheus",
         "gate_fails", "gate_holds", "finalize", "audit")
SERVICE = os.path.join(HERE, "echo_service.py")
ADAPTER = os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters", "generic.py")


def check(condition, text):
    if not condition:
        raise LabError(text)


class Tour:
    """All steps, each a method whose docstring is its line of the report."""

    def __init__(self, lab, binaries):
        self.lab = lab
        self.binaries = binaries
        self.hosts = gateway_pair(lab, binaries)
        self.controller = Controller(lab, self.hosts[0], binaries, f"prometheus: {{url: \"http://127.0.0.1:{PROMETHEUS}\"}}\n")
        self.adapters = lab.path("adapters")
        self.descriptions = lab.path("descriptions")
        for folder in (self.adapters, self.descriptions):
            os.mkdir(folder, 0o755)
        self.agents = [Agent(lab, host, binaries, f"migration: {{adapters_dir: {self.adapters}}}\n"
                             "metrics: {address: \"\"}\n") for host in self.hosts]
        self.nodes = []
        self.describe()

    # What the site writes ---------------------------------------------------------------------------------------------

    def describe(self):
        """The cluster's description, its configuration files, and the adapter with its folders."""
        left, right = self.hosts
        lab_file = self.lab.path("lab.json")
        nodes = {}
        for host, peer in ((left, right), (right, left)):
            files = self.lab.path(f"service-{host.name}")
            os.mkdir(files)
            nodes[host.name] = {"address": host.address4, "peer": peer.name, "namespace": host.namespace, "files": files,
                                "launcher": [os.path.join(self.binaries, "rocegw-run"), "--socket", host.attach_socket, "--"]}
            for name, text in (("service.conf", "transport tcp\n"), ("service.tcp", "transport tcp\n"),
                               ("service.gateway", "transport gateway\n")):
                with open(os.path.join(files, name), "w", encoding="utf-8") as file:
                    file.write(text)
        lab = {"file": lab_file, "nodes": nodes, "slow": 1}
        with open(lab_file, "w", encoding="utf-8") as file:
            json.dump(lab, file)
        self.nodes = [Node(lab, host.name) for host in self.hosts]
        calls = ("add-path", "verify-path", "remove-new", "remove-old", "health")
        description = {
            "class": "dual-path",
            "nodes": [{"name": host.name, "transport": "tcp", "domains": {"rack": host.name}} for host in self.hosts],
            "files": [{"path": self.lab.path("service-{node}/service.conf"), "tcp": self.lab.path("service-{node}/service.tcp"),
                       "gateway": self.lab.path("service-{node}/service.gateway")}],
            "commands": {**{call: [SERVICE, lab_file, call] for call in calls}, "backup": [SERVICE, lab_file, "slow"]},
            "questions": {name: [SERVICE, lab_file, name]
                          for name in ("transport", "bytes", "exercise", "journal", "outstanding", "clients-on-old")}}
        self.write_description(description)
        adapter = os.path.join(self.adapters, "generic")
        with open(adapter, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n"
                       f"export ROCEGW_GENERIC_DIR={self.descriptions} ROCEGW_GENERIC_STATE={self.lab.path('backups')}\n"
                       f"exec {os.path.abspath(ADAPTER)}\n")
        os.chmod(adapter, 0o755)

    def write_description(self, description):
        with open(os.path.join(self.descriptions, "echo.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)

    # What the operator does -------------------------------------------------------------------------------------------

    def migrate(self, *words):
        return self.controller.ctl("migrate", *words)

    def data(self, *words):
        """JSON of a command that shows its progress."""
        line = shlex.join(self.controller.ctl_words(*words, "-o", "json")) + " 2>/dev/null"
        return json.loads(run(["sh", "-c", line], namespace=self.hosts[0].namespace, timeout=90))

    def seen(self, name="there"):
        return json.loads(self.controller.ctl("migrate", "status", name, "-o", "json"))["migration"]

    def state(self, name="there"):
        return self.seen(name)["state"]

    def await_state(self, state, name="there", timeout=90):
        try:
            eventually(state, lambda: self.state(name) == state, timeout)
        except LabError as error:
            raise LabError(f"{error}\n{self.migrate('status', name)}\n{self.migrate('events', name)}") from error

    def refused(self, *words):
        """The error of a command that is refused."""
        try:
            self.migrate(*words)
        except LabError as error:
            return str(error)
        raise LabError(f"not refused: {words}")

    def make_plan(self, name, *more):
        inventory = run([os.path.join(self.binaries, "rocegwctl"), "migrate", "inventory", "echo", "-o", "json",
                         "--adapter", "generic", "--adapters", self.adapters])
        inventory_file, plan = self.lab.path(f"{name}.inventory.json"), self.lab.path(f"{name}.plan.json")
        with open(inventory_file, "w", encoding="utf-8") as file:
            file.write(inventory)
        self.migrate("plan", inventory_file, "--to", "gateway", "--waves", "canary=1,100%", "--soak", "1s", "--name", name, *more, "-f", plan)
        return plan

    def await_connected(self, count):
        """The store knows that so many agents are connected."""
        eventually(f"{count} connected agents", lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == count)

    def configurations(self):
        texts = []
        for node in self.nodes:
            with open(node.path("service.conf"), "rb") as file:
                texts.append(file.read())
        return texts

    @staticmethod
    def kill(daemon):
        daemon.daemon.signal(signal.SIGKILL)
        daemon.daemon.wait(10)

    # Steps ------------------------------------------------------------------------------------------------------------

    def plan(self):
        """Two hosts join; the adapter's inventory becomes a plan."""
        for host in self.hosts:
            host.start_gateway()
        self.controller.start()
        for node, host in zip(self.nodes, self.hosts):
            run(["ip", "netns", "exec", host.namespace, SERVICE, node.lab["file"], "start-tcp", node.name])
        self.agents[0].join(self.controller.join_file(self.hosts[0].name)).start()
        self.await_connected(1)
        self.before = self.configurations()
        self.file = self.make_plan("there")

    def preflight_fails(self):
        """A plan with a host that is not there does not start, and says why."""
        text = self.refused("start", self.file)
        check("right: there is no connected gateway of this name" in text, text)
        check(self.state() == "PLANNED", self.state())

    def path_blocked(self):
        """The second host joins, but a firewall lets no RoCEv2 in: the preflight says between whom."""
        self.agents[1].join(self.controller.join_file(self.hosts[1].name)).start()
        self.await_connected(2)
        run(["nft", "add table inet blocked; add chain inet blocked in { type filter hook input priority 0; }; "
             "add rule inet blocked in udp dport 4791 drop"], namespace=self.hosts[1].namespace)
        text = self.refused("start", self.file, "--timeout", "60")
        # Neither direction works without the other one; which one is told first is chance.
        check("left to right: TIMED_OUT" in text or "right to left: TIMED_OUT" in text, text)
        run(["nft", "delete table inet blocked"], namespace=self.hosts[1].namespace)

    def ill(self):
        """A node that is not healthy blocks the start, and is named with a remedy before any node changes."""
        with open(self.nodes[1].path("ill"), "w", encoding="ascii"):
            pass
        text = self.refused("start", self.file)
        os.remove(self.nodes[1].path("ill"))
        check("blocks: right: health: health: exit status 1" in text and "remedy: repair this" in text, text)
        check(self.state() == "PLANNED" and self.configurations() == self.before, self.state())

    def network(self):
        """connectivity test --network: datagrams arrive in order with their marks, and TCP and clocks are measured."""
        words = ("connectivity", "test", "left", "right", "--network", "--bandwidth", "--bytes", "4MiB", "--timeout", "60")
        for test in self.data(*words)["tests"]:
            plain = test["connectivity"]["plain"]
            check(plain["sent"] == 400 and plain["received"] == plain["dscpKept"] == plain["ecnKept"] == 400, str(plain))
            check(int(plain["tcpRoundTripMedianNs"]) > 0 and int(plain["tcpBytesPerSecond"]) > 0, str(plain))
            # Both hosts have one clock.
            check(abs(int(plain["clockAheadNs"])) < 10**8 and not plain.get("problem"), str(plain))

    def start(self):
        """A hop changes the DSCP: the preflight warns and says what to do. It passes, and the canary begins."""
        run(["nft", "add table inet marks; add chain inet marks in { type filter hook prerouting priority -300; }; "
             "add rule inet marks in meta l4proto udp ip dscp set cs0"], namespace=self.hosts[1].namespace)
        text = self.migrate("start", self.file)
        run(["nft", "delete table inet marks"], namespace=self.hosts[1].namespace)
        check("warns: left to right: the DSCP is changed on the way: kept for 0 of 400" in text and "remedy: trust the DSCP" in text, text)
        found = [(one["class"], one["subject"]) for one in self.seen()["findings"] if "DSCP" in one["text"]]
        check(found == [("warns", "left to right")], str(found))
        check(self.state() == "RUNNING", self.state())

    def exclusive(self):
        """A second migration of the same cluster is refused."""
        text = self.refused("start", self.make_plan("other"))
        check("cluster echo is in migrations/there" in text, text)

    def kill_controller(self):
        """The controller is killed while the canary takes its backup; the next one goes on."""
        eventually("a step of the canary", lambda: any(node.get("step") == "backup" for node in self.seen()["nodes"]))
        self.kill(self.controller)
        self.controller.start()
        self.await_state("AWAITING_APPROVAL")
        check(self.seen()["epoch"] == "2", self.seen()["epoch"])
        check([node["state"] for node in self.seen()["nodes"]].count("DONE") == 1, str(self.seen()["nodes"]))

    def approve(self):
        """A wave waits for its approval; limits change meanwhile."""
        text = self.refused("approve", "there", "no-such-wave")
        check("is not one of the plan" in text, text)
        # A client that repeats its call under the same request_id changes nothing more and gets the same answer.
        words = ("set", "there", "soak=2s", "step-deadline=1m", "retry-after=1s", "--request-id", str(uuid.uuid4()))
        self.migrate(*words)
        before = self.seen()["limits"]
        self.migrate("set", "there", "soak=3s")
        self.migrate(*words)
        check(self.seen()["limits"]["soakSeconds"] == 3 and before["soakSeconds"] == 2, str(self.seen()["limits"]))
        self.migrate("approve", "there", "wave-2")

    def kill_agent(self):
        """An agent is killed while its adapter runs; the command is sent again and runs to its end."""
        second = self.seen()["nodes"][-1]["name"]
        eventually("a step of the second node", lambda: self.seen()["nodes"][-1].get("step") == "backup")
        agent = next(agent for agent in self.agents if agent.host.name == second)
        self.kill(agent)
        agent.start()

    def complete(self):
        """Both nodes use their gateways, by both witnesses, and the client's data were intact."""
        self.await_state("COMPLETED")
        for node in self.nodes:
            check(node.transport() == "gateway", node.name)
            with open(node.path("journal"), encoding="ascii") as file:
                journal = file.read()
            check("gateway intact" in journal and "broken" not in journal, journal)
        report = self.migrate("report", "there")
        check("| left |" in report and "COMPLETED" in report, report)

    def verify(self):
        """By hand: both nodes are verified; one whose client falls back to TCP without a word is found."""
        before = self.seen()
        self.migrate("verify", "there")
        self.nodes[0].falls_back(True)
        text = self.refused("verify", "there", "-o", "wide")
        check("fell-back" in text and "the application says gateway, but its bytes go over tcp" in text, text)
        # The other one alone is as it should be.
        found = self.data("migrate", "verify", "there", self.nodes[1].name)["verification"]["nodes"]
        check([node["verdict"] for node in found] == ["verified"] and found[0]["counted"] == "gateway", str(found))
        self.nodes[0].falls_back(False)
        for key in ("state", "nodes", "waves"):
            check(self.seen()[key] == before[key], f"{key} changed")

    def rollback(self):
        """Both nodes go back; configuration files are byte-identical."""
        self.migrate("rollback", "there", "--all")
        self.await_state("ROLLED_BACK")
        check(self.configurations() == self.before, str(self.configurations()))
        for node in self.nodes:
            with open(node.path("journal"), encoding="ascii") as file:
                check(file.read().splitlines()[-1] == "tcp intact", "the last exercise was not over TCP")
        # Nodes that are back stand for TCP.
        text = self.migrate("verify", "there")
        check(text.count("ROLLED_BACK") == 2 and text.count("verified") == 2, text)

    def no_prometheus(self):
        """The first migration is deleted and another one begins, whose waves nobody approves. Its gate has no answer: it pauses."""
        self.migrate("delete", "there")
        check("there" not in self.migrate("status"), "it is still there")
        text = self.refused("plan", self.lab.path("there.inventory.json"), "--to", "gateway", "--name", "no", "--gate", "up")
        check("gate up: it is no comparison" in text, text)
        self.file = self.make_plan("again", "--gate", GATE)
        self.migrate("start", self.file)
        self.migrate("set", "again", "approve=auto", "retry-after=1s")
        self.await_state("PAUSED", "again")
        check("inconclusive: gate " in self.seen("again")["reason"], self.seen("again")["reason"])
        check("Connection refused" in self.seen("again")["reason"], self.seen("again")["reason"])

    def up(self, job):
        """What a real Prometheus knows of a job: "1", "0", or nothing."""
        try:
            answer = json.loads(http_get(self.hosts[0].namespace, PROMETHEUS, f"/api/v1/query?query=up%7Bjob%3D%22{job}%22%7D", 10))
        except (LabError, OSError, ValueError):
            return None
        result = answer.get("data", {}).get("result")
        return result[0]["value"][1] if result else None

    def gate_fails(self):
        """Debian's Prometheus finds one of two jobs down: the gate fails, and the migration pauses again."""
        config = self.lab.path("prometheus.yaml")
        jobs = [{"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
                for name, port in (("gateway", 7474), ("canary", CANARY))]
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}, file)
        self.lab.start(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.lab.path('prometheus-data')}",
                        f"--web.listen-address=127.0.0.1:{PROMETHEUS}"], title="prometheus", namespace=self.hosts[0].namespace)
        eventually("both jobs in Prometheus", lambda: (self.up("gateway"), self.up("canary")) == ("1", "0"), 60)
        self.migrate("resume", "again")
        eventually("the failed gate", lambda: 'does not hold {' in self.seen("again")["reason"], 60)
        reason = self.seen("again")["reason"]
        check(reason.startswith("gate: gate up{") and 'job="canary"' in reason, reason)
        check(self.state("again") == "PAUSED", self.state("again"))

    def gate_holds(self):
        """The other job is up: the migration runs to its end."""
        pages = self.lab.path("pages")
        os.mkdir(pages)
        with open(os.path.join(pages, "metrics"), "w", encoding="utf-8") as file:
            file.write("canary_reads_total 1\n")
        self.lab.start([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", pages, str(CANARY)],
                       title="canary's metrics", namespace=self.hosts[0].namespace)
        eventually("the canary's job is up", lambda: self.up("canary") == "1", 60)
        self.migrate("resume", "again")
        self.await_state("COMPLETED", "again")

    def finalize(self):
        """The old path is removed; afterwards there is no way back."""
        self.migrate("finalize", "again")
        self.await_state("FINALIZED", "again")
        check(all(node.pid("tcp") is None for node in self.nodes), "a TCP server runs")
        text = self.refused("rollback", "again", "--all")
        check("plan a migration back" in text, text)

    def audit(self):
        """Orders of persons and transitions of the controller are audit records, and the chain is intact."""
        text = self.controller.ctl("audit", "list", "-o", "json")
        for word in ("/rocegw.admin.v1.Migrations/ApproveWave", "/rocegw.admin.v1.Migrations/VerifyMigration", "AWAITING_APPROVAL", "ROLLED_BACK"):
            check(word in text, word)
        exported = json.loads(self.controller.ctl("audit", "list", "--resource", "migrations/again", "-o", "json"))["records"]
        check({record["resource"] for record in exported} == {"migrations/again"}, str(exported)[:2000])
        check({"controller"} < {record["principal"] for record in exported}, str(exported)[:2000])
        self.controller.ctl("audit", "verify")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        tour = Tour(lab, os.path.abspath(arguments.binaries))
        try:
            return run_steps("migration", [getattr(tour, step) for step in STEPS],
                             lambda: last_words(tour.controller, *tour.agents, *tour.hosts))
        finally:
            for node in tour.nodes:
                for server in ("tcp", "rdma"):
                    node.stop(server)


if __name__ == "__main__":
    sys.exit(main())
