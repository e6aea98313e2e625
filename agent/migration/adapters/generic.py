#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Adapter "generic": any storage system that configuration files, systemd units and commands of the site describe.

Reads one request line, writes one answer line (docs/operate/migration_adapters.md). The cluster is described in
CLUSTER.json below /etc/rocegw/migration, or below ROCEGW_GENERIC_DIR; the file is the same on all hosts. Backups lie
below /var/lib/rocegw/migration, or below ROCEGW_GENERIC_STATE."""

import os
import sys

from rocegw_adapter.backup import Backup, place
from rocegw_adapter.config_files import ConfigFiles
from rocegw_adapter.preload_reach import LIBRARY, expect_reach
from rocegw_adapter.protocol import DUAL_PATH_CALLS, RESTART_CALLS, Call, Description, failed, serve

DESCRIPTIONS = os.environ.get("ROCEGW_GENERIC_DIR", "/etc/rocegw/migration")
STATE = os.environ.get("ROCEGW_GENERIC_STATE", "/var/lib/rocegw/migration")
PROC = "/proc"
GROUPS = "/sys/fs/cgroup"
CALLS = tuple(dict.fromkeys(DUAL_PATH_CALLS + RESTART_CALLS))
KEYS = {"class", "nodes", "clients", "files", "units", "limits", "preload", "commands", "questions"}
LIMITS = {"nofile": "LimitNOFILE", "memlock": "LimitMEMLOCK"}
QUESTIONS = {"transport", "bytes", "exercise", "journal", "outstanding", "clients-on-old"}


class Cluster(Description):
    """A cluster of the site."""

    def __init__(self, name):
        super().__init__(DESCRIPTIONS, name, KEYS, QUESTIONS, CALLS)
        if self.text.get("preload", False) not in (True, False, "verify"):
            raise failed(f"{self.path}: not understood: preload {self.text['preload']}")

    def inventory(self):
        return {"cluster": self.name, "adapter": "generic", "class": self.text["class"], "nodes": self.text["nodes"],
                "clients": self.text.get("clients", [])}

    def carry_out(self, request):
        return Step(self, request).carry_out()


class Step(Call):
    """One call for one node."""

    def __init__(self, cluster, request):
        super().__init__(cluster, request)
        self.backup = Backup(os.path.join(STATE, cluster.name, self.node), f"{self.before} {self.after}")
        self.config = ConfigFiles([file["path"] for file in self.files()], self.backup)

    def files(self):
        """Configuration files of the node; "{node}" in a path stands for its name."""
        return [{key: value.replace("{node}", self.node) for key, value in file.items()} for file in self.cluster.text.get("files", [])]

    # Units and configuration files ------------------------------------------------------------------------------------

    def units(self, transport):
        return self.cluster.text.get("units", {}).get(transport, [])

    def systemctl(self, verb, transport):
        if self.units(transport):
            self.must(["systemctl", verb, *self.units(transport)], f"systemctl {verb}")

    def write_config(self, transport):
        for file in self.files():
            if transport not in file:
                raise failed(f"{file['path']} has no content for {transport}")
        self.backup.mark_changed()
        for file in self.files():
            place(file[transport], file["path"])

    # What units need before they are changed, and have afterwards ------------------------------------------------------

    def property_of(self, unit, name):
        return self.must(["systemctl", "show", "--value", "-p", name, unit], "systemctl show").strip()

    def check_limits(self):
        """Units of both transports may have the descriptors and the locked memory that the site wants for them."""
        for unit in dict.fromkeys([*self.units(self.before), *self.units(self.after)]):
            for name, wanted in self.cluster.text.get("limits", {}).items():
                if name not in LIMITS:
                    raise failed(f"{self.cluster.path}: not understood: limit {name}")
                limit = self.property_of(unit, LIMITS[name])
                if limit != "infinity" and (wanted == "infinity" or int(limit) < int(wanted)):
                    raise failed(f"{unit} has {LIMITS[name]}={limit}, less than {wanted}")

    def check_reach(self):
        """The client library will reach each unit, as far as that can be known before the change."""
        if self.cluster.text.get("preload") is True and self.after == "gateway":
            expect_reach(self, self.units(self.after), {file["path"]: file.get(self.after) for file in self.files()}, PROC)

    def check_preload(self):
        """The main process of each unit has the client library, whatever the unit's file says; of a container some process."""
        if not self.cluster.text.get("preload") or self.after != "gateway":
            return
        for unit in self.units(self.after):
            pid = self.property_of(unit, "MainPID")
            if not pid.isdigit() or pid == "0":
                raise failed(f"{unit} has no main process")
            with open(os.path.join(PROC, pid, "comm"), encoding="utf-8", errors="replace") as name:
                pids = self.pids_of(unit) if name.read().strip() in ("conmon", "podman") else [pid]
            if not any(LIBRARY in self.maps_of(pid) for pid in pids):
                raise failed(f"{unit} runs without {LIBRARY}: the preload environment does not reach it")

    def pids_of(self, unit):
        """Processes of a unit and of the groups below it, such as those of a container."""
        pids = []
        for folder, _, names in os.walk(os.path.join(GROUPS, self.property_of(unit, "ControlGroup").lstrip("/"))):
            if "cgroup.procs" in names:
                with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                    pids += file.read().split()
        return pids

    @staticmethod
    def maps_of(pid):
        try:
            with open(os.path.join(PROC, pid, "maps"), encoding="utf-8", errors="replace") as maps:
                return maps.read()
        except FileNotFoundError:  # it has ended
            return ""

    # Evidence ---------------------------------------------------------------------------------------------------------

    def outstanding(self):
        count = self.ask("outstanding")
        return {} if count is None else {"outstanding": int(count)}

    def verify(self):
        facts = {"config_hash": self.config.hash(), **self.counted(self.site_bytes)}
        stated = self.ask("transport")
        if stated is not None:
            facts["stated"] = stated
        return {**facts, **self.journal()}

    # Calls ------------------------------------------------------------------------------------------------------------

    def carry_out(self):
        own = self.own_command()
        if self.name == "health":
            self.config.expect_restorable()
            self.check_limits()
            self.check_reach()
        if self.name == "verify":
            self.check_preload()
        if self.name == "backup":
            return {"config_hash": self.config.save()}
        if self.name == "switch":
            self.write_config(self.after)
            self.reload_units()
            return {"config_hash": self.config.hash()}
        if self.name in ("switch-back", "restore"):
            # A program that reads its configuration anew prefers the old path from here on, so that the new one drains.
            restored = self.config.restore()
            self.reload_units()
            return {"config_hash": restored}
        if self.name in ("drain", "drain-new"):
            return self.outstanding()
        if self.name in ("verify", "verify-old"):
            return self.verify()
        if self.name == "uncordon":
            return {"config_hash": self.config.hash()}
        if self.name == "remove-old":
            return self.remove_old()
        if not own:
            self.use_units()
        return {}

    def use_units(self):
        """What systemd does for calls that the site has no command for."""
        back = self.config.hash() == self.backup.read("complete")
        if self.name == "stop":
            self.systemctl("stop", self.before)
            self.systemctl("stop", self.after)
        elif self.name == "start":
            self.systemctl("start", self.before if back else self.after)
        elif self.name == "add-path":
            self.systemctl("start", self.after)
        elif self.name == "remove-new":
            self.systemctl("stop", self.after)

    def reload_units(self):
        """Drop-in files of units are configuration files too."""
        if self.cluster.text.get("units"):
            self.must(["systemctl", "daemon-reload"], "systemctl daemon-reload")

    def remove_old(self):
        clients = self.ask("clients-on-old")
        if clients is None:
            return {}
        if int(clients) == 0:
            if not self.cluster.text.get("commands", {}).get(self.name) and self.units(self.before) != self.units(self.after):
                self.systemctl("stop", self.before)
            self.backup.remove()
        return {"clients_on_old": int(clients)}


if __name__ == "__main__":
    sys.exit(serve("generic", CALLS, Cluster))
