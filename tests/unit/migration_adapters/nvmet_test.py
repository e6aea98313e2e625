#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Linux's target in the adapter nvmeof, on a folder that behaves like nvmet's part of configfs: a new port or ANA group has its
attributes at once. The real one is judged by tests/interop/nvme_paths."""

import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import configfs, nvmet  # noqa: E402
from rocegw_adapter.backup import Backup  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402

NQN = "nqn.2026-11.com.example:disks"
TCP = {"trtype": "tcp", "adrfam": "ipv4", "traddr": "10.0.0.1", "trsvcid": "4420"}
RDMA = {**TCP, "trtype": "rdma"}


class Call:
    before, after = "tcp", "rnic"


class OsOfConfigfs:
    """The module os, whose folders are those of configfs: they are removed with their attributes."""

    def __init__(self, test):
        self.mkdir, self.symlink, self.rmdir = test.mkdir, test.symlink, shutil.rmtree

    def __getattr__(self, name):
        return getattr(os, name)


class Target(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rocegw-nvmet-")
        self.addCleanup(shutil.rmtree, self.root)
        self.linked_as = []  # ANA states of a port when hosts could first see it
        for module, name, value in ((nvmet, "os", OsOfConfigfs(self)), (configfs, "os", OsOfConfigfs(self)), (nvmet, "CONFIGFS", self.root)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        os.makedirs(self.path("subsystems", NQN, "namespaces", "1"))
        self.write("1", "subsystems", NQN, "namespaces", "1", "enable")
        os.mkdir(self.path("ports"))
        self.backup = Backup(self.path("state"), "tcp rnic")
        self.backup.begin()
        self.target = nvmet.NvmetTarget(Call(), self.backup, NQN)
        self.make_port("7", TCP, linked=True)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, text, *parts):
        with open(self.path(*parts), "w", encoding="ascii") as file:
            file.write(text + "\n")

    def read(self, *parts):
        with open(self.path(*parts), encoding="ascii") as file:
            return file.read().strip()

    def mkdir(self, path, mode=0o777):
        os.mkdir(path, mode)
        parent = os.path.basename(os.path.dirname(path))
        if parent == "ports":
            for name in nvmet.ATTRIBUTES:
                self.write("", path, name)
            os.mkdir(os.path.join(path, "subsystems"))
            os.mkdir(os.path.join(path, "ana_groups"))
            self.mkdir(os.path.join(path, "ana_groups", "1"))
        elif parent == "ana_groups":
            self.write("optimized", path, "ana_state")

    def symlink(self, source, link):
        groups = os.path.join(os.path.dirname(os.path.dirname(link)), "ana_groups")
        self.linked_as.append({self.read(groups, group, "ana_state") for group in os.listdir(groups)})
        os.symlink(source, link)

    def make_port(self, number, address, linked):
        self.mkdir(self.path("ports", number))
        for name in nvmet.ATTRIBUTES:
            self.write(address[name[5:]], "ports", number, name)
        if linked:
            os.symlink(self.target.subsystem, self.path("ports", number, "subsystems", NQN))

    def ports(self):
        return sorted(os.listdir(self.path("ports")))

    def test_health_needs_enabled_namespaces(self):
        self.target.check_healthy()
        self.write("0", "subsystems", NQN, "namespaces", "1", "enable")
        with self.assertRaises(Problem):
            self.target.check_healthy()

    def test_a_port_is_inaccessible_when_hosts_first_see_it(self):
        self.mkdir(self.path("ports", "7", "ana_groups", "2"))
        self.target.add(RDMA)
        self.target.add(RDMA)
        self.assertEqual(self.ports(), ["1", "7"])
        self.assertEqual(self.linked_as, [{"inaccessible"}])
        # Namespaces of the second group are reached through the new port, too.
        self.assertEqual(sorted(os.listdir(self.path("ports", "1", "ana_groups"))), ["1", "2"])
        self.assertEqual((self.target.ana(TCP), self.target.ana(RDMA)), ("optimized", "inaccessible"))

    def test_a_port_that_a_killed_adapter_left_is_finished(self):
        self.backup.write("port", "1")
        self.mkdir(self.path("ports", "1"))
        self.target.add(RDMA)
        self.assertEqual(self.ports(), ["1", "7"])
        self.assertEqual(self.target.ana(RDMA), "inaccessible")

    def test_a_port_that_a_killed_adapter_left_goes_on_the_way_back(self):
        self.backup.write("port", "1")
        self.mkdir(self.path("ports", "1"))
        self.target.remove(RDMA)
        self.assertEqual(self.ports(), ["7"])
        self.make_port("1", {**RDMA, "traddr": "10.0.0.9"}, linked=False)
        self.target.remove(RDMA)
        self.assertEqual(self.ports(), ["1", "7"])

    def test_two_adapters_at_once_make_two_ports(self):
        self.make_port("1", {**RDMA, "traddr": "10.0.0.9"}, linked=False)
        mkdir, taken = self.mkdir, []

        def another_is_faster(path, mode=0o777):
            if os.path.basename(path) == "2" and not taken:
                taken.append(path)
                mkdir(path)
            mkdir(path, mode)

        with mock.patch.object(nvmet.os, "mkdir", another_is_faster):
            self.target.add(RDMA)
        self.assertEqual(self.ports(), ["1", "2", "3", "7"])
        self.assertEqual(self.read("ports", "2", "addr_traddr"), "")
        self.assertEqual(self.backup.read("port"), "3")

    def test_a_target_without_free_numbers_fails_the_step(self):
        with mock.patch.object(nvmet, "MOST_PORTS", 2):
            self.make_port("1", {**RDMA, "traddr": "10.0.0.9"}, linked=False)
            with self.assertRaises(Problem) as raised:
                self.target.add(RDMA)
        self.assertEqual(raised.exception.outcome, "failed")

    def test_a_port_of_somebody_else_is_not_taken(self):
        self.backup.write("port", "1")
        self.make_port("1", {**RDMA, "traddr": "10.0.0.9"}, linked=False)
        with self.assertRaises(Problem) as raised:
            self.target.add(RDMA)
        self.assertEqual(raised.exception.outcome, "inconclusive")

    def test_a_port_of_other_subsystems_keeps_its_state(self):
        """The ANA state belongs to the port: hosts of the other subsystem would lose their I/O."""
        self.make_port("3", RDMA, linked=False)
        os.symlink("elsewhere", self.path("ports", "3", "subsystems", "nqn.other"))
        with self.assertRaises(Problem) as raised:
            self.target.add(RDMA)
        self.assertEqual((raised.exception.outcome, str(raised.exception)),
                         ("failed", "port rdma 10.0.0.1:4420 serves other subsystems, whose ANA state would change: "
                                    "give this one a trsvcid of its own"))
        self.target.remove(RDMA)
        self.assertEqual(os.listdir(self.path("ports", "3", "subsystems")), ["nqn.other"])
        self.assertEqual(self.read("ports", "3", "ana_groups", "1", "ana_state"), "optimized")

    def test_a_port_is_found_however_its_address_is_written(self):
        self.make_port("3", {**RDMA, "adrfam": "ipv6", "traddr": "FD77:0::1"}, linked=True)
        self.assertEqual(self.target.ana({**RDMA, "adrfam": "ipv6", "traddr": "fd77::1"}), "optimized")

    def test_groups_of_different_states_are_mixed(self):
        self.mkdir(self.path("ports", "7", "ana_groups", "2"))
        self.write("inaccessible", "ports", "7", "ana_groups", "2", "ana_state")
        self.assertEqual(self.target.ana(TCP), "mixed")
        self.target.set_ana(TCP, "non-optimized")
        self.assertEqual(self.target.ana(TCP), "non-optimized")

    def test_a_port_that_is_not_linked_is_no_path(self):
        self.make_port("3", RDMA, linked=False)
        self.assertIsNone(self.target.ana(RDMA))

    def test_a_removed_port_is_gone_unless_another_subsystem_uses_it(self):
        self.target.add(RDMA)
        self.target.remove(RDMA)
        self.target.remove(RDMA)
        self.assertEqual(self.ports(), ["7"])
        os.symlink("elsewhere", self.path("ports", "7", "subsystems", "nqn.other"))
        self.target.remove(TCP)
        self.assertEqual(os.listdir(self.path("ports", "7", "subsystems")), ["nqn.other"])


if __name__ == "__main__":
    unittest.main()
