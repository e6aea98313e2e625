#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter iser before what Debian's tgtadm 1.0.85 and QEMU 7.2 said (recorded_iser/, by tests/interop/iser_paths/run.py
--record): a disk over TCP, over both paths, and over iSER. The real programs are judged there."""

import json
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import iser  # noqa: E402
from rocegw_adapter import byte_counters, qemu_disk  # noqa: E402
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
        self.nodes: list | None = None
        self.log: list = []
        self.text: dict = {
            "store": "/srv/disk",
            "nodes": [{"name": "target", "transport": "tcp", "gateway": True,
                       "paths": {"tcp": {"traddr": "10.77.0.1", "tid": 1, "iqn": IQN},
                                 "gateway": {"traddr": "10.77.0.1", "tid": 2, "iqn": IQN + ".iser"}}}],
            "hosts": [{"name": "machine", "qmp": "/run/qmp", "node": "disk", "initiator": INITIATOR}],
            "commands": {"save-machine": ["save-machine"]}}
        self.process = 4711
        self.environment = b"PATH=/bin\0MALLOC_PERTURB_=255\0"
        os.mkdir(os.path.join(self.folder, "4711"))
        os.symlink("/usr/bin/qemu-system-x86_64", os.path.join(self.folder, "4711", "exe"))
        test = self

        class FakeMonitor:
            def __init__(self, path):
                test.assertEqual(path, "/run/qmp")

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def process(self):
                return test.process

            def execute(self, name, arguments=None):
                if name == "query-named-block-nodes":
                    return json.loads(recorded(f"{test.moment}.qemu_nodes")) if test.nodes is None else test.nodes
                test.log.append((name, arguments))
                return {}

        for module, name, value in ((iser, "DESCRIPTIONS", self.folder), (iser, "STATE", os.path.join(self.folder, "state")),
                                    (byte_counters, "gateway_bytes", lambda address: 7), (iser, "tcp_bytes", lambda call, address: 7),
                                    (qemu_disk, "Monitor", FakeMonitor), (qemu_disk, "PROC", self.folder),
                                    (iser.Step, "run", lambda _, words, given=None: self.run_tool(words))):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)

    def run_tool(self, words):
        if words == ["save-machine"]:
            self.log.append("save-machine")
            return 0, "", ""
        self.assertEqual(words[0], "tgtadm")
        if words[-1] == "show":
            return 0, recorded(f"{self.moment}.tgt_targets") if self.targets is None else self.targets, ""
        self.log.append(" ".join(words[words.index("--mode") + 1:]))
        return 0, "", ""

    def call(self, name):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        with open(os.path.join(self.folder, "4711", "environ"), "wb") as file:
            file.write(self.environment)
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

    def test_what_becomes_a_name_of_a_folder_is_checked(self):
        path = self.text["nodes"][0]["paths"]["tcp"]
        for port in ("3260/../..", "", "-1", "326000"):
            path["trsvcid"] = port
            self.assertIn("trsvcid is no port", self.text_of("health", "failed"))
        path["trsvcid"] = 3260
        self.done("health")
        for name in ("../../../etc", "/etc", "", "iqn.2026-11.com.example:a/b", 7):
            self.text["hosts"][0]["initiator"] = name
            self.assertIn("machine: initiator is no iqn", self.text_of("health", "failed"))

    def test_the_kernels_target_has_no_numbers_and_no_gateway(self):
        self.text.update(target="lio", store="iblock_0/disk")
        for path in self.text["nodes"][0]["paths"].values():
            del path["tid"]
        self.assertIn("needs an RNIC", self.text_of("health", "failed"))
        self.text["target"] = "scst"
        self.assertIn("neither tgt nor lio", self.text_of("health", "failed"))

    def test_what_tgtadm_printed(self):
        both = parse_targets(recorded("both.tgt_targets"))
        self.assertEqual(both[1], {"name": IQN, "driver": "iscsi", "state": "ready", "initiators": [INITIATOR],
                                   "stores": {0: "None", 1: "/srv/disk"}, "accounts": [], "access": ["ALL"], "special": []})
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
                         ("iser", "10.0.0.1", "3260", "iqn.2026-11.com.example:disk", 1))
        self.assertEqual(qemu_disk.address_of("iscsi://[2001:DB8::1]:3261/iqn.x:y/0"), ("tcp", "2001:db8::1", "3261", "iqn.x:y", 0))
        with self.assertRaises(Problem):
            qemu_disk.address_of("/dev/sda")
        with self.assertRaises(Problem) as raised:
            qemu_disk.address_of("iscsi://user%secret@10.0.0.1/iqn.x:y")
        self.assertNotIn("secret", str(raised.exception))

    def test_a_target_that_the_new_one_would_not_equal_blocks(self):
        plain = recorded("tcp.tgt_targets")
        unit = plain[plain.index("        LUN: 1"):plain.index("    Account")]
        for words, changed in (("unit 2", plain.replace(unit, unit + unit.replace("LUN: 1", "LUN: 2"))),
                               ("account user (outgoing)", plain.replace("information:\n    ACL", "information:\n        user (outgoing)\n    ACL")),
                               ("access for 10.0.0.0/8", plain.replace("        ALL", "        10.0.0.0/8")),
                               ("Readonly Yes", plain.replace(unit, unit.replace("Readonly: No", "Readonly: Yes"))),
                               ("Backing store type aio", plain.replace("type: rdwr", "type: aio"))):
            with self.subTest(words=words):
                self.assertNotEqual(changed, plain)
                self.targets = changed
                self.assertIn(words, self.text_of("health", "failed"))
        self.targets = plain.replace("        ALL", f"        ALL\n        {INITIATOR}")
        self.done("health")

    def test_a_target_with_another_unit_is_not_deleted(self):
        self.moment = "iser"
        told = re.sub(r"        I_T nexus: .*?(?=    LUN information)", "", recorded("iser.tgt_targets"), flags=re.DOTALL)
        self.targets = told
        self.done("remove-old")
        # Machines start with the new path before the old one is gone.
        self.assertEqual(self.log[0], "save-machine")
        self.assertTrue(any("--op delete --tid 1" in entry for entry in self.log), self.log)
        self.log.clear()
        self.targets = told.replace("        LUN: 1\n", "        LUN: 2\n            Backing store path: /srv/other\n        LUN: 1\n", 1)
        self.assertIn("unit 2", self.text_of("remove-old", "failed"))
        self.assertEqual([entry for entry in self.log if "--op delete" in entry], [])

    def change_nodes(self, edit):
        self.nodes = json.loads(recorded(f"{self.moment}.qemu_nodes"))
        edit({node["node-name"]: node for node in self.nodes})

    def test_a_disk_that_the_exchange_would_change_blocks(self):
        self.change_nodes(lambda nodes: nodes["disk"].update(file=nodes["disk"]["file"].replace('"driver": "raw"', '"driver": "raw", "offset": 512', 1)))
        self.assertIn("options that would be lost: offset", self.text_of("health", "failed"))
        self.change_nodes(lambda nodes: nodes["disk-before"].update({"node-name": "#block017"}))
        self.assertIn("needs a node-name of its own", self.text_of("health", "failed"))
        name = "d" * 24
        self.text["hosts"][0]["node"] = name
        self.change_nodes(lambda nodes: nodes["disk"].update({"node-name": name}))
        self.assertIn("no node name as long as", self.text_of("health", "failed"))

    def test_a_machine_that_iser_would_end_blocks(self):
        for environment in (b"PATH=/bin\0", b"MALLOC_PERTURB_=25\0", b"XMALLOC_PERTURB_=255\0"):
            self.environment = environment
            self.assertIn("MALLOC_PERTURB_=255", self.text_of("health", "failed"))
        link = os.path.join(self.folder, "4711", "exe")
        os.remove(link)
        os.symlink("/usr/bin/ssh", link)  # forwards the monitor of a machine elsewhere
        self.assertIn("ssh made the monitor's socket, not QEMU", self.text_of("health", "failed"))
        self.process = 0  # of another container
        self.assertIn("the process of QEMU is not seen", self.text_of("health", "failed"))
        self.text["hosts"][0]["elsewhere"] = True
        self.done("health")
        self.text["hosts"][0]["elsewhere"] = "yes"
        self.assertIn("elsewhere is neither true nor false", self.text_of("health", "failed"))
        self.text["hosts"][0]["elsewhere"], self.process = False, 4711
        with unittest.mock.patch.object(qemu_disk.os, "readlink", side_effect=PermissionError):
            self.assertIn("CAP_SYS_PTRACE", self.text_of("health", "failed"))

    def test_a_machine_that_would_not_start_again_blocks(self):
        del self.text["commands"]
        self.assertIn("no command save-machine", self.text_of("health", "failed"))
        self.moment = "iser"
        self.assertIn("no command save-machine", self.text_of("remove-old", "failed"))
        self.assertEqual(self.log, [])

    def test_a_save_command_that_fails_is_no_backup(self):
        """restore runs it, after the change."""
        self.text["commands"]["save"] = ["tgtadm", "--mode", "fail"]
        run_tool = self.run_tool
        with unittest.mock.patch.object(self, "run_tool", lambda words: (1, "", "no room") if words[-1] == "fail" else run_tool(words)):
            self.assertIn("save: exit status 1 no room", self.text_of("backup", "failed"))
            self.assertIn("there is no backup", self.text_of("restore", "failed"))

    def test_the_exchange_keeps_the_options_of_the_disk(self):
        self.moment = "both"
        self.change_nodes(lambda nodes: nodes["disk"].update(ro=True, detect_zeroes="unmap", cache={"direct": True, "no-flush": True, "writeback": True}))
        self.done("backup")
        self.done("switch")
        self.assertEqual(self.log[-1][1]["options"][0], {
            "driver": "raw", "node-name": "disk", "file": "disk-gateway", "read-only": True, "discard": "unmap", "detect-zeroes": "unmap",
            "cache": {"direct": True, "no-flush": True}})

    def test_another_unit_of_the_same_target_is_another_path(self):
        self.change_nodes(lambda nodes: [node.update(file=node["file"].replace('"lun": 1', '"lun": 2')) for node in nodes.values()])
        self.assertEqual(self.text_of("health", "failed"), "machine uses neither path")

    def test_the_way_back_connects_the_old_path_where_it_is_gone(self):
        self.moment = "iser"
        self.nodes = [node for node in json.loads(recorded("iser.qemu_nodes")) if node["node-name"] != "disk-before"]
        self.assertIn("not connected over tcp", self.text_of("switch-back", "failed"))  # the fake adds no node
        self.assertEqual(self.log, [("blockdev-add", self.log[0][1])])
        # A path that does not answer holds the machine no longer than this.
        self.assertEqual(self.log[0][1]["timeout"], 10)
        self.assertEqual((self.log[0][1]["transport"], self.log[0][1]["target"], self.log[0][1]["lun"]), ("tcp", IQN, 1))

    def test_sessions_of_others_do_not_count_for_a_machine(self):
        self.moment = "both"
        self.targets = recorded("both.tgt_targets").replace(f"Initiator: {INITIATOR}", "Initiator: iqn.2001-04.com.example:stranger")
        self.assertEqual(self.text_of("verify-path", "not-yet"), "the target does not see all sessions")

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

    def test_events_do_not_prolong_the_wait_for_an_answer(self):
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        ended = threading.Event()

        def send_events():
            with theirs.makefile("rw") as stream:
                print('{"QMP": {}}\n{"return": {}}', file=stream, flush=True)
                while not ended.wait(0.05):
                    print('{"event": "x"}', file=stream, flush=True)

        class Accepted(socket.socket):
            def __init__(self, *_):
                super().__init__(fileno=ours.detach())

            def connect(self, _):
                pass

        server = threading.Thread(target=send_events)
        server.start()
        self.addCleanup(server.join)
        self.addCleanup(ended.set)
        with unittest.mock.patch.object(qemu_disk.socket, "socket", Accepted), unittest.mock.patch.object(qemu_disk, "SECONDS", 0.5), \
                qemu_disk.Monitor("/run/qmp") as monitor:
            begin = time.monotonic()
            with self.assertRaises(TimeoutError):
                monitor.execute("query-status")
            self.assertLess(time.monotonic() - begin, 5)


if __name__ == "__main__":
    unittest.main()
