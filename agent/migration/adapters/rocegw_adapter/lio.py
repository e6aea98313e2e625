# SPDX-License-Identifier: Apache-2.0
"""Linux's iSCSI target (LIO), as configfs shows it. The path over iSER is a target of its own with the same backing store; its
portal has the kernel's flag "iser". What targetcli saved for the next start is the site's to save again ("save")."""

import os
import re

from . import configfs
from .addresses import bracketed
from .configfs import children, make, read
from .protocol import failed

CONFIGFS = os.environ.get("ROCEGW_LIO", "/sys/kernel/config/target")
GROUP = "tpgt_1"
LINK = "rocegw"  # name of the links that this adapter makes; the kernel does not care
# Attributes of a target about who gets in, which the adapter's own target answers by access lists.
OF_ACCESS = {"authentication", "generate_node_acls", "cache_dynamic_acls", "demo_mode_write_protect", "demo_mode_discovery",
             "prod_mode_write_protect"}


class LioTarget:
    """One disk by its paths. A path: transport, traddr, adrfam, trsvcid, iqn."""

    def __init__(self, call, text):
        if "gateway" in (call.before, call.after):
            raise failed("the kernel's target needs an RNIC: programs use gateways, the kernel does not")
        if not re.fullmatch(r"[a-z]+_[0-9]+/[A-Za-z0-9_-][A-Za-z0-9._-]*", text["store"]):
            raise failed("store is no backing store of the kernel, such as iblock_0/disk")
        self.store = os.path.join(CONFIGFS, "core", text["store"])
        self.lun = int(text.get("lun", 0))
        self.unit = f"lun_{self.lun}"

    @staticmethod
    def _group(path):
        return os.path.join(CONFIGFS, "iscsi", path["iqn"], GROUP)

    @staticmethod
    def _portal(path):
        return f"{bracketed(path)}:{path['trsvcid']}"

    def _stores(self, group):
        """What the unit of a target leads to: one backing store, or nothing yet."""
        return configfs.links(os.path.join(group, "lun", self.unit))

    def _has_store(self, group):
        return self._stores(group) == [os.path.realpath(self.store)]

    def find(self, path):
        """Folder of the target's portal group, or None. A target of this name with another backing store fails the step."""
        group = self._group(path)
        if not os.path.isdir(group):
            return None
        if self._stores(group) not in ([], [os.path.realpath(self.store)]):
            raise failed(f"{path['iqn']} has another backing store")
        return group

    def is_complete(self, path):
        group = self.find(path)
        if group is None or not self._has_store(group) or read(group, "enable") != "1":
            return False
        portal = os.path.join(group, "np", self._portal(path))
        return os.path.isdir(portal) and (path["transport"] == "tcp" or read(portal, "iser") == "1")

    def expect_plain(self, path):
        """Fails where the target of a path has more than the target of the other path would get: one unit, which the named
        machines write without a password, in one portal group."""
        group = self.find(path)
        groups = [name for name in children(CONFIGFS, "iscsi", path["iqn"]) if name.startswith("tpgt_") and name != GROUP]
        if groups:
            raise failed(f"{path['iqn']} has what the other target would not have: portal group {', '.join(groups)}")
        if group is None:
            return
        problems = [f"unit {unit[4:]}" for unit in children(group, "lun") if unit != self.unit]
        if read(group, "attrib", "authentication") == "1":
            problems.append("accounts")
        for name in children(group, "acls"):
            for unit in children(group, "acls", name):
                if unit.startswith("lun_") and read(group, "acls", name, unit, "write_protect") == "1":
                    problems.append(f"read-only for {name}")
        if problems:
            raise failed(f"{path['iqn']} has what the other target would not have: {', '.join(problems)}")

    def _copy_attributes(self, group):
        """The new target answers as the one does that has the disk now."""
        targets = os.path.join(CONFIGFS, "iscsi")
        for name in children(targets):
            other = os.path.join(targets, name, GROUP)
            if other == group or not self._has_store(other):
                continue
            for attribute in children(other, "attrib"):
                value = read(other, "attrib", attribute)
                if attribute not in OF_ACCESS and read(group, "attrib", attribute) != value:
                    configfs.write(value, group, "attrib", attribute)
            return

    def add(self, path, initiators):
        """Machines see the target only when it is whole: it is enabled last."""
        make(CONFIGFS, "iscsi", path["iqn"])
        group = make(self._group(path))
        self.find(path)
        self._copy_attributes(group)
        # The named machines alone get in, without a password, as the target that they use now lets them.
        configfs.write("0", group, "attrib", "authentication")
        configfs.write("0", group, "attrib", "generate_node_acls")
        configfs.link(self.store, make(group, "lun", self.unit), LINK)
        for name in initiators:
            make(group, "acls", name)
            configfs.link(os.path.join(group, "lun", self.unit), make(group, "acls", name, self.unit), LINK)
        # libiscsi announces immediate data over iSER and does not send them, for which the kernel ends the connection.
        if path["transport"] != "tcp" and read(group, "param", "ImmediateData") != "No":
            configfs.write("No", group, "param", "ImmediateData")
        portal = make(group, "np", self._portal(path))
        if path["transport"] != "tcp" and read(portal, "iser") != "1":
            configfs.write("1", portal, "iser")
        if read(group, "enable") != "1":
            configfs.write("1", group, "enable")
        if not self.is_complete(path):
            raise failed(f"{path['iqn']} is not complete")

    def sessions(self, path):
        """Names of the initiators that have a session."""
        group = self.find(path)
        if group is None:
            return []
        named = [name for name in children(group, "acls") if not read(group, "acls", name, "info").startswith("No active")]
        dynamic = read(group, "dynamic_sessions").split("\n") if os.path.exists(os.path.join(group, "dynamic_sessions")) else []
        return named + [name.strip("\0 ") for name in dynamic if name.strip("\0 ")]

    def remove_unused(self, path):
        """Removes the target unless it has sessions: the kernel would end them."""
        group = self.find(path)
        if group is None:
            self.expect_plain(path)
            configfs.remove(CONFIGFS, "iscsi", path["iqn"])
            return
        if self.sessions(path):
            return
        self.expect_plain(path)
        configfs.write("0", group, "enable")
        for portal in children(group, "np"):
            configfs.remove(group, "np", portal)
        for name in children(group, "acls"):
            for unit in [unit for unit in children(group, "acls", name) if unit.startswith("lun_")]:
                configfs.unlink_all(os.path.join(group, "acls", name, unit))
                configfs.remove(group, "acls", name, unit)
            configfs.remove(group, "acls", name)
        configfs.unlink_all(os.path.join(group, "lun", self.unit))
        configfs.remove(group, "lun", self.unit)
        configfs.remove(group)
        configfs.remove(os.path.dirname(group))
