# SPDX-License-Identifier: Apache-2.0
"""The fleet of the tour, what its steps apply, and programs between its hosts."""

import glob
import os
import signal

from netlab.fleet import Agent, Controller, eventually
from netlab.gateway_host import gateway_pair
from netlab.job import LabError

OBJECTS = """\
name: tenants/blue
spec: {displayName: Blue}
---
name: tenants/blue/pools/fast
spec:
  gateways: {all: true}
  slots: 1
  quota: {peak: {qps: 8}}
  readyQps: 4
  attach: {socketMode: 438}
"""
ASKING = OBJECTS.replace("socketMode: 438", "socketMode: 438, identity: REQUIRED")
SMALLER = OBJECTS.replace("qps: 8", "qps: 1").replace("readyQps: 4", "readyQps: 1")
RATE = 8_000_000
SLOWER = OBJECTS.replace("qps: 8", f"qps: 8, bytesPerSecond: {RATE}")
# What a document does not name, apply leaves as it is.
UNLIMITED = OBJECTS.replace("qps: 8", "qps: 8, bytesPerSecond: null")
PORTS = iter(range(18700, 18800))


def check(condition, text):
    if not condition:
        raise LabError(text)


class Hosts:
    """One controller, two hosts with an agent and a gateway each."""

    def __init__(self, lab, binaries):
        self.lab = lab
        self.hosts = gateway_pair(lab, binaries)
        self.controller = Controller(lab, self.hosts[0], binaries, "fleet_key_period: 18s\n")
        self.agents = [Agent(lab, host, binaries) for host in self.hosts]

    @staticmethod
    def socket_of(host):
        found = glob.glob(os.path.join(host.directory, "a", "*", "0", "attach.sock"))
        return found[0] if found else None

    @staticmethod
    def kill(daemon):
        daemon.daemon.signal(signal.SIGKILL)
        daemon.daemon.wait(10)

    def in_sync(self):
        self.controller.ctl("status", "--wait", "--timeout", "30")

    def start_perftest(self, queue_pairs):
        left, right = self.hosts
        port = next(PORTS)
        words = ["ib_write_bw", "-d", "rocegw0", "-q", str(queue_pairs), "-s", "65536", "-n", "200", "-F",
                 "-p", str(port), "-x", str(right.gid_index(right.address4))]
        server = left.start(words)
        left.wait_listening(port, server)
        return server, right.start([*words, left.address4])

    def start_endless(self):
        """Programs on both hosts that write to each other until they are killed."""
        left, right = self.hosts
        port = next(PORTS)
        words = ["ib_write_bw", "-d", "rocegw0", "-q", "1", "-s", "4096", "-D", "600", "-F", "-t", "4",
                 "-p", str(port), "-x", str(right.gid_index(right.address4))]
        server = left.start(words)
        left.wait_listening(port, server)
        client = right.start([*words, left.address4])
        client.expect("remote address", 30)
        return server, client

    def perftest(self, queue_pairs):
        """Bytes per second."""
        server, client = self.start_perftest(queue_pairs)
        check(client.wait(60) == 0 and server.wait(30) == 0, f"{client.output}\n{server.output}")
        # The line that begins with the size; its average is in MiB per second.
        figures = next(line.split() for line in client.output.splitlines() if line.split()[:1] == ["65536"])
        return float(figures[3]) * 2**20

    def traffic(self):
        return Traffic(self.hosts)


class Traffic:
    """A program that runs until it is told to stop, and must not notice what happens meanwhile."""

    def __init__(self, hosts):
        self.hosts = hosts

    def __enter__(self):
        return self.start()

    def start(self):
        left, right = self.hosts
        common = ["rping", "-p", str(next(PORTS)), "-a", left.address4, "-V", "-S", "1000", "-C", "1000000"]
        self.server = left.start([*common, "-s", "-d"])
        self.server.expect("rdma_listen", 30)
        self.client = right.start([*common, "-c", "-v"])
        self.client.expect("ping data", 30)
        return self

    def goes_on(self):
        """More pings are compared from now on."""
        check(self.client.running and self.server.running,
              f"the programs ended:\n{self.client.output[-2000:]}\n{self.server.output[-2000:]}")
        seen = self.client.output.count("ping data")
        eventually("pings going on", lambda: self.client.output.count("ping data") > seen)

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.goes_on()
        finally:
            self.stop()

    def stop(self):
        for job in (self.client, self.server):
            job.signal(signal.SIGKILL)
            job.wait(10)
