# SPDX-License-Identifier: Apache-2.0
"""The fleet that a real Prometheus scrapes: two hosts with gateway and agent, a controller, a storage cluster of files, and the
controller of another fleet."""

import glob
import json
import os
import signal

from netlab.fleet import Agent, Controller, eventually
from netlab.gateway_host import GatewayHost
from netlab.tampered_link import TamperedLink
from other_fleet import OtherFleet
from prometheus import MOST

POOL = """\
name: tenants/blue
spec: {{displayName: Blue}}
---
name: tenants/blue/pools/fast
spec:
  gateways: {{all: true}}
  slots: 1
  quota: {{committed: {{qps: 4}}, peak: {{qps: {qps}{rate}}}}}
  readyQps: {ready}
  {more}
  attach: {{socketMode: 438{identity}}}
"""
FILE_ADAPTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "migration", "file_adapter.py")
ADDRESSES = (("10.77.0.1", "fd77::1"), ("10.77.0.2", "fd77::2"))


def pool(qps=8, ready=4, rate="", more="", identity=""):
    return POOL.format(qps=qps, ready=ready, rate=rate, more=more, identity=identity)


def change(host, old, new):
    """In the configuration file of a host's gateway, for its next start."""
    with open(host.config, encoding="utf-8") as file:
        text = file.read()
    with open(host.config, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


class Storage:
    """A storage cluster of files on both hosts, with the adapter of the example; a node takes long while there is a file "slow"."""

    def __init__(self, lab):
        self.folder, self.adapters, self.slow = lab.path("storage"), lab.path("adapters"), lab.path("slow")
        for folder in (self.folder, self.adapters):
            os.mkdir(folder, 0o755)
        for name in ("left", "right"):
            with open(os.path.join(self.folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump({"config": "port 7000", "paths": {"tcp": "active"}, "uses": "tcp", "outstanding": 0, "clients_on_old": 0,
                           "rack": name}, file)
        self.program = os.path.join(self.adapters, "file")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n[ -e {self.slow} ] && sleep 30\nexec {FILE_ADAPTER} {self.folder}\n")
        os.chmod(self.program, 0o755)

    def plan(self, lab, controller):
        inventory, plan = lab.path("inventory.json"), lab.path("plan.json")
        with open(inventory, "w", encoding="utf-8") as file:
            file.write(controller.ctl("migrate", "inventory", "files", "-o", "json", "--", self.program))
        controller.ctl("migrate", "plan", inventory, "--to", "gateway", "--waves", "canary=1,100%", "--soak", "1s", "--name", "files",
                       "-f", plan)
        return plan


class Fleet:
    """Two hosts, each with gateway and agent, on a link that can be tampered with; the controller runs on the left one."""

    def __init__(self, lab, binaries):
        self.lab = lab
        self._ports = iter(range(18700, 19700))
        namespaces = [lab.namespace(side) for side in ("left", "right")]
        self.link = TamperedLink(lab, namespaces[0], namespaces[1], "link0", 4200)
        self.hosts = []
        for name, namespace, addresses in zip(("left", "right"), namespaces, ADDRESSES):
            lab.address(namespace, "link0", f"{addresses[0]}/24", f"{addresses[1]}/64")
            self.hosts.append(GatewayHost(
                lab, name, namespace, "link0", addresses, binaries, workers=2, metrics="0.0.0.0",
                settings="gateways: {channels: enabled}\n"
                         "congestion: {policy: [{sign: unmarked_loss, threshold: 1, algorithm: swift}, "
                         "{sign: always, algorithm: dcqcn}]}\n"))
            # Packets that come to any worker, so that workers hand them over.
            change(self.hosts[-1], "mode: udp,", "mode: udp, steering: hash,")
        # Certificates that live for two minutes are renewed while one looks, and look as if they ended soon.
        self.controller = Controller(lab, self.hosts[0], binaries, "metrics: {address: \"0.0.0.0:7472\"}\n"
                                     "certificates: {node_lifetime: 120s, server_lifetime: 600s}\n"
                                     "donors: {approved_gateways: [\"*\"]}\n")
        self.other = OtherFleet(lab, self.hosts[1], binaries)
        self.storage = Storage(lab)
        self.agents = [Agent(lab, host, binaries, "metrics: {address: \"0.0.0.0:7473\"}\n"
                             f"migration: {{adapters_dir: {self.storage.adapters}}}\n"
                             f"donors_dir: {self.donors_dir(host)}\n") for host in self.hosts]

    @staticmethod
    def donors_dir(host):
        return os.path.join(host.directory, "donors")

    def start(self):
        self.controller.start()
        for host, agent in zip(self.hosts, self.agents):
            host.start_gateway()
            agent.join(self.controller.join_file(host.name)).start()
        self.in_order()
        self.other.start()
        return self

    def daemons(self):
        """The last start of each, by name."""
        parts = {"the other fleet's controller": self.other.controller, "the controller": self.controller}
        for host, agent in zip(self.hosts, self.agents):
            parts.update({f"the gateway on the {host.name}": host, f"its agent ({host.name})": agent})
        return {name: part.daemon for name, part in parts.items() if part.daemon}

    def in_order(self):
        """Until all gateways run what is wanted."""
        self.controller.ctl("status", "--wait", "--timeout", "50")

    def apply(self, text):
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=text)

    def into_pool(self):
        for host in self.hosts:
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: next(
                iter(glob.glob(os.path.join(h.directory, "a", "*", "0", "attach.sock"))), None), MOST)

    def out_of_pool(self):
        for host in self.hosts:
            host.attach_socket = os.path.join(host.directory, "attach.sock")

    def perftest(self, program="ib_write_bw", queue_pairs=1, *more):
        """Server on the left and client on the right, that run until they are killed: their retries last for four seconds, as long
        as a gateway may have to wait for a processor."""
        left, right = self.hosts
        port = next(self._ports)
        size = "8" if program == "ib_atomic_bw" else "16384"
        words = [program, "-d", "rocegw0", "-q", str(queue_pairs), "-s", size, "-D", str(10 * MOST), "-F", "-t", "8", "-u", "17",
                 "-p", str(port), "-x", str(right.gid_index(right.address4)), *more]
        server = left.start(words)
        left.wait_listening(port, server)
        return server, right.start([*words, left.address4])

    def connected(self, *words):
        """The same, when its traffic has begun."""
        right = self.hosts[1]
        before = right.counters()
        server, client = self.perftest(*words)
        client.expect("remote address", MOST)
        eventually(f"traffic of {client.title}", lambda: sum(right.moved(before, right.counters())) > 1000, MOST)
        return server, client

    @staticmethod
    def kill(*jobs):
        for job in jobs:
            job.signal(signal.SIGKILL)
            job.wait(MOST)

    def end(self, *jobs):
        """Kills the last programs; the gateways have let go of what they had, too."""
        self.kill(*jobs)
        eventually("gateways without programs",
                   lambda: all(host.counters()["rocegw_sessions"] == 0 for host in self.hosts), MOST)

    def check_verbs(self, connect):
        """Every verb and every refusal, both ways at once; what it says about them is another test's business."""
        left, right = self.hosts
        pairs = []
        for server, client in ((left, right), (right, left)):
            port = str(next(self._ports))
            serving = server.start([server.program("rdma_check"), "server", "--port", port])
            serving.expect("serving on port", MOST)
            pairs.append((serving, client.start([client.program("rdma_check"), "client", server.address4, "--port", port,
                                                 "--connect", connect, "--cases", "[!e]*", "--direction", "client"])))
        return pairs
