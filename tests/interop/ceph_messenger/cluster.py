# SPDX-License-Identifier: Apache-2.0
"""A Ceph cluster on three hosts of the laboratory: a monitor and two object stores (bluestore in files) on each, a manager on
the first. Each host is a network namespace with a gateway on the cluster network and a plain interface on the public one."""

import json
import os
import sys
import uuid

from netlab.fleet import eventually
from netlab.gateway_host import GatewayHost
from netlab.job import LabError, run

HERE = os.path.dirname(os.path.abspath(__file__))
DAEMONS = os.path.join(HERE, "daemons.py")
HOSTS = 3
OSDS_OF_HOST = 2
BLOCK_BYTES = 4 << 30


class CephCluster:
    def __init__(self, lab, binaries, mode="udp"):
        self.lab = lab
        self.fsid = str(uuid.uuid4())
        self.lab_file = lab.path("lab.json")
        switch = lab.namespace("switch")
        self.hosts = []
        for number in range(1, HOSTS + 1):
            namespace = lab.namespace(f"h{number}")
            for link in ("cluster", "public"):
                lab.veth(switch, f"{link}{number}", namespace, link, 4200)
            lab.address(namespace, "cluster", f"10.77.0.{number}/24", f"fd77::{number}/64")
            lab.address(namespace, "public", f"10.78.0.{number}/24")
            self.hosts.append(GatewayHost(lab, f"h{number}", namespace, "cluster", (f"10.77.0.{number}", f"fd77::{number}"), binaries, mode))
        for link in ("cluster", "public"):
            lab.bridge(switch, link, [f"{link}{number}" for number in range(1, HOSTS + 1)], 4200)
        self._describe()

    # Files ------------------------------------------------------------------------------------------------------------

    def conf(self, host):
        return os.path.join(host.directory, "ceph.conf")

    def daemons_of(self, index):
        osds = [f"osd.{index * OSDS_OF_HOST + number}" for number in range(OSDS_OF_HOST)]
        return [f"mon.h{index + 1}", *(["mgr.x"] if index == 0 else []), *osds]

    def osds(self):
        return HOSTS * OSDS_OF_HOST

    def _describe(self):
        hosts = {}
        mons = ",".join(f"[v2:10.78.0.{number}:3300,v1:10.78.0.{number}:6789]" for number in range(1, HOSTS + 1))
        for index, host in enumerate(self.hosts):
            launcher = ["env", f"ROCEGW_SOCKET={host.attach_socket}", *host.launcher]
            hosts[host.name] = {"namespace": host.namespace, "folder": host.directory, "launcher": launcher,
                                "daemons": self.daemons_of(index)}
            with open(self.conf(host), "w", encoding="utf-8") as file:
                file.write(f"[global]\nfsid = {self.fsid}\nmon_host = {mons}\n"
                           f"mon_initial_members = {', '.join(name.name for name in self.hosts)}\n"
                           "auth_cluster_required = none\nauth_service_required = none\nauth_client_required = none\n"
                           "public_network = 10.78.0.0/24\ncluster_network = 10.77.0.0/24\n"
                           f"run_dir = {host.directory}\nadmin_socket = {host.directory}/$name.asok\n"
                           f"log_file = {host.directory}/$name.log\nmon_cluster_log_file = {host.directory}/cluster.log\n"
                           f"pid_file = {host.directory}/$name.pid\ncrash_dir = {host.directory}\n"
                           "osd_pool_default_size = 3\nosd_pool_default_min_size = 2\nosd_crush_chooseleaf_type = 1\n"
                           "osd_pool_default_pg_autoscale_mode = off\nmon_allow_pool_delete = true\n"
                           "osd_heartbeat_grace = 60\nmon_osd_report_timeout = 900\n"
                           "ms_async_op_threads = 2\nosd_op_num_shards = 2\nosd_op_num_threads_per_shard = 1\n"
                           f"[mon]\nmon_data = {host.directory}/$name\n"
                           f"[mgr]\nmgr_data = {host.directory}/$name\nmgr_initial_modules =\n"
                           f"[osd]\ncrush_location = root=default host={host.name}\nosd_data = {host.directory}/$name\nosd_objectstore = bluestore\n"
                           f"bluestore_block_size = {BLOCK_BYTES}\nosd_memory_target = 939524096\nbluestore_fsck_quick_fix_on_mount = false\n")
        with open(self.lab_file, "w", encoding="utf-8") as file:
            json.dump({"hosts": hosts}, file)

    # The cluster ------------------------------------------------------------------------------------------------------

    def daemons(self, verb, host, kind=None):
        run([sys.executable, "-B", DAEMONS, self.lab_file, verb, host.name, *([kind] if kind else [])], timeout=90)

    def ceph(self, *words, host=None, timeout=30, check=True):
        host = host or self.hosts[0]
        return run(["ceph", "-c", self.conf(host), "--connect-timeout", str(timeout - 5), *words], namespace=host.namespace, timeout=timeout,
                   check=check)

    def ceph_json(self, *words):
        """The answer of a tool, without the warnings that it writes beside it."""
        script = 'conf=$1; shift; exec ceph -c "$conf" --connect-timeout 25 "$@" -f json 2>/dev/null'
        return json.loads(run(["sh", "-c", script, "sh", self.conf(self.hosts[0]), *words], namespace=self.hosts[0].namespace, timeout=30))

    def create(self):
        self.lab.on_close(self.stop)
        monmap = self.lab.path("monmap")
        run(["monmaptool", "--create", "--fsid", self.fsid, *(word for number in range(1, HOSTS + 1) for word in (
            "--addv", f"h{number}", f"[v2:10.78.0.{number}:3300,v1:10.78.0.{number}:6789]")), monmap])
        for host in self.hosts:
            run(["ceph-mon", "-c", self.conf(host), "--mkfs", "-i", host.name, "--monmap", monmap], namespace=host.namespace)
            self.daemons("start", host, "mon")
        self.ceph("mon", "enable-msgr2", timeout=60)
        self.ceph("osd", "set", "noin")
        for index, host in enumerate(self.hosts):
            for daemon in self.daemons_of(index):
                kind, _, number = daemon.partition(".")
                if kind == "mgr":
                    os.mkdir(os.path.join(host.directory, daemon))
                    self.daemons("start", host, "mgr")
                if kind == "osd":
                    identity = str(uuid.uuid4())
                    os.mkdir(os.path.join(host.directory, daemon))
                    created = self.ceph("osd", "new", identity).strip().splitlines()[-1]
                    if created != number:
                        raise LabError(f"osd.{number} was created as {created}")
                    run(["ceph-osd", "-c", self.conf(host), "-i", number, "--mkfs", "--osd-uuid", identity], namespace=host.namespace)
                    self.ceph("osd", "crush", "add", daemon, "1", f"host={host.name}", "root=default")
        self.ceph("osd", "unset", "noin")
        for host in self.hosts:
            self.daemons("start", host, "osd")
        eventually("all object stores are up", lambda: self.up() == self.osds(), 90)
        self.ceph("osd", "in", *map(str, range(self.osds())))
        # The balancer of the manager would move placement groups at any moment, and the adapter refuses while one moves.
        self.ceph("balancer", "off", timeout=60)
        self.ceph("osd", "pool", "create", "canary", "16", "16", "replicated", timeout=60)
        self.ceph("osd", "pool", "application", "enable", "canary", "rados")
        self.await_clean()

    def stop(self):
        for host in self.hosts:
            try:
                self.daemons("kill", host)
            except LabError:
                pass

    def up(self):
        return sum(osd["up"] for osd in self.ceph_json("osd", "dump")["osds"])

    def clean(self):
        states = self.ceph_json("pg", "stat")["pg_summary"]["num_pg_by_state"]
        return bool(states) and all(state["name"] == "active+clean" for state in states)

    def await_clean(self, timeout=120):
        eventually("all placement groups are active+clean", self.clean, timeout)
