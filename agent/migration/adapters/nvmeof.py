#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Adapter "nvmeof": NVMe over Fabrics with ANA, from TCP to RDMA and back. A node is a target, Linux's or SPDK's; its paths
are the ports or listeners of one subsystem; its hosts use native multipath.

The new path is inaccessible, and thus without I/O, until every host has it. Then it becomes optimized and the old one
non-optimized: hosts prefer the new one and keep the old one in reserve. The cluster is described in CLUSTER.json below
/etc/rocegw/migration, or below ROCEGW_NVMEOF_DIR (docs/operate/migration_adapters.md)."""

import hashlib
import json
import os
import re
import sys

from rocegw_adapter.addresses import described, text_of
from rocegw_adapter.backup import Backup
from rocegw_adapter.byte_counters import roce_bytes
from rocegw_adapter.dual_path import DualPathCluster
from rocegw_adapter.nvme_host import NvmeHost
from rocegw_adapter.nvmet import NvmetTarget, tcp_bytes
from rocegw_adapter.protocol import DUAL_PATH_CALLS, Call, failed, inconclusive, serve
from rocegw_adapter.spdk import SpdkTarget

DESCRIPTIONS = os.environ.get("ROCEGW_NVMEOF_DIR", "/etc/rocegw/migration")
STATE = os.environ.get("ROCEGW_NVMEOF_STATE", "/var/lib/rocegw/migration")
KEYS = {"subsystem", "target", "rpc_socket", "metrics", "nodes", "hosts", "commands", "questions"}
QUESTIONS = {"bytes", "exercise", "journal"}
# A command "save" writes what the target loads when it starts: nvmetcli save, rpc.py save_config.
COMMANDS = {*DUAL_PATH_CALLS, "save"}
RESTORABLE = ("optimized", "non-optimized", "inaccessible")


class Cluster(DualPathCluster):
    """One subsystem, its targets and its hosts."""

    adapter = "nvmeof"

    def __init__(self, name):
        super().__init__(DESCRIPTIONS, name, KEYS, QUESTIONS, COMMANDS)
        self.check_nodes()
        for node in self.text["nodes"]:
            node["paths"] = {transport: described(path, f"{self.path}: {node.get('name')}, {transport}")
                             for transport, path in node.get("paths", {}).items()}
        if not re.fullmatch(r"nqn\.[A-Za-z0-9.:_-]{1,219}", self.text.get("subsystem", "")):
            raise failed(f"{self.path}: the subsystem has no NQN")

    def step(self, request):
        return Step(self, request)


class Step(Call):
    """One call for one target. Each call is a method of its name."""

    def __init__(self, cluster, request):
        super().__init__(cluster, request)
        text = cluster.text
        self.backup_files = Backup(os.path.join(STATE, cluster.name, self.node), f"{self.before} {self.after}")
        self.old, self.new = self._address(self.before), self._address(self.after)
        if self.old == self.new:
            raise failed("the old and the new path have the same address")
        if text.get("target") == "spdk":
            self.target = SpdkTarget(self, text["subsystem"], text.get("rpc_socket", "/var/tmp/spdk.sock"))
        elif text.get("target") == "linux":
            self.target = NvmetTarget(self, self.backup_files, text["subsystem"])
        else:
            raise failed(f"{cluster.path}: the target is neither linux nor spdk")
        self.hosts = [NvmeHost(self, text["subsystem"], host) for host in text["hosts"] if not host.get("pinned")]

    def _address(self, transport):
        path = self.description.get("paths", {}).get(transport)
        if path is None:
            raise failed(f"{self.node} has no path for {transport} in the description")
        return {"trtype": "tcp" if transport == "tcp" else "rdma", "adrfam": path["adrfam"], "traddr": path["traddr"],
                "trsvcid": str(path.get("trsvcid", "4420"))}

    # What the target looks like ---------------------------------------------------------------------------------------

    def config_hash(self):
        """Over the states of both paths: all that this adapter changes at a target."""
        paths = [[*sorted(address.items()), self.target.ana(address)] for address in (self.old, self.new)]
        return "sha256:" + hashlib.sha256(json.dumps(paths).encode()).hexdigest()

    def save(self):
        self.own_command("save")

    # Calls ------------------------------------------------------------------------------------------------------------

    def health(self):
        self.target.check_healthy()
        if self.target.ana(self.old) is None and self.target.ana(self.new) is None:
            raise failed("hosts reach the target by neither path")
        for host in self.hosts:
            states = [path.state for path in host.paths() if path.leads_to(self.old) or path.leads_to(self.new)]
            if not states or set(states) != {"live"}:
                raise failed(f"{host.name}: paths to this target: {', '.join(states) or 'none'}")
        if self.backup_files.read("switched") != self.backup_files.change:
            self._restorable()
        return {}

    def _restorable(self):
        """State of the old path, which restore writes again."""
        old = self.target.ana(self.old)
        if old not in RESTORABLE:
            raise failed(f"the old path {text_of(self.old)} is {old or 'not there'}: no ANA state that restore could write")
        return old

    def ok_to_stop(self):
        """Nothing stops: each host keeps the path that it has."""
        return self.health()

    def backup(self):
        if self.backup_files.begin():
            old = self._restorable()
            self.save()  # as restore will: a command that fails is found here
            self.backup_files.write("old", old)
            self.backup_files.write("new", str(self.target.ana(self.new)))
            self.backup_files.complete(self.config_hash())
        return {"config_hash": self.backup_files.config_hash()}

    def add_path(self):
        self.backup_files.config_hash()
        state = self.target.ana(self.new)
        if self.backup_files.read("new") != "None":
            raise failed(f"the target had a path {text_of(self.new)} before this migration")
        self.backup_files.mark_changed()
        if state is None:
            self.target.add(self.new)
        for host in self.hosts:
            host.connect(self.new)
        return {}

    def verify_path(self):
        for host in self.hosts:
            host.expect((self.new, "inaccessible"))
        return {}

    def switch(self):
        """The preferred path first: hosts have a usable path at each moment."""
        self.target.set_ana(self.new, "optimized")
        self.target.set_ana(self.old, "non-optimized")
        self.save()
        for host in self.hosts:
            host.expect((self.new, "optimized"), (self.old, "non-optimized"))
        return {"config_hash": self.config_hash()}

    def drain(self):
        return {"outstanding": sum(host.inflight(self.old) for host in self.hosts)}

    def verify(self):
        stated = set()
        for host in self.hosts:
            preferred = [path for path in host.paths() if path.state == "live" and path.ana_state == "optimized"
                         and (path.leads_to(self.old) or path.leads_to(self.new))]
            if len(preferred) > 1:
                raise failed(f"{host.name}: both paths are optimized")
            if not preferred:
                raise inconclusive(f"{host.name}: no path is optimized")
            stated.add(self.after if preferred[0].leads_to(self.new) else self.before)
        if len(stated) > 1:
            raise failed("hosts prefer different paths")
        named = {"stated": stated.pop()} if stated else {}
        return {"config_hash": self.config_hash(), **named, **self.counted(self.read_bytes), **self.journal()}

    verify_old = verify

    def switch_back(self):
        """The way back must not need the new path: that it is dead may be the reason to go back."""
        self.target.set_ana(self.old, "optimized")
        if self.target.ana(self.new) is not None:
            self.target.set_ana(self.new, "inaccessible")
        self.save()
        for host in self.hosts:
            host.expect((self.old, "optimized"))
            host.expect_unused(self.new)
        return {}

    def drain_new(self):
        return {"outstanding": sum(host.inflight(self.new) for host in self.hosts)}

    def remove_new(self):
        for host in self.hosts:
            host.disconnect(self.new)
        self.target.remove(self.new)
        return {}

    def restore(self):
        self.backup_files.config_hash()
        self.target.set_ana(self.old, self.backup_files.read("old"))
        self.save()
        self.backup_files.forget_change()
        return {"config_hash": self.config_hash()}

    def remove_old(self):
        """Hosts leave the old path; whoever uses it still is counted at the target, which knows hosts that nobody named."""
        if self.target.ana(self.old) is None:
            self._forget_old()
            return {"clients_on_old": 0}
        for host in self.hosts:
            host.expect((self.new, "optimized"))
            host.disconnect(self.old)
        clients = self.target.connected(self.old)
        if clients == 0:
            self._forget_old()
        return {"clients_on_old": clients}

    def _forget_old(self):
        """All of it again when it comes twice: an adapter may be killed between any two of these."""
        self.target.remove(self.old)
        self.save()
        self.backup_files.remove()

    # The second witness -----------------------------------------------------------------------------------------------

    def read_bytes(self):
        """Bytes over RoCE and over TCP at this node, as the NIC or the gateway and the kernel count them."""
        if self.question("bytes"):
            return self.site_bytes()
        tcp = self.old if self.old["trtype"] == "tcp" else self.new
        return roce_bytes(self), tcp_bytes(self, tcp) if tcp["trtype"] == "tcp" else 0


if __name__ == "__main__":
    sys.exit(serve("nvmeof", DUAL_PATH_CALLS, Cluster))
