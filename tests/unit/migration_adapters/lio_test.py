#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Linux's iSCSI target in the adapter iser, on a folder that behaves like LIO's part of configfs: a new target, access list or
portal has its attributes at once, and goes with them. tests/interop/lio_paths runs it before the kernel itself."""

import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import configfs, lio  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402

IQN = "iqn.2026-11.com.example:disk"
MACHINES = ["iqn.2026-11.com.example:vm1", "iqn.2026-11.com.example:vm2"]
TCP = {"transport": "tcp", "traddr": "192.0.2.1", "adrfam": "ipv4", "trsvcid": "3260", "iqn": IQN}
RNIC = {**TCP, "transport": "rnic", "iqn": IQN + ".iser"}
TEXT = {"store": "iblock_0/disk"}
ATTRIBUTES = {"authentication": "1", "generate_node_acls": "0", "default_cmdsn_depth": "64", "t10_pi": "0"}


class Call:
    before, after = "tcp", "rnic"


class OsOfConfigfs:
    """The module os, whose folders are those of configfs."""

    def __init__(self, test):
        self.mkdir, self.rmdir, self.symlink = test.mkdir, test.rmdir, os.symlink

    def __getattr__(self, name):
        return getattr(os, name)


class Target(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rocegw-lio-")
        self.addCleanup(shutil.rmtree, self.root)
        self.enabled_with = []  # what a target had when it was enabled
        for module, name, value in ((configfs, "os", OsOfConfigfs(self)), (lio, "CONFIGFS", self.root), (configfs, "write", self.write_as_kernel)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        os.makedirs(self.path("core", "iblock_0", "disk"))
        os.makedirs(self.path("core", "iblock_0", "other"))
        os.mkdir(self.path("iscsi"))
        self.target = lio.LioTarget(Call(), TEXT)
        # What targetcli makes for a demonstration: every initiator may write.
        self.old = self.make_target(IQN, "disk")

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, text, *parts):
        with open(os.path.join(*parts), "w", encoding="ascii") as file:
            file.write(text + "\n")

    def read(self, *parts):
        with open(os.path.join(*parts), encoding="ascii") as file:
            return file.read().strip()

    def write_as_kernel(self, text, *parts):
        if parts[-1] == "enable" and text == "1":
            self.enabled_with.append((sorted(os.listdir(os.path.join(*parts[:-1], "np"))), sorted(os.listdir(os.path.join(*parts[:-1], "acls")))))
        self.write(text, *parts)

    def mkdir(self, path, mode=0o777):
        os.mkdir(path, mode)
        parent, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)
        if name == "tpgt_1":
            for folder in ("attrib", "param", "np", "acls", "lun"):
                os.mkdir(os.path.join(path, folder))
            self.write("Yes", path, "param", "ImmediateData")
            for attribute, value in ATTRIBUTES.items():
                self.write(value, path, "attrib", attribute)
            self.write("0", path, "enable")
            self.write("", path, "dynamic_sessions")
        elif parent == "np":
            self.write("0", path, "iser")
        elif parent == "acls":
            os.mkdir(os.path.join(path, "attrib"))
            self.write("No active iSCSI Session for Initiator Endpoint: " + name, path, "info")
        elif name.startswith("lun_") and os.path.basename(os.path.dirname(os.path.dirname(path))) == "acls":
            self.write("0", path, "write_protect")

    def rmdir(self, path):
        """configfs refuses to remove what has links, or folders that somebody made."""
        made = [name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)) and not os.path.islink(os.path.join(path, name))
                and name not in ("attrib", "param", "np", "acls", "lun")]
        links = [name for name in os.listdir(path) if os.path.islink(os.path.join(path, name))]
        inside = [name for folder in ("np", "acls", "lun") for name in (os.listdir(os.path.join(path, folder)) if os.path.isdir(os.path.join(path, folder)) else [])]
        if made or links or inside:
            raise OSError(39, "Directory not empty", path)
        shutil.rmtree(path)

    def make_target(self, iqn, store):
        group = self.path("iscsi", iqn, "tpgt_1")
        os.mkdir(os.path.dirname(group))
        self.mkdir(group)
        self.write("0", group, "attrib", "authentication")
        self.write("1", group, "attrib", "generate_node_acls")
        self.write("16", group, "attrib", "default_cmdsn_depth")
        os.mkdir(os.path.join(group, "lun", "lun_0"))
        os.symlink(self.path("core", "iblock_0", store), os.path.join(group, "lun", "lun_0", "a"))
        self.mkdir(os.path.join(group, "np", "192.0.2.1:3260"))
        self.write("1", group, "enable")
        return group

    def test_the_target_that_is_there(self):
        self.assertTrue(self.target.is_complete(TCP))
        self.target.expect_plain(TCP)
        self.assertFalse(self.target.is_complete(RNIC))
        self.assertEqual(self.target.sessions(RNIC), [])
        self.write("0", self.old, "enable")
        self.assertFalse(self.target.is_complete(TCP))

    def test_the_new_target_is_whole_before_it_is_enabled(self):
        for _ in range(2):
            self.target.add(RNIC, MACHINES)
        new = self.path("iscsi", RNIC["iqn"], "tpgt_1")
        self.assertEqual(self.enabled_with, [(["192.0.2.1:3260"], MACHINES)])
        self.assertTrue(self.target.is_complete(RNIC))
        self.assertEqual(self.read(new, "np", "192.0.2.1:3260", "iser"), "1")
        self.assertEqual(self.read(self.old, "np", "192.0.2.1:3260", "iser"), "0", "the old one is left alone")
        self.assertEqual([self.read(group, "param", "ImmediateData") for group in (new, self.old)], ["No", "Yes"])
        # As the old one, but for who gets in.
        self.assertEqual({name: self.read(new, "attrib", name) for name in ATTRIBUTES},
                         {"authentication": "0", "generate_node_acls": "0", "default_cmdsn_depth": "16", "t10_pi": "0"})
        mapped = os.path.join(new, "acls", MACHINES[0], "lun_0", "rocegw")
        self.assertEqual(os.path.realpath(mapped), os.path.realpath(os.path.join(new, "lun", "lun_0")))

    def test_an_adapter_that_was_killed_anywhere_goes_on(self):
        """Each change of the first call is the last one before it is killed."""
        for survives in range(1, 30):
            changes = 0
            real = {"mkdir": self.mkdir, "symlink": os.symlink}

            def counted(name):
                def change(*words, **more):
                    nonlocal changes
                    changes += 1
                    if changes > survives:
                        raise KeyboardInterrupt
                    return real[name](*words, **more)
                return change

            with self.subTest(survives=survives):
                fake = OsOfConfigfs(self)
                fake.mkdir, fake.symlink = counted("mkdir"), counted("symlink")
                finished = False
                with mock.patch.object(configfs, "os", fake):
                    try:
                        self.target.add(RNIC, MACHINES)
                        finished = True
                    except KeyboardInterrupt:
                        self.assertFalse(self.target.is_complete(RNIC))
                self.target.add(RNIC, MACHINES)
                self.assertTrue(self.target.is_complete(RNIC))
                self.target.remove_unused(RNIC)
                self.assertEqual(os.listdir(self.path("iscsi")), [IQN])
                if finished:
                    self.assertGreater(survives, 8)
                    return
        self.fail("the call never ended")

    def test_half_a_target_is_removed(self):
        os.mkdir(self.path("iscsi", RNIC["iqn"]))
        self.target.remove_unused(RNIC)
        self.assertEqual(os.listdir(self.path("iscsi")), [IQN])

    def test_a_target_with_sessions_stays(self):
        self.target.add(RNIC, MACHINES)
        new = self.path("iscsi", RNIC["iqn"], "tpgt_1")
        info = os.path.join(new, "acls", MACHINES[1], "info")
        self.write(f"InitiatorName: {MACHINES[1]}\nInitiatorAlias: ", info)
        self.write("iqn.2026-11.com.example:stranger\0", new, "dynamic_sessions")
        self.assertEqual(self.target.sessions(RNIC), [MACHINES[1], "iqn.2026-11.com.example:stranger"])
        self.target.remove_unused(RNIC)
        self.assertTrue(self.target.is_complete(RNIC))
        self.write("No active iSCSI Session", info)
        self.write("", new, "dynamic_sessions")
        self.target.remove_unused(RNIC)
        self.assertFalse(os.path.exists(os.path.dirname(new)))

    def test_what_the_other_target_would_not_have_is_refused(self):
        for change, problem in ((lambda: self.write("1", self.old, "attrib", "authentication"), "accounts"),
                                (lambda: os.mkdir(os.path.join(self.old, "lun", "lun_7")), "unit 7"),
                                (self.protect, f"read-only for {MACHINES[0]}")):
            change()
            with self.assertRaisesRegex(Problem, problem):
                self.target.expect_plain(TCP)

    def test_a_second_portal_group_is_refused_before_anything_is_removed(self):
        """A target with another group cannot be removed, so that the last step would never end."""
        second = self.path("iscsi", IQN, "tpgt_2")
        os.mkdir(second)
        for call in (self.target.expect_plain, self.target.remove_unused):
            with self.assertRaisesRegex(Problem, "portal group tpgt_2"):
                call(TCP)
        self.assertTrue(self.target.is_complete(TCP))
        shutil.rmtree(self.old)
        with self.assertRaisesRegex(Problem, "portal group tpgt_2"):
            self.target.expect_plain(TCP)

    def protect(self):
        self.mkdir(os.path.join(self.old, "acls", MACHINES[0]))
        self.mkdir(os.path.join(self.old, "acls", MACHINES[0], "lun_0"))
        self.write("1", self.old, "acls", MACHINES[0], "lun_0", "write_protect")

    def test_a_target_of_the_name_with_another_disk_is_refused(self):
        self.make_target(RNIC["iqn"], "other")
        for call in (lambda: self.target.add(RNIC, MACHINES), lambda: self.target.remove_unused(RNIC)):
            with self.assertRaisesRegex(Problem, "another backing store"):
                call()

    def test_descriptions_that_cannot_be(self):
        for store in ("disk", "iblock_0/../../x", "/dev/sda", "iblock_0/.."):
            with self.assertRaisesRegex(Problem, "no backing store"):
                lio.LioTarget(Call(), {"store": store})
        behind_gateway = Call()
        behind_gateway.after = "gateway"
        with self.assertRaisesRegex(Problem, "needs an RNIC"):
            lio.LioTarget(behind_gateway, TEXT)

    def test_ipv6(self):
        path = {**RNIC, "traddr": "2001:db8::1", "adrfam": "ipv6"}
        self.target.add(path, MACHINES[:1])
        self.assertEqual(os.listdir(self.path("iscsi", RNIC["iqn"], "tpgt_1", "np")), ["[2001:db8::1]:3260"])


if __name__ == "__main__":
    unittest.main()
