#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that ask for a pool in their resource limits: a controller, two hosts with gateway and agent, on one of them a kubelet
of the tests' own that speaks the real protocols, and real containers (runc) started with what the device plugin gives.
Needs root.

  tests/e2e/kubernetes/run.py --binaries build/dev/bin
  tests/e2e/kubernetes/run.py --binaries build/dev/bin --cdi    containers get their slots as devices of the container runtime
"""

import argparse
import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import last_words, run_steps  # noqa: E402
from netlab.pod import Kubelet  # noqa: E402

# Each pool has an address of its own, so that both may listen on the same port.
POOL = """\
name: tenants/{tenant}
spec: {{displayName: {tenant}}}
---
name: tenants/{tenant}/pools/train
spec:
  gateways: {{names: [gateways/left]}}
  slots: 2
  addresses: [{address}]
  attach: {{identity: REQUIRED, serviceAccounts: [{{namespace: {name_space}}}]}}
---
name: tenants/{tenant}/pools/hosts
spec: {{gateways: {{names: [gateways/right]}}, slots: 1}}
"""
RED, BLUE, GREEN = "rocegw.io/red.train", "rocegw.io/blue.train", "rocegw.io/green.train"
# perftest listens on all addresses, and holds its port on all of them.
PORT, WRITE_PORT = 18515, 18516
WRITE_SERVER = f"ib_write_bw -d rocegw0 -R -F -s 65536 -n 200 -p {WRITE_PORT}"


def check(condition, text):
    if not condition:
        raise LabError(text)


class Tour:
    def __init__(self, lab, binaries, cdi):
        self.lab = lab
        self.left, self.right = gateway_pair(lab, binaries)
        self.addresses = {RED: "10.77.0.11", BLUE: "10.77.0.12"}
        for address in self.addresses.values():
            lab.address(self.left.namespace, "link0", f"{address}/24")
        self.controller = Controller(lab, self.left, binaries)
        self.kubelet = Kubelet(lab, binaries, cdi)
        library = os.path.join(os.path.dirname(binaries.rstrip("/")), "lib")
        self.agents = [Agent(lab, self.left, binaries, self.kubelet.settings(library)), Agent(lab, self.right, binaries)]

    # Steps ----------------------------------------------------------------------------------------------------------

    def offer(self):
        """Two pools of two tenants become resources of the node"""
        self.controller.start()
        for host, agent in zip((self.left, self.right), self.agents):
            host.start_gateway()
            agent.join(self.controller.join_file(host.name)).start()
        for tenant, name_space, resource in (("red", "web", RED), ("blue", "shop", BLUE)):
            self.controller.ctl("apply", "-f", "-", "--wait", stdin=POOL.format(
                tenant=tenant, name_space=name_space, address=self.addresses[resource]))
        for resource in (RED, BLUE):
            self.kubelet.wait_healthy(resource, 2)

    def write(self):
        """ib_write_bw in a container and on another host"""
        self.red = self.kubelet.admit("web", "trainer", RED)
        server = self.red.run(WRITE_SERVER)
        self.write_to(server)
        check(server.wait(30) == 0, server.output)

    def same_port(self):
        """rping servers of two tenants in two pods on the same port, each on its pool's address"""
        self.blue = self.kubelet.admit("shop", "till", BLUE)
        pods = {RED: self.red.again(self.listen(RED)), BLUE: self.blue.run(self.listen(BLUE))}
        for resource, server in pods.items():
            server.expect("rdma_listen", 30)
            client = self.client_of(resource, ["rping", "-c", "-a", self.addresses[resource], "-p", str(PORT), "-C", "20", "-V"])
            check(client.wait(30) == 0, f"{client.output}\n{server.output}")
        # The red one's container stays: who starts in its place cuts off what is left of it.
        self.blue.kill()

    def own_preload(self):
        """A pod with an LD_PRELOAD of its own: with ours beside it it works, and an event tells of it"""
        other = "/lib/x86_64-linux-gnu/libm.so.6"
        job = self.red.again(f"LD_PRELOAD={other}:$LD_PRELOAD ibv_devinfo -d rocegw0")
        check(job.wait(30) == 0 and "PORT_ACTIVE" in job.output, job.output)
        events = json.loads(self.left.control("events", "-o", "json"))["events"]
        told = [event["message"] for event in events if event["reason"] == "OWN_PRELOAD"]
        check(len(told) == 1 and "tenants/red/pools/train: ibv_devinfo" in told[0] and f"with {other} besides" in told[0],
              f"events: {events}")

    def foreign(self):
        """A pod of a namespace that the pool does not name gets the resource, and not the pool; its log says why"""
        thief = self.kubelet.admit("evil", "thief", RED)
        job = thief.run("ibv_devinfo -d rocegw0")
        check(job.wait(30) != 0, f"it got in:\n{job.output}")
        said = "pod evil/thief: tenants/red/pools/train is for namespace web only"
        check(said in job.output, f"its log does not say {said!r}:\n{job.output}")
        refused = [value for (name, labels), value in self.left.metrics().items()
                   if name == "rocegw_pool_refused_total" and 'tenant="red"' in labels and 'limit="identity"' in labels]
        check(sum(refused) >= 1, f"nothing was counted: {refused}")
        # The slot of another pod, mounted by other means: its namespace would do, the pod does not.
        thief.end()
        friend = self.kubelet.admit("web", "friend", RED)
        friend.mounts = self.red.mounts
        job = friend.run("ibv_devinfo -d rocegw0")
        check(job.wait(30) != 0 and "belongs to another pod" in job.output, f"it got in:\n{job.output}")
        friend.end()
        self.kubelet.wait_healthy(RED, 2)

    def restarts(self):
        """Agent and kubelet start anew under traffic; nobody notices, and pods come as before"""
        server = self.blue.again(self.listen(BLUE))
        server.expect("rdma_listen", 30)
        client = self.client_of(BLUE, ["rping", "-c", "-a", self.addresses[BLUE], "-p", str(PORT), "-v"])
        client.expect("ping data", 30)
        agent = self.agents[0]
        agent.daemon.signal(signal.SIGKILL)
        agent.daemon.wait(10)
        self.goes_on(client)
        agent.start()
        self.kubelet.wait_healthy(BLUE, 2)
        before = self.kubelet.ask("registrations", BLUE)["count"]
        self.kubelet.ask("restart")
        self.kubelet.wait_healthy(BLUE, 2)
        check(self.kubelet.ask("registrations", BLUE)["count"] == before + 1, "registered more than once")
        other = self.kubelet.admit("shop", "second", BLUE)
        job = other.run("ibv_devinfo -d rocegw0")
        check(job.wait(30) == 0 and "PORT_ACTIVE" in job.output, job.output)
        other.end()
        self.goes_on(client)
        client.signal(signal.SIGKILL)
        client.wait(20)
        self.blue.kill()

    def not_root(self):
        """The pool of the example: a pod of another user, without any capability, sees the device and talks"""
        with open(os.path.join(HERE, "../../../examples/kubernetes/pool.yaml"), encoding="utf-8") as file:
            example = file.read().replace("tenants/red", "tenants/green")
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=example)
        self.kubelet.wait_healthy(GREEN, 16)
        pod = self.kubelet.admit("web", "restricted", GREEN)
        pod.user = 10001
        job = pod.run("ibv_devinfo -d rocegw0")
        check(job.wait(30) == 0 and "PORT_ACTIVE" in job.output, job.output)
        pod.end()

    def last_words(self):
        """A gateway that is told to stop says whom it cuts off, in its log"""
        server = self.red.again(self.listen(RED))
        server.expect("rdma_listen", 30)
        client = self.client_of(RED, ["rping", "-c", "-a", self.addresses[RED], "-p", str(PORT), "-v"])
        client.expect("ping data", 30)
        daemon = self.left.daemon
        daemon.signal(signal.SIGTERM)
        daemon.expect(r"disconnects \d+ sessions with \d+ queue pairs; session \d+ \(rping, pid \d+\): \d+ queue pairs", 10)
        daemon.wait(20)
        client.signal(signal.SIGKILL)
        client.wait(20)
        self.red.kill()
        self.left.start_gateway()
        self.kubelet.wait_healthy(RED, 2)

    def drain(self):
        """A gateway that drains has no healthy slots, and has them again afterwards; asked on its host, as preStop does"""
        said = self.left.control("drain", "--wait")
        check(said == "drained\n", f"it says {said!r}")
        self.kubelet.wait_healthy(RED, 0)
        self.left.control("undrain")
        self.kubelet.wait_healthy(RED, 2)

    def gateway(self):
        """The gateway starts anew in the middle of a container's life: its next program attaches as before"""
        ended = "echo ended $?"
        ping = f"rping -s -d -a {self.addresses[RED]} -p {PORT}"
        there = "until ibv_devinfo -d rocegw0 > /dev/null 2>&1; do sleep 0.1; done"
        job = self.red.again(f"{WRITE_SERVER}; {ended}; {ping}; {ended}; {there}; {WRITE_SERVER}; {ended}")
        self.write_to(job)
        job.expect("ended 0", 30)
        job.expect("rdma_listen", 30)
        client = self.client_of(RED, ["rping", "-c", "-a", self.addresses[RED], "-p", str(PORT), "-v"])
        client.expect("ping data", 30)
        self.left.daemon.signal(signal.SIGKILL)
        self.left.daemon.wait(10)
        client.signal(signal.SIGKILL)
        client.wait(20)
        self.left.start_gateway()
        # What the shell starts when its ping server has ended finds the new gateway at the same path.
        self.write_to(job, after=r"ended (?s:.)*ended (?s:.)*Waiting for client")
        check(job.wait(30) == 0 and job.output.count("ended 0") == 2, job.output)
        self.kubelet.wait_healthy(RED, 2)
        check(self.red.again("ibv_devinfo -d rocegw0").wait(30) == 0, "it does not start again")

    # Parts of them --------------------------------------------------------------------------------------------------

    def client_of(self, resource, command):
        """Runs on the other host, in the same tenant's pool there."""
        pool = "tenants/" + resource.split("/")[1].split(".")[0] + "/pools/hosts"
        pools = json.loads(self.right.control("get", "pools", "-o", "json"))["pools"]
        self.right.attach_socket = next(found["sockets"][0] for found in pools if found["pool"] == pool)
        return self.right.start(command)

    def listen(self, resource):
        return f"rping -s -d -P -a {self.addresses[resource]} -p {PORT}"

    def write_to(self, server, after="Waiting for client"):
        server.expect(after, 40)
        client = self.client_of(RED, ["ib_write_bw", "-d", "rocegw0", "-R", "-F", "-s", "65536", "-n", "200",
                                      "-p", str(WRITE_PORT), self.addresses[RED]])
        check(client.wait(60) == 0, f"{client.output}\n{server.output}")

    @staticmethod
    def goes_on(client):
        seen = client.output.count("ping data")
        eventually("pings going on", lambda: client.output.count("ping data") > seen)


STEPS = ("offer", "write", "same_port", "own_preload", "foreign", "restarts", "not_root", "drain", "gateway", "last_words")
# What the way into the container makes a difference for.
CDI_STEPS = ("offer", "write", "same_port", "restarts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--cdi", action="store_true", help="by the container runtime, and only the first steps")
    arguments = parser.parse_args()
    with Lab() as lab:
        tour = Tour(lab, os.path.abspath(arguments.binaries), arguments.cdi)
        steps = CDI_STEPS if arguments.cdi else STEPS
        return run_steps("kubernetes", [getattr(tour, step) for step in steps],
                         lambda: last_words(tour.controller, *tour.agents, tour.left, tour.right))


if __name__ == "__main__":
    sys.exit(main())
