# SPDX-License-Identifier: Apache-2.0
"""What happens to a fleet so that every panel and every alert has something to show: traffic, loss, marks, damage, quotas,
denied programs, a drain, a rejected object, daemons that die, a lost store."""

import glob
import os
import signal
import sqlite3

from netlab.fleet import Agent, Controller, eventually
from netlab.gateway_host import GatewayHost
from netlab.held_threads import HeldThreads, threads_of
from netlab.job import LabError, LocalJob, run
from netlab.tampered_link import TamperedLink
from other_fleet import OtherFleet

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
ADDRESSES = (("10.77.0.1", "fd77::1"), ("10.77.0.2", "fd77::2"))
# Frames of nonsense, faster than a stopped gateway takes them; from one source port, so that one worker gets all of them.
FLOOD = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 40000))\n"
         "for _ in range({count}): s.sendto(bytes({size}), ('{address}', 4791))")
# Requests for queue pairs of any worker, by way of any worker.
FOR_ALL_WORKERS = ("import os, socket\nfor port in range(40000, 40032):\n"
                   "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    s.bind(('', port))\n"
                   "    for _ in range(250): s.sendto(b'\\4\\0\\xff\\xff\\0' + os.urandom(3) + bytes(56), ('{address}', 4791))")


def pool(qps=8, ready=4, rate="", more="", identity=""):
    return POOL.format(qps=qps, ready=ready, rate=rate, more=more, identity=identity)


def change(host, old, new):
    """In the configuration file of a host's gateway, for its next start."""
    with open(host.config, encoding="utf-8") as file:
        text = file.read()
    with open(host.config, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def of_version(lab, program, version):
    """A copy of a program that calls itself by another version: its bytes are the same otherwise."""
    ours = run([program, "--version"]).split()[1].encode()
    with open(program, "rb") as file:
        text = file.read()
    if len(ours) != len(version) or text.count(ours + b"\0") == 0:
        raise LabError(f"{program} has no version {ours} to be changed to {version}")
    path = lab.path(f"{os.path.basename(program)}-{version.decode()}")
    with open(path, "wb") as file:
        file.write(text.replace(ours + b"\0", version + b"\0"))
    os.chmod(path, 0o755)
    return path


class Fleet:
    """Two hosts, each with gateway and agent, on a link that can be tampered with; the controller runs on the left one."""

    def __init__(self, lab, binaries):
        self.lab = lab
        self._ports = iter(range(18700, 19700))
        namespaces = [lab.namespace(side) for side in ("left", "right")]
        self.link = TamperedLink(lab, *namespaces, "link0", 4200)
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
                                     "certificates: {node_lifetime: 120s, server_lifetime: 600s}\n")
        self.other = OtherFleet(lab, self.hosts[1], binaries)
        self.agents = [Agent(lab, host, binaries, "metrics: {address: \"0.0.0.0:7473\"}\n") for host in self.hosts]

    def start(self):
        self.controller.start()
        for host, agent in zip(self.hosts, self.agents):
            host.start_gateway()
            agent.join(self.controller.join_file(host.name)).start()
        self.controller.ctl("status", "--wait", "--timeout", "60")
        self.other.start()
        return self

    def apply(self, text):
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=text)

    def into_pool(self):
        for host in self.hosts:
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: next(
                iter(glob.glob(os.path.join(h.directory, "a", "*", "0", "attach.sock"))), None))

    def out_of_pool(self):
        for host in self.hosts:
            host.attach_socket = os.path.join(host.directory, "attach.sock")

    def perftest(self, program="ib_write_bw", queue_pairs=1, *more):
        """Server on the left and client on the right, that run until they are killed."""
        left, right = self.hosts
        port = next(self._ports)
        words = [program, "-d", "rocegw0", "-q", str(queue_pairs), "-s", "16384", "-D", "300", "-F", "-t", "8",
                 "-p", str(port), "-x", str(right.gid_index(right.address4)), *more]
        server = left.start(words)
        left.wait_listening(port, server)
        return server, right.start([*words, left.address4])

    def connected(self, *words):
        server, client = self.perftest(*words)
        client.expect("remote address", 60)
        return server, client

    @staticmethod
    def kill(*jobs):
        for job in jobs:
            job.signal(signal.SIGKILL)
            job.wait(20)

    def check_verbs(self, connect):
        """Every verb and every refusal, both ways at once; what it says about them is another test's business."""
        left, right = self.hosts
        pairs = []
        for server, client in ((left, right), (right, left)):
            port = str(next(self._ports))
            serving = server.start([server.program("rdma_check"), "server", "--port", port])
            serving.expect("serving on port", 60)
            pairs.append((serving, client.start([client.program("rdma_check"), "client", server.address4, "--port", port,
                                                 "--connect", connect, "--cases", "[!e]*", "--direction", "client"])))
        return pairs


def steps(fleet, prometheus):
    """(name, function) in their order."""
    left, right = fleet.hosts
    rounds = prometheus.rounds

    def on_a_bad_link():
        """Traffic while the link loses, marks and damages packets"""
        traffic = fleet.connected("ib_write_bw", 4)
        reads = fleet.connected("ib_read_bw", 2)
        fleet.link.lose, fleet.link.mark, fleet.link.damage = 37, 11, 53
        pairs = fleet.check_verbs("cm")
        for server, client in pairs:
            client.wait(240)
            fleet.kill(server)
        rounds(4)
        fleet.link.well()
        fleet.kill(*traffic, *reads)

    def channels():
        """A pool of a tenant; between gateways frames go over channels"""
        fleet.apply(pool())
        fleet.into_pool()
        on_a_bad_link()

    def native():
        """Plain RoCEv2 between the same gateways, one of which nobody knows for a gateway, out of the pool"""
        for host in fleet.hosts:
            change(host, "channels: enabled", "discovery: disabled" if host is right else "channels: disabled")
            for _ in range(2):
                host.stop_gateway()
                rounds(1)
                host.start_gateway()
                rounds(2)
        fleet.out_of_pool()
        on_a_bad_link()

    def late_receiver():
        """A program that posts no receives for a while, and one that dies under many connections"""
        server, client = fleet.connected("ib_send_bw", 4, "-r", "16")
        rounds(1)
        server.signal(signal.SIGSTOP)
        rounds(4)
        server.signal(signal.SIGCONT)
        fleet.kill(server, client)
        server, client = fleet.connected("ib_write_bw", 16)
        fleet.kill(server)
        client.wait(120)
        rounds()

    def quotas():
        """Limits that are reached, exceeded, held back by; a reserve that does not suffice"""
        fleet.apply(pool(qps=8, ready=1))
        fleet.into_pool()
        full = fleet.connected("ib_write_bw", 8)
        rounds(3)
        over = fleet.perftest("ib_write_bw", 4)
        over[0].wait(60) if not over[0].running else None
        over[1].wait(60)
        fleet.kill(*full, *over)
        fleet.apply(pool(rate=", bytesPerSecond: 4000000"))
        slow = fleet.connected("ib_write_bw", 2)
        rounds(4)
        fleet.kill(*slow)
        fleet.apply(pool(rate=", bytesPerSecond: null"))

    def denied():
        """Programs that nobody vouches for, then those that somebody does"""
        fleet.apply(pool(identity=", identity: REQUIRED"))
        for _ in range(3):
            if left.start(["ibv_devinfo", "-d", "rocegw0"]).wait(30) == 0:
                raise LabError("somebody whom nobody knows got in")
            rounds(1)
        for agent in fleet.agents:
            agent.configure(f"{{pool: tenants/blue/pools/fast, uids: [{os.geteuid()}], cgroups: [/]}}")
            eventually("the new rules", lambda a=agent: "attach_rules are read again" in a.daemon.output)
        for _ in range(3):
            left.run_plain(f"ROCEGW_SOCKET={left.attach_socket} {left.program('rocegw-run')} -- ibv_devinfo -d rocegw0")
            rounds(1)
        fleet.apply(pool(identity=", identity: RECORDED"))

    def rejected():
        """A pool with an address that only one of the gateways has"""
        fleet.controller.ctl("apply", "-f", "-", stdin=pool(more="addresses: [\"10.77.0.1\"]"))
        rounds(4)
        fleet.apply(pool(more="addresses: []"))

    def drain():
        """A drain under traffic"""
        traffic = fleet.connected("ib_write_bw", 2)
        fleet.controller.ctl("get", "sessions", "-g", "right")
        fleet.controller.ctl("drain", "right", "--deadline", "2s", "--on-deadline", "disconnect", "--wait", "--timeout", "60")
        rounds()
        fleet.controller.ctl("undrain", "right")
        fleet.kill(*traffic)

    def misuse():
        """Programs with faults of their own"""
        for words in (("overrun", str(left.gid_index(left.address4))), ("vanish", str(left.gid_index(left.address4))),
                      ("scribble",)):
            program = left.start([left.program("misuse"), *words])
            program.expect("done", 30)
            rounds()
            fleet.kill(program)

    def locked_store():
        """Somebody else holds the controller's database: a write waits, and gives up in the end"""
        database = sqlite3.connect(glob.glob(os.path.join(fleet.controller.state, "fleet.db"))[0], isolation_level=None)
        for held in (2, 8):
            database.execute("BEGIN IMMEDIATE")
            write = LocalJob(fleet.controller.ctl_words("update", "tenant", "blue", f"display_name=Held{held}"))
            rounds(held)
            database.execute("COMMIT")
            write.wait(30)
            rounds()
        database.close()

    def held_up():
        """A gateway that gets no processor: packets pile up"""
        def flood(count):
            run(["/usr/bin/python3", "-c", FLOOD.format(count=count, size=2000, address=right.address4)], namespace=right.namespace)
        right.daemon.signal(signal.SIGSTOP)
        flood(20000)
        fleet.controller.ctl("update", "tenant", "blue", "display_name=Azure")
        rounds(4)
        right.daemon.signal(signal.SIGCONT)
        # The kernel tells what it lost with what it did not.
        flood(100)
        rounds(3)

    def nobody_there():
        """Connections to hosts that are gone: each waits for discovery"""
        program = left.start([left.program("misuse"), "nobody", str(left.gid_index(left.address4))])
        program.expect("done", 30)
        rounds(3)
        fleet.kill(program)

    def starved():
        """A worker that gets no processor: the other one cannot hand over what is its own"""
        with HeldThreads([[number for name, number in threads_of(right.daemon.pid) if name == "rocegw-worker"][-1]]):
            run(["/usr/bin/python3", "-c", FOR_ALL_WORKERS.format(address=right.address4)], namespace=left.namespace)
        rounds()

    def stuck_stop():
        """A gateway that cannot come to its end: threads that serve calls do not return"""
        with HeldThreads([number for name, number in threads_of(left.daemon.pid) if name.startswith("grpc")]):
            left.daemon.signal(signal.SIGTERM)
            rounds()
        left.daemon.wait(20)
        left.start_gateway()
        fleet.controller.ctl("status", "--wait", "--timeout", "60")

    def no_way():
        """No route to the peer, then a port that is down"""
        traffic = fleet.connected("ib_write_bw", 4)
        rounds()
        run(["ip", "route", "add", "unreachable", f"{right.address4}/32"], namespace=left.namespace)
        rounds(6)
        run(["ip", "route", "del", "unreachable", f"{right.address4}/32"], namespace=left.namespace)
        run(["ip", "link", "set", "link0", "down"], namespace=left.namespace)
        rounds(6)
        run(["ip", "link", "set", "link0", "up"], namespace=left.namespace)
        # IPv6 addresses go with the link.
        run(["ip", "address", "replace", f"{left.address6}/64", "dev", "link0", "nodad"], namespace=left.namespace)
        fleet.kill(*traffic)

    def killed():
        """Each daemon killed in turn; agents come back as an upgrade and one that was undone leave them"""
        fleet.kill(fleet.controller.daemon)
        rounds(3)
        fleet.controller.start()
        rounds(2)
        # Back at once it finds its own lease and leads when that has ended; the first time it may have ended before.
        fleet.kill(fleet.controller.daemon)
        fleet.controller.start()
        rounds(2)
        for agent, version in zip(fleet.agents, (b"0.0.9", b"0.2.1")):
            fleet.kill(agent.daemon)
            agent.program = of_version(fleet.lab, agent.program, version)
        rounds(3)
        for agent in fleet.agents:
            agent.start()
        fleet.controller.ctl("status", "--wait", "--timeout", "60")
        # In the middle of a change.
        right.daemon.signal(signal.SIGSTOP)
        fleet.controller.ctl("update", "tenant", "blue", "display_name=Late")
        rounds()
        fleet.kill(right.daemon)
        rounds(3)
        right.start_gateway()
        fleet.controller.ctl("status", "--wait", "--timeout", "60")

    def store_away():
        """Another fleet's etcd ends, and comes back"""
        fleet.other.kill_store()
        eventually("an alert that a controller does not follow its store", lambda: prometheus.fires("RocegwControllerNotReady"))
        fleet.other.start_store()

    def lost_store():
        """The controller's database is lost"""
        fleet.kill(fleet.controller.daemon)
        for path in glob.glob(os.path.join(fleet.controller.state, "fleet.db*")):
            os.unlink(path)
        fleet.controller.start()
        eventually("gateways that follow another store",
                   lambda: fleet.controller.ctl("get", "gateways", "-o", "yaml").count("AnotherStore") == 2, 60)
        rounds()

    def forgotten():
        """Somebody takes all jobs out of Prometheus' configuration"""
        prometheus.forget_targets()
        for who in ("Gateways", "Agents", "Controllers"):
            eventually("an alert that nothing is scraped", lambda alert=f"Rocegw{who}Absent": prometheus.fires(alert))

    order = (channels, no_way, nobody_there, native, late_receiver, misuse, quotas, denied, rejected, drain, held_up, starved,
             stuck_stop, locked_store, killed, store_away, lost_store, forgotten)
    return [(step.__name__, step) for step in order]
