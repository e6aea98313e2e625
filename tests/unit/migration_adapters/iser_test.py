#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter iser before what Debian's tgtadm 1.0.85 and QEMU 7.2 said (recorded_iser/, by tests/interop/iser_paths/run.py
--record): a disk over TCP, over both paths, and over iSER. The real programs are judged there."""

import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import iser  # noqa: E402
from rocegw_adapter import qemu_disk  # noqa: E402
from rocegw_adapter.protocol import Problem, answer  # noqa: E402
from rocegw_adapter.tgt import parse_targets  # noqa: E402

IQN = "iqn.2026-11.com.example:disk"
INITIATOR = "iqn.2026-11.com.example:machine"


def recorded(name):
    with open(os.path.join(HERE, "recorded_iser", name), encoding="utf-8") as file:
        return file.read()


class Recorded(unittest.TestCase):
    """Both tools as they were at one moment. `log`: what changes something."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-iser-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.moment = "tcp"
        self.targets = None
        self.log = []
        self.text: dict = {
            "store": "/srv/disk",
            "nodes": [{"name": "target", "transport": "tcp", "gateway": True,
                       "paths": {"tcp": {"traddr": "10.77.0.1", "tid": 1, "iqn": IQN},
                                 "gateway": {"traddr": "10.77.0.1", "tid": 2, "iqn": IQN + ".iser"}}}],
            "hosts": [{"name": "machine", "qmp": "/run/qmp", "node": "disk", "initiator": INITIATOR}]}
        test = self

        class FakeMonitor:
            def __init__(self, path):
                test.assertEqual(path, "/run/qmp")

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def execute(self, name, arguments=None):
                if name == "query-named-block-nodes":
                    return json.loads(recorded(f"{test.moment}.qemu_nodes"))
                test.log.append((name, arguments))
                return {}

        for module, name, value in ((iser, "DESCRIPTIONS", self.folder), (iser, "STATE", os.path.join(self.folder, "state")),
                                    (iser, "gateway_bytes", lambda address: 7), (iser, "tcp_bytes", lambda call, address: 7),
                                    (qemu_disk, "Monitor", FakeMonitor), (iser.Step, "run", lambda _, words, given=None: self.run_tool(words))):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)

    def run_tool(self, words):
        self.assertEqual(words[0], "tgtadm")
        if words[-1] == "show":
            return 0, recorded(f"{self.moment}.tgt_targets") if self.targets is None else self.targets, ""
        self.log.append(" ".join(words[words.index("--mode") + 1:]))
        return 0, "", ""

    def call(self, name):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        return answer("iser", iser.DUAL_PATH_CALLS, iser.Cluster,
                      {"protocol": 1, "id": "1", "call": name, "cluster": "c1", "node": "target", "from": "tcp", "to": "gateway",
                       "deadline_seconds": 20})

    def done(self, name):
        answered = self.call(name)
        self.assertEqual(answered["outcome"], "done", answered)
        return answered

    def text_of(self, name, outcome):
        answered = self.call(name)
        self.assertEqual(answered["outcome"], outcome, answered)
        return answered["text"]

    def test_what_tgtadm_printed(self):
        both = parse_targets(recorded("both.tgt_targets"))
        self.assertEqual(both[1], {"name": IQN, "driver": "iscsi", "state": "ready", "initiators": [INITIATOR],
                                   "stores": {0: "None", 1: "/srv/disk"}})
        self.assertEqual((both[2]["name"], both[2]["driver"]), (IQN + ".iser", "iser"))
        self.assertEqual(parse_targets(""), {})

    def test_output_that_is_not_understood_stops_the_step(self):
        """Failure case 32."""
        for text in ("Fehler\n", "Target 1: x\n", "Target 1: x\nDriver\n", recorded("tcp.tgt_targets").replace("LUN: 1", "LUN: one")):
            with self.subTest(text=text[:40]):
                self.targets = text
                self.assertEqual(self.call("health")["outcome"], "inconclusive")
                self.assertEqual(self.log, [])

    def test_how_qemu_names_a_path(self):
        self.assertEqual(qemu_disk.address_of("iser://u%p@10.0.0.1/iqn.2026-11.com.example:disk/1"),
                         ("iser", "10.0.0.1", "3260", "iqn.2026-11.com.example:disk"))
        self.assertEqual(qemu_disk.address_of("iscsi://[2001:DB8::1]:3261/iqn.x:y/0"), ("tcp", "2001:db8::1", "3261", "iqn.x:y"))
        with self.assertRaises(Problem):
            qemu_disk.address_of("/dev/sda")

    def test_steps_there(self):
        for name in ("health", "ok-to-stop", "backup", "add-path"):
            if name == "add-path":
                self.targets = None
                self.moment = "both"
            self.done(name)
        self.assertNotIn("blockdev-reopen", [entry[0] for entry in self.log])
        self.done("verify-path")
        self.done("switch")
        self.assertEqual(self.log[-1][0], "blockdev-reopen")
        self.assertEqual(self.log[-1][1]["options"][0]["file"], "disk-gateway")
        self.assertEqual(self.done("drain")["outstanding"], 1)
        self.moment = "iser"
        self.assertEqual(self.done("drain")["outstanding"], 0)
        self.assertEqual(self.done("verify")["stated"], "gateway")

    def test_a_machine_that_uses_neither_path_blocks(self):
        self.text["nodes"][0]["paths"]["tcp"]["traddr"] = "10.77.0.9"
        self.assertEqual(self.text_of("health", "failed"), "machine uses neither path")

    def test_a_target_of_somebody_else_is_left_alone(self):
        self.text["nodes"][0]["paths"]["gateway"]["tid"] = 1
        self.assertIn("a target of their own", self.text_of("backup", "failed"))
        self.text["nodes"][0]["paths"]["gateway"]["tid"] = 2
        self.targets = recorded("both.tgt_targets").replace("disk.iser", "other")
        self.assertIn("target 2 is iqn.2026-11.com.example:other", self.text_of("backup", "failed"))

    def test_a_machine_that_nobody_named_keeps_the_old_target(self):
        self.moment = "iser"
        self.done("remove-old")
        self.moment = "both"
        self.assertEqual(self.text_of("remove-old", "failed"), "machine does not use the path over gateway")
        self.moment = "iser"
        self.targets = recorded("both.tgt_targets").replace(f"Initiator: {INITIATOR}", "Initiator: iqn.2001-04.com.example:stranger", 1)
        self.log.clear()
        self.assertEqual(self.done("remove-old")["clients_on_old"], 1)
        self.assertEqual([entry for entry in self.log if "delete" in entry], [])


class Busy(unittest.TestCase):
    def test_a_monitor_that_serves_another_client_is_asked_again(self):
        folder = tempfile.mkdtemp(prefix="rocegw-qmp-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "qmp")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen()

            def serve():
                listener.accept()[0].close()
                connection = listener.accept()[0]
                with connection, connection.makefile("rw") as stream:
                    print('{"QMP": {}}', file=stream, flush=True)
                    stream.readline()
                    print('{"event": "x"}\n{"return": {}}', file=stream, flush=True)
                    stream.readline()
                    print('{"error": {"class": "GenericError", "desc": "no such node"}}', file=stream, flush=True)

            server = threading.Thread(target=serve)
            server.start()
            with qemu_disk.Monitor(path) as monitor, self.assertRaisesRegex(Problem, "no such node"):
                monitor.execute("blockdev-del", {"node-name": "x"})
            server.join()


if __name__ == "__main__":
    unittest.main()
