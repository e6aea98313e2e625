# SPDX-License-Identifier: Apache-2.0
"""What happens to a fleet so that every panel and every alert has something to show: traffic, loss, marks, damage, quotas,
denied programs, a drain, a rejected object, daemons that die, a lost store.

Each lasts until Prometheus has seen what is seen of it alone, however long that takes (prometheus.MOST)."""

import glob
import itertools
import json
import os
import signal
import sqlite3

from netlab.fleet import Agent, Controller, eventually
from netlab.gateway_host import GatewayHost
from netlab.held_threads import HeldThreads, threads_of
from netlab.job import LabError, LocalJob, run
from netlab.tampered_link import TamperedLink
from other_fleet import OtherFleet
from prometheus import MOST, rising
from remote_memory import RemoteMemory

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
# Frames of nonsense, faster than a stopped gateway takes them; from one source port, so that one worker gets all of them.
FLOOD = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 40000))\n"
         "for _ in range({count}): s.sendto(bytes({size}), ('{address}', 4791))")
# For the connection manager, damaged: what comes of it is for nobody.
FLOOD_OF_MADS = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 "for _ in range({count}): s.sendto(b'\\x64\\0\\xff\\xff\\0\\0\\0\\1' + bytes(300), ('{address}', 4791))")
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


def expect_running(jobs):
    ended = [job for job in jobs if not job.running]
    if ended:
        raise LabError("traffic has ended\n" + "".join(f"{job.title}: {job.returncode}\n{job.output[-500:]}" for job in ended))


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


def steps(fleet, prometheus):
    """(name, function) in their order."""
    left, right = fleet.hosts
    rounds, until_shows, until_fires = prometheus.rounds, prometheus.until_shows, prometheus.until_fires

    def in_order():
        fleet.in_order()
        until_shows("sum(rocegw_agent_in_sync) == 2")

    names = itertools.count()

    def stop_in_a_change():
        """The gateway on the right, which an agent asks to apply something. That its gateway does not answer it finds out in
        five seconds, and then it is another alert; what comes later than that does not come to the agent at all."""
        right.daemon.signal(signal.SIGCONT)
        in_order()
        right.daemon.signal(signal.SIGSTOP)
        fleet.controller.ctl("update", "tenant", "blue", f"display_name=Azure{next(names)}")
        rounds(2)

    def on_a_bad_link(programs, alert, *counters):
        """Traffic while the link loses, marks and damages packets"""
        # Marks from the first packet on: whoever has lost one may take another algorithm, which wants none.
        fleet.link.mark = 11
        traffic = [job for words in programs for job in fleet.connected(*words)]
        fleet.link.lose, fleet.link.damage = 37, 53
        pairs = fleet.check_verbs("cm")
        for server, client in pairs:
            client.wait(4 * MOST)
            fleet.kill(server)
        until_fires(alert, "RocegwDamagedPackets", "RocegwDeliveryBudgetBurns", doing=lambda: expect_running(traffic))
        until_shows(*(f"sum({counter})" for counter in counters), doing=lambda: expect_running(traffic))
        fleet.link.well()
        fleet.end(*traffic)

    def migration():
        """A storage cluster changes to gateways; a wave waits, and a node is lost within it"""
        migrate = fleet.storage.plan(fleet.lab, fleet.controller)
        fleet.controller.ctl("migrate", "start", migrate)
        fleet.controller.ctl("migrate", "set", "files", "lost-after=1s", "retry-after=1s")
        until_fires("RocegwMigrationWaits")
        with open(fleet.storage.slow, "w", encoding="utf-8"):
            pass
        fleet.controller.ctl("migrate", "approve", "files", "wave-2")
        until_shows('sum(rocegw_migration_nodes{wave="wave-2",state=~"PENDING|READY"})', "sum(rocegw_migration_nodes_out_of_service)")
        for agent in fleet.agents:
            fleet.kill(agent.daemon)
        until_fires("RocegwMigrationNodeLost")
        until_shows('sum(rocegw_migration_paused{reason="lost-node"})')
        os.unlink(fleet.storage.slow)
        for agent in fleet.agents:
            agent.start()
        in_order()
        fleet.controller.ctl("migrate", "abort", "files")
        until_shows('sum(rocegw_migration_state{state="ABORTED"})')

    def upgrade():
        """An upgrade of gateways whose agents are away, which a person ends"""
        for agent in fleet.agents:
            fleet.kill(agent.daemon)
        fleet.controller.ctl("upgrade", "start", "away", "--all")
        until_shows('sum(rocegw_upgrade_gateways{state="WAITING"})')
        fleet.controller.ctl("upgrade", "abort", "away")
        until_shows('sum(rocegw_upgrade_state{state="ABORTED"})')
        for agent in fleet.agents:
            agent.start()
        in_order()

    def channels():
        """A pool of a tenant; between gateways frames go over channels"""
        fleet.apply(pool())
        fleet.into_pool()
        on_a_bad_link([("ib_write_bw", 4), ("ib_read_bw", 2)], "RocegwChannelLoss", "rocegw_channel_probe_events_total")

    def native():
        """Plain RoCEv2 between the same gateways, one of which nobody knows for a gateway, out of the pool"""
        for host in fleet.hosts:
            change(host, "channels: enabled", "discovery: disabled" if host is right else "channels: disabled")
            up = f'up{{job="rocegw-gateway",node="{host.address4}"}}'
            for _ in range(2):
                host.stop_gateway()
                until_shows(f"1 - {up}")
                host.start_gateway()
                until_shows(up)
        until_fires("RocegwGatewayRestarts")
        fleet.out_of_pool()
        on_a_bad_link([("ib_write_bw", 4), ("ib_read_bw", 2), ("ib_atomic_bw", 1)], "RocegwRetransmission",
                      "rocegw_atomic_replay_events_total", "rocegw_read_replay_events_total", "rocegw_tail_probe_events_total",
                      "rocegw_timeout_events_total", "rocegw_implied_nak_events_total", "rocegw_nak_sequence_rx_packets_total",
                      "rocegw_cnp_rx_packets_total", "rocegw_congestion_switch_events_total")

    def late_receiver():
        """A program that posts no receives for a while, and one whose many connections lose their peer"""
        server, client = fleet.connected("ib_send_bw", 4, "-r", "16")
        rounds(1)
        server.signal(signal.SIGSTOP)
        until_fires("RocegwReceiverNotReady")
        server.signal(signal.SIGCONT)
        fleet.end(server, client)
        server, client = fleet.connected("ib_write_bw", 16)
        # The first failure that it sees would be its end, and that of connections which have not failed yet.
        fleet.link.lose = 1
        client.signal(signal.SIGSTOP)
        fleet.kill(server)
        until_fires("RocegwQueuePairsFail")
        client.signal(signal.SIGCONT)
        client.wait(MOST)
        fleet.link.well()

    def quotas():
        """Limits that are reached, exceeded, held back by; a reserve that does not suffice"""
        fleet.apply(pool(qps=8, ready=1))
        fleet.into_pool()
        full = fleet.connected("ib_write_bw", 8)
        until_fires("RocegwReserveTooSmall", "RocegwPoolNearLimit")
        over = fleet.perftest("ib_write_bw", 4)
        over[1].wait(MOST)
        until_fires("RocegwPoolRefuses")
        fleet.end(*full, *over)
        fleet.apply(pool(rate=", bytesPerSecond: 4000000"))
        slow = fleet.connected("ib_write_bw", 2)
        until_shows(rising('rocegw_pool_refused_total{limit="bytes_per_second"}'))
        fleet.end(*slow)
        fleet.apply(pool(rate=", bytesPerSecond: null"))

    def denied():
        """Programs that nobody vouches for, then those that somebody does"""
        fleet.apply(pool(identity=", identity: REQUIRED"))
        for _ in range(3):
            if left.start(["ibv_devinfo", "-d", "rocegw0"]).wait(MOST) == 0:
                raise LabError("somebody whom nobody knows got in")
            rounds(1)
        until_fires("RocegwAccessDenied")
        for agent in fleet.agents:
            agent.configure(f"{{pool: tenants/blue/pools/fast, uids: [{os.geteuid()}], cgroups: [/]}}")
            eventually("the new rules", lambda a=agent: "attach_rules are read again" in a.daemon.output, MOST)
        for _ in range(3):
            left.run_plain(f"ROCEGW_SOCKET={left.attach_socket} {left.program('rocegw-run')} -- ibv_devinfo -d rocegw0")
            rounds(1)
        until_shows(rising("rocegw_agent_attach_verdicts_total"))
        fleet.apply(pool(identity=", identity: RECORDED"))

    def rejected():
        """A pool with an address that only one of the gateways has"""
        fleet.controller.ctl("apply", "-f", "-", stdin=pool(more="addresses: [\"10.77.0.1\"]"))
        until_fires("RocegwObjectsRejected")
        fleet.apply(pool(more="addresses: []"))

    def drain():
        """A drain under traffic"""
        traffic = fleet.connected("ib_write_bw", 2)
        fleet.controller.ctl("get", "sessions", "-g", "right")
        until_shows("sum(rocegw_agent_questions_total)")
        fleet.controller.ctl("drain", "right", "--deadline", "2s", "--on-deadline", "disconnect", "--wait", "--timeout", "50")
        rounds()
        fleet.controller.ctl("undrain", "right")
        fleet.end(*traffic)

    def misuse():
        """Programs with faults of their own"""
        gid_index = str(left.gid_index(left.address4))
        for fault, until, seen in (("overrun", until_fires, "RocegwCompletionQueueOverrun"),
                                   ("vanish", until_shows, rising("rocegw_memory_fault_operations_total")),
                                   ("scribble", until_fires, "RocegwClientFault")):
            program = left.start([left.program("misuse"), fault, gid_index])
            program.expect("done", MOST)
            until(seen)
            fleet.kill(program)

    def locked_store():
        """Somebody else holds the controller's database: a write waits, and gives up in the end"""
        database = sqlite3.connect(glob.glob(os.path.join(fleet.controller.state, "fleet.db"))[0], isolation_level=None)
        for name, enough in (("Late", lambda write: rounds(2)), ("Never", lambda write: write.wait(MOST))):
            database.execute("BEGIN IMMEDIATE")
            write = LocalJob(fleet.controller.ctl_words("update", "tenant", "blue", f"display_name={name}"))
            enough(write)
            database.execute("COMMIT")
            write.wait(MOST)
        until_fires("RocegwStoreSlow", "RocegwStoreFails")
        database.close()

    def held_up():
        """A gateway that gets no processor: packets pile up"""
        def flood(count):
            run(["/usr/bin/python3", "-c", FLOOD.format(count=count, size=2000, address=right.address4)], namespace=right.namespace)
        until_fires("RocegwNotInSync", doing=stop_in_a_change)
        flood(20000)
        right.daemon.signal(signal.SIGCONT)
        # The kernel tells what it lost with what it did not.
        until_fires("RocegwReceiveBufferFull", doing=lambda: flood(100))

    def flooded():
        """More messages for the connection manager than a gateway answers"""
        def flood():
            run(["/usr/bin/python3", "-c", FLOOD_OF_MADS.format(count=200000, address=right.address4)], namespace=left.namespace)
        until_fires("RocegwFlood", doing=flood)

    def nobody_there():
        """Connections to hosts that are gone: each waits for discovery"""
        program = left.start([left.program("misuse"), "nobody", str(left.gid_index(left.address4))])
        program.expect("done", MOST)
        until_fires("RocegwSetUpBudgetBurns")
        fleet.end(program)

    def starved():
        """A worker that gets no processor: the other one cannot hand over what is its own"""
        last = [number for name, number in threads_of(right.daemon.pid) if name == "rocegw-worker"][-1:]

        def starve():
            with HeldThreads(last):
                run(["/usr/bin/python3", "-c", FOR_ALL_WORKERS.format(address=right.address4)], namespace=left.namespace)
            rounds(2)
        until_shows(rising('rocegw_drops_total{reason="handoff_full"}'), doing=starve)
        until_fires("RocegwGatewayDropsPackets")
        with HeldThreads(last):
            until_fires("RocegwWorkerHangs")

    def stuck_stop():
        """A gateway that cannot come to its end: threads that serve calls do not return"""
        with HeldThreads([number for name, number in threads_of(left.daemon.pid) if name.startswith("grpc")]):
            left.daemon.signal(signal.SIGTERM)
            until_fires("RocegwGatewayNotReady")
        left.daemon.wait(MOST)
        left.start_gateway()
        in_order()

    def no_way():
        """No route to the peer, then a port that is down"""
        traffic = fleet.connected("ib_write_bw", 4)
        rounds()
        run(["ip", "route", "add", "unreachable", f"{right.address4}/32"], namespace=left.namespace)
        until_fires("RocegwSendingGivenUp")
        run(["ip", "route", "del", "unreachable", f"{right.address4}/32"], namespace=left.namespace)
        run(["ip", "link", "set", "link0", "down"], namespace=left.namespace)
        until_fires("RocegwPortDown")
        until_shows("sum(rocegw_channel_path_change_events_total)", "sum(rocegw_channel_close_events_total)")
        run(["ip", "link", "set", "link0", "up"], namespace=left.namespace)
        # IPv6 addresses go with the link.
        run(["ip", "address", "replace", f"{left.address6}/64", "dev", "link0", "nodad"], namespace=left.namespace)
        fleet.end(*traffic)

    def killed():
        """Each daemon killed in turn; agents come back as an upgrade and one that was undone leave them"""
        fleet.kill(fleet.controller.daemon)
        until_fires("RocegwNoController", "RocegwControllerDown", "RocegwAgentDisconnected")
        fleet.controller.start()
        rounds(2)
        for agent, version in zip(fleet.agents, (b"0.0.9", b"0.2.1")):
            fleet.kill(agent.daemon)
            agent.program = of_version(fleet.lab, agent.program, version)
        until_fires("RocegwAgentDown")
        for agent in fleet.agents:
            agent.start()
        until_fires("RocegwVersionsApart")
        until_shows("rocegw_agent_desired_revision - rocegw_agent_applied_revision", doing=stop_in_a_change)
        fleet.kill(right.daemon)
        until_fires("RocegwAgentWithoutGateway")
        until_shows("sum(rocegw_agent_failed_applies_total)")
        right.start_gateway()
        in_order()

    def store_away():
        """Another fleet's etcd ends, and comes back"""
        fleet.other.kill_store()
        until_fires("RocegwControllerNotReady", "RocegwNobodyKeepsHouse")
        fleet.other.start_store()

    def lost_store():
        """The controller's database is lost"""
        fleet.kill(fleet.controller.daemon)
        for path in glob.glob(os.path.join(fleet.controller.state, "fleet.db*")):
            os.unlink(path)
        fleet.controller.start()
        eventually("gateways that follow another store",
                   lambda: fleet.controller.ctl("get", "gateways", "-o", "yaml").count("AnotherStore") == 2, MOST)
        until_fires("RocegwUnadopted", "RocegwControllerBehind")

    def remote_memory():
        """A donor of remote memory ends, another one drains, the disk of a disk copy is full"""
        memory = RemoteMemory(fleet)
        until_shows(rising("rocegw_memory_files_written_bytes_total"), rising("rocegw_memory_files_read_bytes_total"),
                    rising("rocegw_memory_files_no_room_total"), rising("rocegw_memory_session_disk_written_bytes_total"),
                    doing=lambda: (memory.touch(memory.plain), memory.touch(memory.copied)))
        until_fires("RocegwMemoryDiskCopyFails", doing=lambda: memory.touch(memory.copied))
        until_shows(rising("rocegw_memory_sessions_refused_total"), doing=memory.ask_without_quota)
        until_shows(rising("rocegw_memory_leases_granted_total"), doing=memory.come_and_go)
        until_shows('max(rocegw_donors{state="serving"})', "max(rocegw_donors_donated_bytes)", "max(rocegw_agent_donors)",
                    rising("rocegw_donor_reports_total"))
        memory.fill_donors()
        until_fires("RocegwDonorsFull")
        memory.make_room()
        until_shows(rising('rocegw_donor_searches_total{end="no_room"}'), rising("rocegw_agent_donor_questions_total"),
                    doing=memory.ask_the_fleet)
        fleet.kill(fleet.agents[1].daemon)
        until_fires("RocegwDonorSilent")
        fleet.agents[1].start()
        in_order()
        until_shows(rising("rocegw_memory_pool_joins_total"), rising('rocegw_memory_pool_refused_joins_total{reason="secret"}'),
                    "max(rocegw_memory_pool_values)", doing=memory.join_pool)
        until_fires("RocegwBlockPoolStrangers", doing=memory.join_pool)
        memory.stay_in_pool()
        until_shows("max(rocegw_memory_pool_connections)")
        memory.lose_pool()
        until_fires("RocegwBlockDonorGone")
        memory.bring_pool_back()
        memory.lose_donor()
        until_fires("RocegwMemoryPagesLost", "RocegwMemoryLacksReplicas",
                    doing=lambda: (memory.read(memory.plain), memory.read(memory.copied)))
        until_shows(rising("rocegw_memory_files_failed_total"), doing=lambda: memory.read(memory.plain))
        until_shows(rising("rocegw_memory_session_disk_read_bytes_total"), doing=lambda: memory.read(memory.copied))
        memory.bring_donor_back()
        until_shows(rising("rocegw_memory_session_restored_bytes_total"))
        until_shows(rising('rocegw_refused_donors_total{reason="foreign_address"}'), doing=memory.announce_address_of_nobody)
        memory.drain()
        until_shows("max(rocegw_memory_draining)", rising("rocegw_memory_session_returned_leases_total"))
        memory.end()
        fleet.end()

    def forgotten():
        """Somebody takes all jobs out of Prometheus' configuration"""
        prometheus.forget_targets()
        until_fires("RocegwGatewaysAbsent", "RocegwAgentsAbsent", "RocegwControllersAbsent")

    order = (migration, upgrade, channels, remote_memory, no_way, nobody_there, native, late_receiver, misuse, quotas, denied,
             rejected, drain, held_up, flooded, starved, stuck_stop, locked_store, killed, store_away, lost_store, forgotten)
    return [(step.__name__, step) for step in order]
