#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's Ceph 16.2 on three hosts, migrated from TCP to RDMA over gateways and back by a controller, its agents and the
adapter ceph: three monitors, six object stores, `rados bench` and a canary workload that compares all it reads. Some minutes;
needs root, and the packages ceph-mon ceph-mgr ceph-osd ceph-common python3-rados.

  tests/interop/ceph_messenger/run.py --binaries build/ci/bin [--record FOLDER] [--only STEP...]

--record writes what Ceph's tools printed to files: the unit tests of the adapter read such recordings."""

import argparse
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "support")]

from cluster import DAEMONS, CephCluster  # noqa: E402
from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import run_steps  # noqa: E402

ADAPTER = os.path.join(ROOT, "agent", "migration", "adapters", "ceph.py")
STEPS = ("mixed", "figures_tcp", "there", "figures_rdma", "back", "rolled_back", "killed", "intact")
TICKS = os.sysconf("SC_CLK_TCK")
# Two cores for ten daemons: the poll of a millisecond after each completion, which is the default, takes them all.
OPTIONS = {"ms_async_rdma_polling_us": "0"}


def check(condition, text):
    if not condition:
        raise LabError(text)


class Proof:
    """All steps, each a method whose docstring is its line of the report."""

    def __init__(self, lab, binaries, record):
        self.lab = lab
        self.binaries = binaries
        self.record_folder = record
        self.ceph = CephCluster(lab, binaries)
        self.hosts = self.ceph.hosts
        self.controller = Controller(lab, self.hosts[0], binaries)
        self.adapters, self.descriptions = lab.path("adapters"), lab.path("descriptions")
        for folder in (self.adapters, self.descriptions):
            os.mkdir(folder, 0o755)
        self.agents = [Agent(lab, host, binaries, f"migration: {{adapters_dir: {self.adapters}}}\nmetrics: {{address: \"\"}}\n")
                       for host in self.hosts]
        self.status = lab.path("canary.status")
        self.refusing = lab.path("refuse-to-start")  # the name of a host whose object stores do not start over RDMA
        self.canary = None
        self.describe()

    # What the site writes ---------------------------------------------------------------------------------------------

    def describe(self):
        commands = {}
        for verb in ("start", "stop"):
            script = self.lab.path(verb)
            refuse = f"if [ -e $folder/preload ] && [ \"$(cat {self.refusing} 2>/dev/null)\" = $ROCEGW_NODE ]; then echo refused >&2; exit 1; fi\n"
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nfolder={self.lab.directory}/$ROCEGW_NODE\n{refuse if verb == 'start' else ''}"
                           f"exec {DAEMONS} {self.ceph.lab_file} {verb} $ROCEGW_NODE osd\n")
            os.chmod(script, 0o755)
            commands[verb] = [script]
        preload = self.lab.path("preload.gateway")
        with open(preload, "w", encoding="utf-8") as file:
            file.write("LD_PRELOAD\n")
        conf = os.path.join(self.lab.directory, "{node}", "ceph.conf")
        exercise = self.lab.path("exercise")
        with open(exercise, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec timeout 60 rados -c {self.lab.directory}/$ROCEGW_NODE/ceph.conf -p canary \\\n"
                       "  bench 2 write -b 65536 -t 2 --run-name $ROCEGW_NODE\n")
        os.chmod(exercise, 0o755)
        description = {
            "scope": "cluster", "conf": conf, "admin_socket": os.path.join(self.lab.directory, "{node}", "{daemon}.asok"),
            "options": OPTIONS,
            "nodes": [{"name": host.name, "transport": "tcp", "domains": {"host": host.name}, "gateway": True,
                       "daemons": self.ceph.daemons_of(index),
                       "rdma": {"gateway": {"device": "rocegw0", "gid": f"0000:0000:0000:0000:0000:ffff:0a4d:{index + 1:04x}"}}}
                      for index, host in enumerate(self.hosts)],
            "files": [{"path": os.path.join(self.lab.directory, "{node}", "preload"), "tcp": "/nowhere", "gateway": preload}],
            "commands": commands,
            "questions": {"exercise": [exercise], "journal": ["grep", "-q", "^intact", self.status]}}
        with open(os.path.join(self.descriptions, "ceph.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        adapter = os.path.join(self.adapters, "ceph")
        with open(adapter, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport ROCEGW_CEPH_DIR={self.descriptions} ROCEGW_CEPH_STATE={self.lab.path('backups')}\n"
                       f"exec {os.path.abspath(ADAPTER)}\n")
        os.chmod(adapter, 0o755)

    def begin(self):
        """The cluster over TCP, a fleet of three gateways, and the canary workload."""
        for host in self.hosts:
            host.start_gateway()
        self.ceph.create()
        self.controller.start()
        for host, agent in zip(self.hosts, self.agents):
            agent.join(self.controller.join_file(host.name)).start()
        eventually("all agents are connected",
                   lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == len(self.hosts))
        self.canary = self.lab.start([os.path.join(HERE, "canary.py"), self.ceph.conf(self.hosts[0]), "canary", self.status],
                                     title="canary", namespace=self.hosts[0].namespace)
        eventually("the canary's first words", lambda: os.path.exists(self.status))
        self.record("tcp")

    # What the operator does -------------------------------------------------------------------------------------------

    def migrate(self, *words):
        return self.controller.ctl("migrate", *words)

    def seen(self, name):
        return json.loads(self.migrate("status", name, "-o", "json"))["migration"]

    def await_state(self, name, *states, timeout=600):
        try:
            return eventually(" or ".join(states), lambda: self.seen(name)["state"] in states and self.seen(name), timeout)
        except LabError as error:
            raise LabError(f"{error}\n{self.migrate('status', name)}\n{self.migrate('events', name)}") from error

    def start(self, name):
        """Makes a plan from what the adapter says, and starts it."""
        inventory, plan = self.lab.path(f"{name}.inventory.json"), self.lab.path(f"{name}.plan.json")
        with open(inventory, "w", encoding="utf-8") as file:
            file.write(run([os.path.join(self.binaries, "rocegwctl"), "migrate", "inventory", "ceph", "-o", "json", "--",
                            os.path.join(self.adapters, "ceph")]))
        self.migrate("plan", inventory, "--to", "gateway", "--flag-day", "--waves", "all=100%", "--soak", "2s", "--name", name,
                     "--step-deadline", "90s", "-f", plan)
        began = time.monotonic()
        self.migrate("start", plan)
        return began

    def end(self, name):
        """The longest that the canary had to wait, and the migration is deleted: the next one may begin."""
        self.migrate("delete", name)

    def intact_so_far(self):
        with open(self.status, encoding="ascii") as file:
            text = file.read()
        check(text.startswith("intact"), text)
        return text.strip()

    def configurations(self):
        texts = []
        for host in self.hosts:
            with open(self.ceph.conf(host), "rb") as file:
                texts.append(file.read())
        return texts

    # Figures ----------------------------------------------------------------------------------------------------------

    def cpu_seconds(self, program):
        """Of all processes of this laboratory with that name."""
        total = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if program.encode() in os.path.basename(words[0]) and self.lab.directory.encode() in b" ".join(words):
                total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def figures(self, transport):
        """rados bench for each size; MB/s, latency and CPU time of the object stores and the gateways for each MB."""
        lines = []
        for size, depth in ((4096, 1), (4096, 16), (65536, 16), (4194304, 4)):
            before = [self.cpu_seconds(program) for program in ("ceph-osd", "rocegwd")]
            output = run(["rados", "-c", self.ceph.conf(self.hosts[0]), "-p", "canary", "bench", "8", "write", "-b", str(size), "-t", str(depth)],
                         namespace=self.hosts[0].namespace, timeout=120)
            osd, gateway = (self.cpu_seconds(program) - old for program, old in zip(("ceph-osd", "rocegwd"), before))
            number = {name: float(re.search(rf"^{re.escape(name)}:\s+([0-9.]+)", output, re.MULTILINE).group(1))
                      for name in ("Bandwidth (MB/sec)", "Average IOPS", "Average Latency(s)", "Max latency(s)", "Total writes made")}
            megabytes = number["Total writes made"] * size / 1e6
            lines.append(f"{transport} write {size} depth {depth}: {number['Bandwidth (MB/sec)']:.1f} MB/s, {number['Average IOPS']:.0f} op/s, "
                         f"latency {number['Average Latency(s)'] * 1000:.1f} ms (longest {number['Max latency(s)'] * 1000:.0f}), "
                         f"CPU {osd * 1000 / megabytes:.0f} + {gateway * 1000 / megabytes:.0f} ms per MB")
            print("  " + lines[-1], flush=True)
        return f"{len(lines)} loads"

    def record(self, name):
        if not self.record_folder:
            return
        os.makedirs(self.record_folder, exist_ok=True)
        host = self.hosts[0]
        socket = os.path.join(host.directory, "osd.0.asok")
        for tool, words in (("osd_dump", ["osd", "dump"]), ("pg_stat", ["pg", "stat"]), ("quorum_status", ["quorum_status"]),
                            ("config_dump", ["config", "dump"]), ("ok_to_stop", ["osd", "ok-to-stop", "osd.0", "osd.1"]),
                            ("config_key", ["config-key", "dump", "rocegw/migration/ceph/flags"])):
            with open(os.path.join(self.record_folder, f"{name}.{tool}"), "w", encoding="utf-8") as file:
                file.write(run(["sh", "-c", f"ceph -c {self.ceph.conf(host)} {' '.join(words)} -f json 2>/dev/null"], namespace=host.namespace))
        # All object stores at once may never stop. The first line is the exit status, the others are all that ceph printed.
        with open(os.path.join(self.record_folder, f"{name}.ok_to_stop_refused"), "w", encoding="utf-8") as file:
            everything = " ".join(f"osd.{number}" for number in range(self.ceph.osds()))
            file.write(run(["sh", "-c", f"ceph -c {self.ceph.conf(host)} osd ok-to-stop {everything} -f json 2>/dev/null >{self.lab.path('refusal')}; "
                                        f"echo $?; cat {self.lab.path('refusal')}"], namespace=host.namespace))
        for tool in ("status", "dump_ops_in_flight", "config show", "perf dump"):
            with open(os.path.join(self.record_folder, f"{name}.daemon_{tool.replace(' ', '_')}"), "w", encoding="utf-8") as file:
                file.write(run(["ceph", "--admin-daemon", socket, *tool.split()]))
        with open(os.path.join(self.record_folder, f"{name}.ss"), "w", encoding="utf-8") as file:
            file.write(run(["ss", "-HtinO", "state", "established"], namespace=host.namespace))

    def state(self):
        """What a person wants to see after a failure."""
        story = [self.ceph.ceph("-s", check=False), self.ceph.ceph("osd", "tree", check=False)]
        with open(os.path.join(self.hosts[0].directory, "cluster.log"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        return "\n".join([*story, *[line[:200] for line in lines if "pgmap" not in line][-60:]])

    # Steps ------------------------------------------------------------------------------------------------------------

    def mixed(self):
        """Object stores with posix and with RDMA do not talk to each other: placement groups stay in peering."""
        host = self.hosts[2]
        with open(self.ceph.conf(host), "rb") as file:
            text = file.read()
        with open(self.ceph.conf(host), "ab") as file:
            file.write(b"[global]\nms_cluster_type = async+rdma\nms_async_rdma_device_name = rocegw0\n"
                       b"ms_async_rdma_local_gid = 0000:0000:0000:0000:0000:ffff:0a4d:0003\n"
                       b"ms_async_rdma_receive_queue_len = 1024\nms_async_rdma_receive_buffers = 2048\nms_async_rdma_polling_us = 0\n")
        preload = os.path.join(host.directory, "preload")
        with open(preload, "w", encoding="utf-8"):
            pass
        self.ceph.ceph("osd", "set", "noout")
        self.ceph.daemons("stop", host, "osd")
        self.ceph.daemons("start", host, "osd")
        eventually("the RDMA stores are up", lambda: self.ceph.up() == self.ceph.osds(), 60)
        time.sleep(30)  # longer than heartbeats wait for an answer
        states = {state["name"]: state["num"] for state in self.ceph.ceph_json("pg", "stat")["pg_summary"]["num_pg_by_state"]}
        up = self.ceph.up()
        # The same question with either messenger: the one of TCP is answered at the same moment, from the same host.
        answers = {}
        for messenger in ("async+posix", "async+rdma"):
            answers[messenger] = run(
                ["timeout", "20", "ceph", "-c", self.ceph.conf(host), "--connect-timeout", "8", "--ms_type", messenger, "-s"],
                namespace=host.namespace, check=False,
                environment={"LD_PRELOAD": os.path.join(self.binaries, "..", "lib", "librocegw-verbs.so"), "ROCEGW_SOCKET": host.attach_socket})
        self.ceph.daemons("stop", host, "osd")
        with open(self.ceph.conf(host), "wb") as file:
            file.write(text)
        os.remove(preload)
        self.ceph.daemons("start", host, "osd")
        self.ceph.ceph("osd", "unset", "noout")
        self.ceph.await_clean()
        check("active+clean" not in states, str(states))
        check("health:" in answers["async+posix"], "no answer over TCP: " + answers["async+posix"])
        check("health:" not in answers["async+rdma"], "an answer over RDMA: " + answers["async+rdma"])
        last = answers["async+rdma"].strip().splitlines()[-1:]
        return f"{up} of {self.ceph.osds()} up; {states}; TCP client of the posix monitors: answered; RDMA client: no answer {last}"

    def figures_tcp(self):
        """Figures over TCP."""
        return self.figures("tcp")

    def there(self):
        """A controller and three agents take the object stores to RDMA, under load; no error, no wrong byte."""
        self.before = self.configurations()
        load = self.lab.start(["rados", "-c", self.ceph.conf(self.hosts[1]), "-p", "canary", "bench", "60", "write", "-b", "65536", "-t", "2",
                               "--run-name", "load"],
                              namespace=self.hosts[1].namespace, title="rados bench")
        self.ceph.await_clean()
        began = self.start("there")
        seen = self.await_state("there", "COMPLETED", "PAUSED", "ROLLED_BACK", "FAILED")
        check(seen["state"] == "COMPLETED", self.migrate("events", "there") + seen.get("reason", ""))
        took = time.monotonic() - began
        self.record("rdma")
        status = load.wait(120)
        check(status == 0, load.output[-2000:])
        print(self.migrate("status", "there"), flush=True)
        print(self.migrate("events", "there"), flush=True)
        return f"{took:.0f} s; rados bench ran through; canary {self.intact_so_far()}"

    def figures_rdma(self):
        """Figures over RDMA, the object stores' network through gateways."""
        return self.figures("rdma")

    def back(self):
        """The way back; configuration files are byte-identical."""
        began = time.monotonic()
        self.migrate("rollback", "there", "--all")
        seen = self.await_state("there", "ROLLED_BACK", "PAUSED", "FAILED")
        check(seen["state"] == "ROLLED_BACK", self.migrate("events", "there") + seen.get("reason", ""))
        check(self.configurations() == self.before, "other configuration files than before")
        self.ceph.await_clean()
        self.end("there")
        return f"{time.monotonic() - began:.0f} s; canary {self.intact_so_far()}"

    def rolled_back(self):
        """The object stores of one host do not start over RDMA: the whole wave is as before."""
        with open(self.refusing, "w", encoding="utf-8") as file:
            file.write("h2")
        self.before = self.configurations()
        began = self.start("refused")
        seen = self.await_state("refused", "ROLLED_BACK", "PAUSED", "COMPLETED", "FAILED", timeout=400)
        check(seen["state"] in ("ROLLED_BACK", "PAUSED"), self.migrate("events", "refused"))
        check(self.configurations() == self.before, "other configuration files than before\n" + self.migrate("events", "refused"))
        os.remove(self.refusing)
        self.ceph.await_clean()
        print(self.migrate("status", "refused"), flush=True)
        if seen["state"] == "PAUSED":
            self.migrate("abort", "refused")
            self.await_state("refused", "ROLLED_BACK", "ABORTED")
        self.end("refused")
        return f"{time.monotonic() - began:.0f} s; canary {self.intact_so_far()}"

    def retried(self, name, node):
        """Returns whether the controller took a retry of the node; False: it answered NOT_NOW."""
        try:
            self.migrate("retry", name, "--node", node)
        except LabError as error:
            if "NOT_NOW" not in str(error):
                raise
            return False
        return True

    def killed(self):
        """A host loses power in the middle: its daemons, agent and gateway are killed. It comes back, and a person decides."""
        host, agent = self.hosts[2], self.agents[2]
        began = self.start("killed")
        self.migrate("set", "killed", "lost-after=10s")
        eventually("the host has switched", lambda: any(node["name"] == host.name and node["state"] in ("SWITCHED", "STARTED")
                                                        for node in self.seen("killed")["nodes"]), 120)
        for daemon in (agent.daemon, host.daemon):
            daemon.signal(9)
            daemon.wait(10)
        self.ceph.daemons("kill", host)
        seen = self.await_state("killed", "PAUSED", "ROLLED_BACK", "FAILED")
        print(self.migrate("status", "killed"), flush=True)
        host.start_gateway()
        self.ceph.daemons("start", host, "mon")  # systemd starts the daemons at boot
        self.ceph.daemons("start", host, "osd")
        agent.start()
        eventually("all agents are connected",
                   lambda: self.controller.ctl("get", "gateways", "-o", "json").count('"connected": true') == len(self.hosts))
        # The migration takes note of the agent's return a moment after the controller.
        eventually("the node can be reached again", lambda: self.retried("killed", host.name))
        self.migrate("resume", "killed")
        seen = self.await_state("killed", "COMPLETED", "ROLLED_BACK", "FAILED", "PAUSED")
        print(self.migrate("status", "killed"), flush=True)
        check(seen["state"] in ("COMPLETED", "ROLLED_BACK"), self.migrate("events", "killed"))
        self.ceph.await_clean()
        return f"{seen['state']}, {time.monotonic() - began:.0f} s; canary {self.intact_so_far()}"

    def intact(self):
        """The canary workload saw no error and no other byte than it wrote, and every object is as it was acknowledged."""
        self.canary.signal(15)
        check(self.canary.wait(60) == 0, self.canary.output)
        return self.intact_so_far()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--record", help="a folder for what the tools print")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS, help="these steps, in this order")
    arguments = parser.parse_args()
    with Lab() as lab:
        proof = Proof(lab, os.path.abspath(arguments.binaries), arguments.record)
        began = time.monotonic()
        proof.begin()
        print(f"cluster and fleet, {time.monotonic() - began:.1f} s", flush=True)
        return run_steps("ceph_messenger", [getattr(proof, step) for step in arguments.only], proof.state)


if __name__ == "__main__":
    sys.exit(main())
