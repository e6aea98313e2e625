#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter generic: limits of units, and the client library in their processes. systemctl's answers are written
after systemd 252, not recorded."""

import json
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import generic  # noqa: E402
from rocegw_adapter.protocol import answer  # noqa: E402

MAPS = """\
55d0c8a00000-55d0c8a28000 r--p 00000000 fe:00 1315 /usr/bin/kv
7f2b1c000000-7f2b1c021000 r-xp 00000000 fe:00 2211 /usr/lib/librocegw-verbs.so
"""


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-generic-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.shown = ""
        self.properties = {"LimitNOFILE": "524288", "LimitMEMLOCK": "8388608", "MainPID": "4711"}
        self.text = {"class": "dual-path", "nodes": [{"name": "h1", "transport": "tcp"}],
                     "units": {"tcp": ["kv.service"], "gateway": ["kv-rdma.service"]}}
        for name, value in (("DESCRIPTIONS", self.folder), ("STATE", os.path.join(self.folder, "state")), ("PROC", self.folder), ("GROUPS", self.folder)):
            self.addCleanup(setattr, generic, name, getattr(generic, name))
            setattr(generic, name, value)
        self.addCleanup(setattr, generic.Step, "run", generic.Step.run)
        generic.Step.run = lambda _, words, given=None: self.systemctl(words)
        os.mkdir(os.path.join(self.folder, "4711"))
        self.write_maps(MAPS)
        self.write_comm("kv")

    def systemctl(self, words):
        if words[:3] == ["systemctl", "show", "-p"]:
            return 0, self.shown, ""
        self.assertEqual(words[:4], ["systemctl", "show", "--value", "-p"])
        return 0, self.properties[words[4]] + "\n", ""

    def write_maps(self, text):
        with open(os.path.join(self.folder, "4711", "maps"), "w", encoding="utf-8") as file:
            file.write(text)

    def write_comm(self, name):
        with open(os.path.join(self.folder, "4711", "comm"), "w", encoding="ascii") as file:
            file.write(name + "\n")

    def call(self, name, after="gateway"):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        return answer("generic", generic.CALLS, generic.Cluster,
                      {"protocol": 1, "id": "1", "call": name, "cluster": "c1", "node": "h1", "from": "tcp", "to": after,
                       "deadline_seconds": 20})

    def test_limits_that_suffice(self):
        self.text["limits"] = {"nofile": 65536, "memlock": 8388608}
        self.assertEqual(self.call("health")["outcome"], "done")
        self.properties["LimitMEMLOCK"] = "infinity"
        self.text["limits"] = {"memlock": "infinity"}
        self.assertEqual(self.call("health")["outcome"], "done")

    def test_a_limit_that_is_too_low_blocks_the_node(self):
        """Failure case 20, before it happens."""
        self.text["limits"] = {"nofile": 1048576}
        answered = self.call("health")
        self.assertEqual((answered["outcome"], answered["text"]), ("failed", "kv.service has LimitNOFILE=524288, less than 1048576"))
        self.text["limits"] = {"memlock": "infinity"}
        self.assertEqual(self.call("health")["text"], "kv.service has LimitMEMLOCK=8388608, less than infinity")

    def test_an_answer_that_is_no_limit_decides_nothing(self):
        self.text["limits"] = {"nofile": 1}
        self.properties["LimitNOFILE"] = "[not set]"
        self.assertEqual(self.call("health")["outcome"], "inconclusive")

    def test_an_unknown_limit_is_refused(self):
        self.text["limits"] = {"stack": 1}
        self.assertIn("limit stack", self.call("health")["text"])

    def test_the_library_is_in_the_process(self):
        self.text["preload"] = True
        self.assertEqual(self.call("verify")["outcome"], "done")
        self.write_maps(MAPS.splitlines()[0])
        self.assertEqual(self.call("verify")["text"],
                         "kv-rdma.service runs without librocegw-verbs.so: the preload environment does not reach it")
        # An RNIC needs no library of ours.
        self.assertEqual(self.call("verify", after="rnic")["outcome"], "done")

    def test_the_library_is_in_a_process_of_the_container(self):
        self.text["preload"] = True
        self.properties["ControlGroup"] = "/system.slice/kv-rdma.service"
        group = os.path.join(self.folder, "system.slice", "kv-rdma.service", "libpod-1")
        os.makedirs(group)
        os.rename(os.path.join(self.folder, "4711"), os.path.join(self.folder, "4712"))
        os.mkdir(os.path.join(self.folder, "4711"))
        self.write_maps(MAPS.splitlines()[0])
        self.write_comm("conmon")
        for pids, outcome in (("4711\n4712\n4713\n", "done"), ("4711\n", "failed")):
            with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(pids)
            self.assertEqual(self.call("verify")["outcome"], outcome)

    def test_a_unit_that_the_library_will_not_reach_blocks_the_node(self):
        """Before anything is changed. The site may say that only verify is to look."""
        self.shown = f"LoadState=loaded\nExecStart={{ path={sys.executable} ; argv[]={sys.executable} ; ignore_errors=no ; }}\n"
        self.assertEqual(self.call("health")["outcome"], "done")
        self.text["preload"] = True
        answered = self.call("health")
        self.assertEqual((answered["outcome"], answered["text"]),
                         ("failed", "kv-rdma.service will have no LD_PRELOAD with librocegw-verbs.so: neither its environment nor its "
                          "command has it"))
        self.assertEqual(self.call("health", after="rnic")["outcome"], "done")
        for value, outcome in (("verify", "done"), ("always", "failed")):
            self.text["preload"] = value
            self.assertEqual(self.call("health")["outcome"], outcome)

    def test_the_drop_in_file_that_switch_will_write_is_looked_at(self):
        library, source = os.path.join(self.folder, "librocegw-verbs.so"), os.path.join(self.folder, "preload.conf")
        for path, text in ((library, ""), (source, f"[Service]\nEnvironment=LD_PRELOAD={library} ROCEGW_SOCKET={library}\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.shown = f"LoadState=loaded\nExecStart={{ path={sys.executable} ; argv[]={sys.executable} ; ignore_errors=no ; }}\n"
        self.text["preload"] = True
        self.text["files"] = [{"path": "/etc/systemd/system/kv-rdma.service.d/rocegw.conf", "tcp": "/nowhere", "gateway": source}]
        self.assertEqual(self.call("health")["outcome"], "done")
        self.shown += "RestrictAddressFamilies=AF_INET\n"
        self.assertIn("refuses AF_UNIX", self.call("health")["text"])

    def test_a_unit_without_a_process_fails(self):
        self.text["preload"] = True
        self.properties["MainPID"] = "0"
        self.assertEqual(self.call("verify")["text"], "kv-rdma.service has no main process")

    def test_the_way_back_prefers_the_old_path_before_the_new_one_drains(self):
        """A program that reads its configuration anew goes on with the new path until the old configuration is there."""
        path = os.path.join(self.folder, "kv.conf")
        for name, text in ((path, "tcp"), (path + ".gateway", "rdma")):
            with open(name, "w", encoding="ascii") as file:
                file.write(text)
        self.text.pop("units")
        self.text["files"] = [{"path": path, "tcp": path, "gateway": path + ".gateway"}]
        before = self.call("backup")["config_hash"]
        self.assertNotEqual(self.call("switch")["config_hash"], before)
        for _ in range(2):
            self.assertEqual(self.call("switch-back")["config_hash"], before)
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "tcp")
        self.assertEqual(self.call("restore")["config_hash"], before)


if __name__ == "__main__":
    unittest.main()
