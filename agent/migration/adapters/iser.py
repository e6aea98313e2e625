#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Adapter "iser": a disk of iSCSI from TCP to iSER and back while machines read and write. A node is a host with tgt or with
Linux's target (LIO); its hosts are machines of QEMU, whose own initiator (libiscsi) knows both transports.

The new path is a target of its own with the same backing store. Each machine connects to it, without I/O, and then exchanges
the paths of its disk. The cluster is described in CLUSTER.json below /etc/rocegw/migration, or below ROCEGW_ISER_DIR
(docs/operate/migration_adapters.md)."""

import hashlib
import json
import os
import re
import sys

from rocegw_adapter.addresses import described
from rocegw_adapter.backup import Backup
from rocegw_adapter.byte_counters import roce_bytes
from rocegw_adapter.dual_path import DualPathCluster
from rocegw_adapter.lio import LioTarget
from rocegw_adapter.nvmet import tcp_bytes
from rocegw_adapter.protocol import DUAL_PATH_CALLS, Call, failed, not_yet, serve
from rocegw_adapter.qemu_disk import QemuDisk
from rocegw_adapter.tgt import TgtTarget

DESCRIPTIONS = os.environ.get("ROCEGW_ISER_DIR", "/etc/rocegw/migration")
STATE = os.environ.get("ROCEGW_ISER_STATE", "/var/lib/rocegw/migration")
KEYS = {"target", "control_port", "store", "lun", "nodes", "hosts", "metrics", "commands", "questions"}
QUESTIONS = {"bytes", "exercise", "journal"}
# "save" stores the targets, "save-machine" the disks of the machines: what both load when they start.
COMMANDS = {*DUAL_PATH_CALLS, "save", "save-machine"}
TARGETS = {"tgt": TgtTarget, "lio": LioTarget}
PORT = re.compile(r"[0-9]{1,5}")
IQN = re.compile(r"iqn\.[A-Za-z0-9.:_-]{1,219}")


class Cluster(DualPathCluster):
    """One disk, its targets and its machines."""

    adapter = "iser"

    def __init__(self, name):
        super().__init__(DESCRIPTIONS, name, KEYS, QUESTIONS, COMMANDS)
        self.check_nodes()
        if self.text.setdefault("target", "tgt") not in TARGETS:
            raise failed(f"{self.path}: the target is neither tgt nor lio")
        for node in self.text["nodes"]:
            paths = {}
            for transport, path in node.get("paths", {}).items():
                where = f"{self.path}: {node.get('name')}, {transport}"
                if not IQN.fullmatch(path.get("iqn", "")):
                    raise failed(f"{where}: there is no iqn")
                # Both become names of folders.
                if not PORT.fullmatch(str(path.get("trsvcid", "3260"))):
                    raise failed(f"{where}: trsvcid is no port")
                paths[transport] = {**described(path, where), "transport": transport, "trsvcid": str(path.get("trsvcid", "3260"))}
                if self.text["target"] == "tgt":
                    paths[transport]["tid"] = int(path["tid"])
            node["paths"] = paths
        for host in self.text["hosts"]:
            if not host.get("pinned") and not IQN.fullmatch(str(host.get("initiator", ""))):
                raise failed(f"{self.path}: {host.get('name')}: initiator is no iqn")

    def step(self, request):
        return Step(self, request)


class Step(Call):
    """One call for one target. Each call is a method of its name."""

    def __init__(self, cluster, request):
        super().__init__(cluster, request)
        self.backup_files = Backup(os.path.join(STATE, cluster.name, self.node), f"{self.before} {self.after}")
        self.old, self.new = self._path(self.before), self._path(self.after)
        if self.old["iqn"] == self.new["iqn"] or (cluster.text["target"] == "tgt" and self.old["tid"] == self.new["tid"]):
            raise failed("both paths need a target of their own, with another iqn and, of tgt, another tid")
        self.target = TARGETS[cluster.text["target"]](self, cluster.text)
        self.disks = [QemuDisk(host, self.target.lun) for host in cluster.text["hosts"] if not host.get("pinned")]

    def _path(self, transport):
        path = self.description["paths"].get(transport)
        if path is None:
            raise failed(f"{self.node} has no path for {transport} in the description")
        return path

    def config_hash(self):
        """Over the path that each machine uses, and its target. The target of the other path may outlive its use."""
        used = []
        for disk in self.disks:
            path = self.new if disk.leads_to(self.new) else self.old
            used.append([disk.name, path["iqn"], self.target.is_complete(path)])
        return "sha256:" + hashlib.sha256(json.dumps(used).encode()).hexdigest()

    def _expect_used(self, path):
        for disk in self.disks:
            if not disk.leads_to(path):
                raise failed(f"{disk.name} does not use the path over {path['transport']}")

    # Calls ------------------------------------------------------------------------------------------------------------

    def health(self):
        if not (self.target.is_complete(self.old) or self.target.is_complete(self.new)):
            raise failed("the target of neither path is ready")
        for path in (self.old, self.new):
            self.target.expect_plain(path)
        self._expect_save_machine()
        for disk in self.disks:
            if not (disk.leads_to(self.old) or disk.leads_to(self.new)):
                raise failed(f"{disk.name} uses neither path")
            disk.expect_exchangeable(self.old, self.new)
            if self.new["transport"] != "tcp":
                disk.expect_zeroed_memory()
        return {}

    def _expect_save_machine(self):
        """A machine whose command line or XML names the deleted target does not start again. Only the site can change that."""
        if not self.cluster.text.get("commands", {}).get("save-machine"):
            raise failed(f"{self.cluster.path}: there is no command save-machine, which makes machines start with the new path")

    def ok_to_stop(self):
        """Nothing stops: each machine keeps the path that it has."""
        return self.health()

    def backup(self):
        if self.backup_files.begin():
            self._expect_used(self.old)
            self.target.find(self.new)  # fails where another target has the number
            self.own_command("save")  # as restore will: a command that fails is found here
            self.backup_files.complete(self.config_hash())
        return {"config_hash": self.backup_files.config_hash()}

    def add_path(self):
        self.backup_files.mark_changed()
        self.target.add(self.new, [disk.host["initiator"] for disk in self.disks])
        for disk in self.disks:
            disk.connect(self.new)
        return {}

    def verify_path(self):
        for disk in self.disks:
            if not disk.is_connected(self.new):
                raise failed(f"{disk.name} is not connected over {self.after}")
        if not {disk.host["initiator"] for disk in self.disks} <= set(self.target.sessions(self.new)):
            raise not_yet("the target does not see all sessions")
        return {}

    def switch(self):
        for disk in self.disks:
            if not disk.leads_to(self.new):
                disk.use(self.new)
        self.own_command("save")
        return {"config_hash": self.config_hash()}

    def drain(self):
        """QEMU drains a path before it leaves it: what may be outstanding is at machines that use the old one still."""
        return {"outstanding": sum(disk.leads_to(self.old) for disk in self.disks)}

    def verify(self):
        used = {disk.leads_to(self.new) for disk in self.disks}
        if len(used) != 1:
            raise failed("machines use different paths")
        on_new = used.pop()
        if not on_new:
            self._expect_used(self.old)
        return {"config_hash": self.config_hash(), "stated": self.after if on_new else self.before,
                **self.counted(self.read_bytes), **self.journal()}

    verify_old = verify

    def switch_back(self):
        for disk in self.disks:
            if not disk.leads_to(self.old):
                disk.connect(self.old)
                disk.use(self.old)
        self.own_command("save")
        return {}

    def drain_new(self):
        return {"outstanding": sum(disk.leads_to(self.new) for disk in self.disks)}

    def _leave(self, path):
        """Returns the number of sessions of machines that nobody named. Those of machines that left may stay until the machine
        ends, since libiscsi 1.19 does not end a connection of iSER before; the target stays as long."""
        for disk in self.disks:
            disk.disconnect(path)
        named = {disk.host["initiator"] for disk in self.disks}
        self.target.remove_unused(path)
        return sum(name not in named for name in self.target.sessions(path))

    def remove_new(self):
        foreign = self._leave(self.new)
        if foreign:
            raise not_yet(f"{foreign} other machines use the path over {self.after}")
        return {}

    def restore(self):
        self.backup_files.config_hash()
        self.own_command("save")
        self.backup_files.forget_change()
        return {"config_hash": self.config_hash()}

    def remove_old(self):
        self._expect_used(self.new)
        self._expect_save_machine()
        self.own_command("save-machine")
        foreign = self._leave(self.old)
        if foreign == 0:
            self.own_command("save")
            self.backup_files.remove()
        return {"clients_on_old": foreign}

    # The second witness -----------------------------------------------------------------------------------------------

    def read_bytes(self):
        if self.question("bytes"):
            return self.site_bytes()
        tcp = self.old if self.before == "tcp" else self.new
        return roce_bytes(self), tcp_bytes(self, {**tcp, "trtype": "tcp"}) if tcp["transport"] == "tcp" else 0


if __name__ == "__main__":
    sys.exit(serve("iser", DUAL_PATH_CALLS, Cluster))
