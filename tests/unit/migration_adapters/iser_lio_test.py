#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter iser with Linux's target: every step there and back, on a folder that behaves like LIO's part of configfs, before
what QEMU said (recorded_iser/)."""

import json
import os
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import iser  # noqa: E402
import iser_test  # noqa: E402
import lio_test  # noqa: E402
from rocegw_adapter import byte_counters  # noqa: E402
from rocegw_adapter.protocol import answer  # noqa: E402

IQN, INITIATOR = iser_test.IQN, iser_test.INITIATOR


class Steps(unittest.TestCase):
    def setUp(self):
        self.qemu = iser_test.Recorded("test_what_tgtadm_printed")
        self.lio = lio_test.Target("test_ipv6")
        for fixture in (self.qemu, self.lio):
            fixture.setUp()
            self.addCleanup(fixture.doCleanups)
        # The target of the recording.
        os.rename(os.path.join(self.lio.old, "lun", "lun_0"), os.path.join(self.lio.old, "lun", "lun_1"))
        os.rename(os.path.join(self.lio.old, "np", "192.0.2.1:3260"), os.path.join(self.lio.old, "np", "10.77.0.1:3260"))
        self.new = self.lio.path("iscsi", IQN + ".iser", "tpgt_1")
        paths = {"tcp": {"traddr": "10.77.0.1", "iqn": IQN}, "rnic": {"traddr": "10.77.0.1", "iqn": IQN + ".iser"}}
        self.qemu.text.update(target="lio", store="iblock_0/disk", lun=1,
                              nodes=[{"name": "target", "transport": "tcp", "rnic": True, "paths": paths}])
        patch = mock.patch.object(byte_counters, "rnic_bytes", lambda: 7)
        patch.start()
        self.addCleanup(patch.stop)
        with open(os.path.join(self.qemu.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.qemu.text, file)
        with open(os.path.join(self.qemu.folder, "4711", "environ"), "wb") as environment:
            environment.write(self.qemu.environment)

    def done(self, *names):
        answered = {}
        for name in names:
            answered = answer("iser", iser.DUAL_PATH_CALLS, iser.Cluster,
                              {"protocol": 1, "id": "1", "call": name, "cluster": "c1", "node": "target", "from": "tcp", "to": "rnic",
                               "deadline_seconds": 20})
            self.assertEqual(answered["outcome"], "done", (name, answered))
        return answered

    def changed(self):
        """Commands of QEMU that change something, since the last call."""
        names = [entry[0] for entry in self.qemu.log if isinstance(entry, tuple)]
        self.qemu.log.clear()
        return names

    def session(self, there):
        self.lio.write(f"InitiatorName: {INITIATOR}" if there else "No active iSCSI Session", self.new, "acls", INITIATOR, "info")

    def switched(self):
        self.done("health", "ok-to-stop", "backup", "add-path")
        self.assertEqual(self.changed(), ["blockdev-add"])
        self.assertEqual(self.lio.read(self.new, "np", "10.77.0.1:3260", "iser"), "1")
        self.session(True)
        self.qemu.moment = "both"
        self.done("verify-path", "switch")
        self.assertEqual(self.changed(), ["blockdev-reopen"])
        self.qemu.moment = "iser"
        self.assertEqual(self.done("drain")["outstanding"], 0)
        self.assertEqual(self.done("verify")["stated"], "rnic")

    def test_there_and_back(self):
        self.switched()
        self.done("switch-back")
        self.assertEqual(self.changed(), ["blockdev-reopen"])
        self.qemu.moment = "both"
        self.assertEqual(self.done("drain-new")["outstanding"], 0)
        self.session(False)
        self.done("remove-new")
        self.assertFalse(os.path.exists(os.path.dirname(self.new)))
        self.qemu.moment = "tcp"
        self.assertEqual(self.done("restore")["config_hash"], self.done("verify-old")["config_hash"])
        self.assertEqual(self.done("verify-old")["stated"], "tcp")
        self.assertEqual(self.lio.read(self.lio.old, "enable"), "1")

    def test_there_to_the_end(self):
        self.switched()
        self.assertEqual(self.done("remove-old")["clients_on_old"], 0)
        self.assertFalse(os.path.exists(self.lio.old))
        self.assertEqual(self.done("verify")["stated"], "rnic")


if __name__ == "__main__":
    unittest.main()
