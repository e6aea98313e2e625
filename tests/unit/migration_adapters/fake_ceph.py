# SPDX-License-Identifier: Apache-2.0
"""The adapter ceph before answers of Ceph 16.2.15 that tests/interop/ceph_messenger recorded: six object stores on three hosts,
over TCP and over RDMA. Of the daemons' options and counters only those of the messenger are kept. The fake cluster carries out
flags and keys."""

import json
import os
import shutil
import socket
import sys
import tempfile
import unittest

import ceph
from rocegw_adapter import byte_counters
from rocegw_adapter.protocol import answer

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = "[global]\nfsid = 1\n[osd]\nosd_data = /var/lib/ceph/osd\n"
GID = "0000:0000:0000:0000:0000:ffff:0a4d:0001"
NO_COMMAND = object()  # a daemon that begins knows its own commands only later
OWN_FLAGS = ["nodeep-scrub", "nodown", "noout", "norebalance", "noscrub", "pauserd", "pausewr"]


def recorded(name):
    with open(os.path.join(HERE, "recorded_ceph", name), encoding="utf-8") as file:
        return file.read()


class FakeTools:
    """Answers of recorded tools by their words; flags and keys are kept. `changed`: an answer in the place of a recorded one."""

    def __init__(self):
        self.transport = "tcp"
        self.flags = set()
        self.keys = {}
        self.log = []
        self.changed = {}
        self.statuses = {}  # exit statuses of tools that end with another one than 0
        self.noout = set()  # object stores with a noout of their own
        self.meanwhile = {}  # what another node does before the first command that begins with these words
        self.silent = False  # the monitors have no quorum
        self.unit = ""  # what systemctl shows of each unit

    def run(self, words):
        if words[:2] == ["ceph", "-c"] and self.silent:
            return 1, "", "[errno 110] RADOS timed out (error connecting to the cluster)"
        if words[:2] == ["ceph", "-c"]:
            return self.ceph(words[5:])
        if words[:2] == ["ceph", "--admin-daemon"]:
            return self.daemon(words[3:])
        if words[0] == "ss":
            return 0, recorded(f"{self.transport}.ss"), ""
        if words[:2] == ["systemctl", "show"]:
            return 0, self.unit, ""
        self.log.append(" ".join(words))
        return 0, "", ""

    def answered(self, name):
        if self.changed.get(name) is NO_COMMAND:
            return 22, "", "admin_socket: invalid command"
        status = self.statuses.get(name, 0)
        return status, self.changed[name] if name in self.changed else recorded(f"{self.transport}.{name}"), ""

    def dump(self, text):
        """The map with flags as they are now."""
        told = json.loads(text)
        for osd in told["osds"]:
            osd["state"] += ["noout"] if f"osd.{osd['osd']}" in self.noout else []
        return json.dumps({**told, "flags_set": sorted(self.flags)})

    def daemon(self, words):
        return (0, "{}", "") if words == ["version"] else self.answered("daemon_" + "_".join(words))

    def ceph(self, words):
        self.meanwhile.pop(" ".join(words[:2]), lambda: None)()
        if words[:2] in (["osd", "set"], ["osd", "unset"]):
            names = ["pauserd", "pausewr"] if words[2] == "pause" else [words[2]]
            (self.flags.update if words[1] == "set" else self.flags.difference_update)(names)
            self.log.append(" ".join(words))
        elif words[:2] == ["config-key", "set"]:
            self.keys[words[2]] = words[3]
        elif words[:2] == ["config-key", "rm"]:
            del self.keys[words[2]]
        elif words[:2] == ["config-key", "dump"]:
            return 0, json.dumps(self.keys), ""
        elif words[:2] == ["osd", "dump"]:
            status, text, error = self.answered("osd_dump")
            if "osd_dump" not in self.changed:
                text = self.dump(text)
            return status, text, error
        elif words[:2] == ["osd", "ok-to-stop"]:
            return self.answered("ok_to_stop")
        elif words[:2] == ["mon", "ok-to-stop"]:
            return self.statuses.get("mon_ok_to_stop", 0), "", "Error EBUSY: not enough monitors would be available"
        elif words[0] == "osd":
            if words[2] == "noout":
                (self.noout.update if words[1] == "set-group" else self.noout.difference_update)(words[3:])
            self.log.append(" ".join(words))
        elif words[0] in ("pg", "config", "quorum_status"):
            return self.answered("_".join(word for word in words if word not in ("-f", "json")))
        else:
            raise AssertionError(words)
        return 0, "", ""


class Adapter(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-ceph-")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, value in (("DESCRIPTIONS", self.folder), ("STATE", os.path.join(self.folder, "state"))):
            self.addCleanup(setattr, ceph, name, getattr(ceph, name))
            setattr(ceph, name, value)
        self.addCleanup(setattr, byte_counters, "gateway_bytes", byte_counters.gateway_bytes)
        byte_counters.gateway_bytes = lambda address: 7
        self.tools = FakeTools()
        self.addCleanup(setattr, ceph.Step, "run", ceph.Step.run)
        ceph.Step.run = lambda _, words, given=None: self.tools.run(words)
        self.library = os.path.join(self.folder, "librocegw-verbs.so")
        with open(self.library, "wb"):
            pass
        self.tools.unit = f"""LoadState=loaded
ExecStart={{ path={sys.executable} ; argv[]={sys.executable} ; ignore_errors=no ; start_time=[n/a] }}
Environment=LD_PRELOAD={self.library} ROCEGW_SOCKET={self.library}
"""
        self.conf = os.path.join(self.folder, "ceph.conf")
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(CONF)
        for daemon in ("osd.0", "osd.1", "mon.h1"):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.addCleanup(listener.close)
            listener.bind(self.socket_of(daemon))
            listener.listen(64)
        self.text: dict = {"scope": "cluster", "conf": self.conf, "admin_socket": os.path.join(self.folder, "{daemon}.asok"),
                           "options": {"ms_async_rdma_polling_us": "0"}, "nodes": [self.node(number) for number in (1, 2, 3)]}

    def socket_of(self, daemon):
        return os.path.join(self.folder, daemon + ".asok")

    @staticmethod
    def node(number):
        return {"name": f"h{number}", "transport": "tcp", "domains": {"rack": f"r{number}"}, "gateway": True,
                "daemons": [f"mon.h{number}", f"osd.{number * 2 - 2}", f"osd.{number * 2 - 1}"],
                "rdma": {"gateway": {"device": "rocegw0", "gid": GID}, "rnic": {"device": "mlx5_0", "gid": GID}}}

    def call(self, name, before="tcp", after="gateway", **more):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        return answer("ceph", ceph.RESTART_CALLS, ceph.Cluster,
                      {"protocol": 1, "id": "1", "call": name, "cluster": "c1", "node": "h1", "from": before, "to": after,
                       "deadline_seconds": 20, **more})

    def done(self, name, **change):
        answered = self.call(name, **change)
        self.assertEqual(answered["outcome"], "done", answered)
        return answered

    def text_of(self, name, outcome, **change):
        answered = self.call(name, **change)
        self.assertEqual(answered["outcome"], outcome, answered)
        return answered["text"]

    def read_conf(self):
        with open(self.conf, encoding="utf-8") as file:
            return file.read()
