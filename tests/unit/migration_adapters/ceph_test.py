#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter ceph before answers of Ceph 16.2.15 that tests/interop/ceph_messenger recorded: six object stores on three hosts,
over TCP and over RDMA. Of the daemons' options and counters only those of the messenger are kept. The fake cluster carries out
flags and keys."""

import json
import os
import re
import shutil
import socket
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import ceph  # noqa: E402
from rocegw_adapter import byte_counters, ceph_cluster  # noqa: E402
from rocegw_adapter.protocol import Problem, answer  # noqa: E402

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

    def run(self, words):
        if words[:2] == ["ceph", "-c"] and self.silent:
            return 1, "", "[errno 110] RADOS timed out (error connecting to the cluster)"
        if words[:2] == ["ceph", "-c"]:
            return self.ceph(words[5:])
        if words[:2] == ["ceph", "--admin-daemon"]:
            return self.daemon(words[3:])
        if words[0] == "ss":
            return 0, recorded(f"{self.transport}.ss"), ""
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


class Inventory(Adapter):
    def test_object_stores_alone_move(self):
        self.text["clients"] = [{"name": "krbd", "kind": "pinned"}]
        inventory = self.call("inventory")
        self.assertEqual(inventory["class"], "flag-day")
        self.assertEqual(inventory["nodes"][0]["daemons"], ["osd.0", "osd.1"])
        self.assertEqual((inventory["nodes"][0]["quorum"], inventory["clients"]), (False, []))

    def test_all_daemons_and_clients_move(self):
        self.text.update(scope="all", clients=[{"name": "krbd", "kind": "pinned"}])
        inventory = self.call("inventory")
        self.assertEqual(inventory["nodes"][0]["daemons"], ["mon.h1", "osd.0", "osd.1"])
        self.assertEqual((inventory["nodes"][0]["quorum"], len(inventory["clients"])), (True, 1))

    def test_a_description_that_is_not_understood_is_refused(self):
        self.text["nodes"][0]["daemons"] = ["osd.x"]
        self.assertIn("'osd.x' is no daemon", self.text_of("health", "failed"))
        self.text["nodes"][0] = {**self.node(1), "colour": "red"}
        self.assertIn("colour", self.text_of("health", "failed"))
        self.text["scope"] = "public"
        self.assertIn("scope", self.text_of("health", "failed"))


class Health(Adapter):
    def test_healthy(self):
        self.done("health")
        self.tools.transport = "rdma"
        self.done("health", before="gateway", after="tcp")

    def change(self, tool, edit):
        answered = json.loads(recorded(f"tcp.{tool}"))
        edit(answered)
        self.tools.changed[tool] = json.dumps(answered)

    def test_what_blocks_a_node(self):
        self.change("osd_dump", lambda told: told["osds"][3].update(up=0))
        self.assertEqual(self.text_of("health", "failed"), "osd.3 is not up and in")
        self.tools.changed.clear()
        self.change("quorum_status", lambda told: told["quorum_names"].remove("h2"))
        self.assertEqual(self.text_of("health", "failed"), "not in quorum: h2")
        self.tools.changed.clear()
        self.change("pg_stat", lambda told: told["pg_summary"]["num_pg_by_state"].append({"name": "active+degraded", "num": 2}))
        self.assertIn("2 of 19 placement groups are not clean: active+degraded", self.text_of("health", "failed"))
        self.assertIn("2 of 19", self.text_of("ok-to-stop", "not-yet"))
        self.tools.changed.clear()
        self.tools.changed["config_dump"] = '[{"section":"osd","name":"ms_cluster_type","value":"async+posix"}]'
        self.assertIn("sets ms_cluster_type for osd", self.text_of("health", "failed"))
        self.tools.changed.clear()
        self.text["nodes"].pop()
        self.assertEqual(self.text_of("health", "failed"), "on no node of the description: osd.4, osd.5")

    def test_a_node_without_device_is_refused_before_anything_is_changed(self):
        del self.text["nodes"][0]["rdma"]["gateway"]["gid"]
        self.assertIn("no device and gid for gateway", self.text_of("health", "failed"))

    def test_a_daemon_that_cannot_be_asked_blocks_the_node(self):
        os.remove(self.socket_of("osd.1"))
        self.assertIn("osd.1 does not listen", self.text_of("health", "failed"))

    def test_a_socket_that_the_adapter_may_not_use_is_no_daemon_that_ended(self):
        """Root without CAP_DAC_OVERRIDE before a daemon of another user: neither stopped nor drained."""
        def refuse(_, path):
            raise PermissionError(13, "Permission denied", path)

        with mock.patch.object(ceph_cluster.socket.socket, "connect", refuse):
            for name in ("health", "drain", "stop", "rejoin"):
                with self.subTest(call=name):
                    self.assertIn("Permission denied", self.text_of(name, "inconclusive"))

    def test_a_daemon_that_was_killed_leaves_a_socket_that_refuses(self):
        for daemon in ("osd.0", "osd.1"):
            os.remove(self.socket_of(daemon))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
                gone.bind(self.socket_of(daemon))
        self.assertEqual(self.done("drain")["outstanding"], 0)
        self.done("stop")

    def test_output_that_is_not_understood_stops_the_step(self):
        """Failure case 32: each tool, with no JSON, other JSON, and a value of another kind."""
        for tool, call in (("osd_dump", "health"), ("quorum_status", "health"), ("pg_stat", "health"), ("config_dump", "health"),
                           ("osd_dump", "cordon"), ("pg_stat", "rejoin"), ("daemon_status", "rejoin"),
                           ("daemon_dump_ops_in_flight", "drain"), ("daemon_config_show", "verify"), ("daemon_perf_dump", "verify")):
            for text in ("", "Error EINVAL", "[7]", "null", '{"osds": [{"osd": "0"}], "num_ops": "none", "pg_summary": {}}'):
                self.tools.changed, self.tools.keys = {tool: text}, {}
                with self.subTest(tool=tool, call=call, text=text):
                    self.assertNotIn(self.call(call)["outcome"], ("done", "not-yet"))
                    # Clients are paused before their operations are counted.
                    self.assertEqual(bool(self.tools.keys), call == "drain")

    def test_a_cluster_without_groups_decides_nothing(self):
        self.tools.changed["pg_stat"] = '{"pg_summary": {"num_pg_by_state": []}}'
        self.assertIn("no placement groups", self.text_of("health", "inconclusive"))


class FlagDay(Adapter):
    def test_the_window_leaves_flags_of_the_site(self):
        self.tools.flags = {"noscrub"}
        self.done("cordon")
        self.done("cordon")
        self.assertEqual(sorted(self.tools.flags), OWN_FLAGS)
        self.done("rejoin")
        self.assertEqual(sorted(self.tools.flags), ["nodeep-scrub", "noout", "norebalance", "noscrub"])
        self.done("uncordon")
        self.assertEqual((self.tools.flags, self.tools.keys), ({"noscrub"}, {}))

    def test_a_window_that_closes_while_a_node_opens_one_leaves_no_flags(self):
        """Flags of the window that closes are none of the site, whatever the node asks first."""
        for first in ("osd dump", "config-key dump"):
            with self.subTest(first=first):
                self.tools.flags, self.tools.keys = {"noscrub"}, {}
                self.done("cordon")

                def close():
                    self.tools.flags = {"noscrub"}
                    self.tools.keys.clear()

                other = "config-key dump" if first == "osd dump" else "osd dump"
                self.tools.meanwhile = {other: close}
                self.done("cordon")
                self.assertEqual(sorted(self.tools.flags), OWN_FLAGS)
                self.done("uncordon")
                self.assertEqual((self.tools.flags, self.tools.keys), ({"noscrub"}, {}))

    def test_a_window_that_another_node_opens_or_closes_at_once_keeps_the_flags_of_the_site(self):
        def opened():
            self.tools.flags = set(OWN_FLAGS)
            self.tools.keys["rocegw/migration/c1/flags"] = "[]"

        self.tools.meanwhile = {"osd dump": opened}
        self.done("cordon")
        self.done("uncordon")
        self.assertEqual((self.tools.flags, self.tools.keys), (set(), {}))
        self.done("cordon")
        self.tools.flags.discard("pausewr")
        # The other node removed its flags before, and the key after this one looked at it.
        self.tools.meanwhile = {"osd set": self.tools.keys.clear}
        self.done("drain")
        self.assertIn("pausewr", self.tools.flags)
        self.done("uncordon")
        self.assertEqual((self.tools.flags, self.tools.keys), (set(), {}))

    def test_a_window_that_another_node_opened_before_its_key_was_removed_is_given_back(self):
        """The other node has looked for the key for the last time, and found it. An adapter that is killed before it has looked
        for flags looks when its call comes again."""
        for killed in (False, True):
            with self.subTest(killed=killed):
                self.tools.flags, self.tools.keys = {"noscrub"}, {}
                self.done("cordon")

                def opened():
                    self.tools.flags |= set(OWN_FLAGS)
                    self.tools.meanwhile = {"osd dump": kill} if killed else {}

                def kill():
                    raise OSError("killed")

                self.tools.meanwhile = {"config-key rm": opened}
                if killed:
                    self.text_of("uncordon", "inconclusive")
                self.done("uncordon")
                self.assertEqual(sorted(self.tools.flags), OWN_FLAGS)
                self.assertEqual(self.tools.keys, {"rocegw/migration/c1/flags": '["noscrub"]'})
                self.done("uncordon")
                self.assertEqual((self.tools.flags, self.tools.keys), ({"noscrub"}, {}))

    def test_a_node_without_monitors_and_stores_waits_for_the_quorum_of_the_others(self):
        self.text["scope"] = "all"
        self.text["nodes"][0]["daemons"] = ["mgr.h1"]
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(self.socket_of("mgr.h1"))
        listener.listen(64)
        self.done("cordon")
        self.tools.silent = True
        self.assertIn("the cluster does not answer: [errno 110]", self.text_of("rejoin", "not-yet"))
        self.tools.silent = False
        self.done("rejoin")

    def test_clients_wait_until_all_groups_are_active(self):
        self.done("cordon")
        self.tools.changed["pg_stat"] = '{"pg_summary": {"num_pg_by_state": [{"name": "peering", "num": 3}, {"name": "active+clean", "num": 1}]}}'
        self.assertEqual(self.text_of("rejoin", "not-yet"), "3 of 4 placement groups are not active: peering")
        # A store that does not come back would otherwise count as up for ever.
        self.assertNotIn("nodown", self.tools.flags)
        self.assertIn("pausewr", self.tools.flags)

    def test_a_question_leaves_the_window_as_it_is(self):
        """A person who verifies one node does not let clients go on while the others still change."""
        self.done("cordon")
        flags = set(self.tools.flags)
        self.use_rdma()
        self.tools.log.clear()
        self.assertEqual(self.done("verify", question=True)["stated"], "gateway")
        self.assertEqual((self.tools.flags, self.tools.log), (flags, []))
        self.done("verify")
        self.assertNotIn("pausewr", self.tools.flags)

    def test_a_store_that_is_not_active_is_waited_for(self):
        self.tools.changed["daemon_status"] = '{"state": "booting"}'
        self.assertEqual(self.text_of("rejoin", "not-yet"), "osd.0 is no member yet")
        os.remove(os.path.join(self.folder, "osd.0.asok"))
        self.assertEqual(self.text_of("rejoin", "not-yet"), "osd.0 is no member yet")

    def test_a_store_that_begins_is_no_member_and_serves_nobody(self):
        self.tools.changed = {"daemon_status": NO_COMMAND, "daemon_dump_ops_in_flight": NO_COMMAND}
        self.assertEqual(self.text_of("rejoin", "not-yet"), "osd.0 is no member yet")
        self.assertEqual(self.done("drain")["outstanding"], 0)

    def test_a_lost_node_keeps_the_window_open(self):
        self.done("cordon")
        dump = json.loads(recorded("tcp.osd_dump"))
        dump["osds"][5]["up"] = 0
        self.tools.changed["osd_dump"] = json.dumps(dump)
        self.done("uncordon")
        self.assertIn("noout", self.tools.flags)

    def test_drain_counts_operations(self):
        self.tools.changed["daemon_dump_ops_in_flight"] = '{"ops": [], "num_ops": 3}'
        self.assertEqual(self.done("drain")["outstanding"], 6)
        for daemon in ("osd.0", "osd.1"):
            os.remove(os.path.join(self.folder, daemon + ".asok"))
        self.assertEqual(self.done("drain")["outstanding"], 0)

    def test_a_daemon_that_still_answers_is_not_stopped(self):
        self.assertEqual(self.text_of("stop", "not-yet"), "osd.0 answers still")
        self.assertEqual(self.tools.log, ["systemctl stop ceph-osd@0.service ceph-osd@1.service"])
        for daemon in ("osd.0", "osd.1"):
            os.remove(os.path.join(self.folder, daemon + ".asok"))
        self.done("stop")

    def test_there_and_back_is_byte_identical(self):
        saved = self.done("backup")["config_hash"]
        switched = self.done("switch")["config_hash"]
        self.assertNotEqual(switched, saved)
        self.assertEqual(self.done("switch")["config_hash"], switched)
        for line in ("ms_cluster_type = async+rdma", "ms_async_rdma_device_name = rocegw0", f"ms_async_rdma_local_gid = {GID}",
                     "ms_async_rdma_polling_us = 0"):
            self.assertIn(line + "\n", self.read_conf())
        self.assertEqual(self.done("backup")["config_hash"], saved)
        self.assertEqual(self.done("restore")["config_hash"], saved)
        self.assertEqual(self.read_conf(), CONF)

    def test_back_to_tcp_by_a_migration_of_its_own(self):
        self.done("backup")
        self.done("switch")
        self.assertIn("run over tcp, not over gateway", self.text_of("remove-old", "failed"))
        self.use_rdma()
        self.done("remove-old")
        self.done("backup", before="gateway", after="tcp")
        self.done("switch", before="gateway", after="tcp")
        self.assertEqual(self.read_conf(), CONF)

    def use_rdma(self):
        self.tools.transport = "rdma"

    def test_the_transport_that_daemons_state(self):
        self.assertEqual(self.done("verify-old")["stated"], "tcp")
        self.use_rdma()
        self.assertEqual(self.done("verify")["stated"], "gateway")
        # The file names RDMA, and the daemon was not started since.
        options = json.loads(recorded("rdma.daemon_config_show"))
        self.tools.transport = "tcp"
        self.tools.changed["daemon_config_show"] = json.dumps(options)
        self.assertIn("runs without RDMA", self.text_of("verify", "failed"))
        self.tools.transport = "rdma"
        self.tools.changed["daemon_config_show"] = json.dumps({**options, "ms_async_rdma_device_name": "mlx5_9"})
        self.assertIn("with device mlx5_9", self.text_of("verify", "failed"))

    def test_bytes_of_the_stores_alone_are_counted(self):
        """The recording has connections of monitors and clients, too."""
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        request = {"call": "verify", "node": "h1", "from": "tcp", "to": "gateway", "deadline_seconds": 20}
        of_tcp = ceph.Step(ceph.Cluster("c1"), request).tcp_bytes()
        self.use_rdma()
        of_rdma = ceph.Step(ceph.Cluster("c1"), request).tcp_bytes()
        told = recorded("tcp.ss")
        first = re.sub(r" bytes_(sent|received|acked):\d+", "", told, count=3)
        self.assertNotEqual(told, first)
        with mock.patch.object(self.tools, "run", lambda words: (0, first, "") if words[0] == "ss" else FakeTools.run(self.tools, words)):
            self.tools.transport = "tcp"
            self.assertGreater(ceph.Step(ceph.Cluster("c1"), request).tcp_bytes(), 100000)
        without = re.sub(r" bytes_\w+:\d+", "", told)
        with mock.patch.object(self.tools, "run", lambda words: (0, without, "") if words[0] == "ss" else FakeTools.run(self.tools, words)), \
                self.assertRaisesRegex(Problem, "tcp_diag"):
            ceph.Step(ceph.Cluster("c1"), request).tcp_bytes()
        self.assertGreater(of_tcp, 100000)
        self.assertLess(of_rdma, of_tcp / 10)
        self.assertGreater(of_rdma, 0)


class WayBackOfAFlagDay(Adapter):
    def test_a_way_back_after_clients_were_resumed_pauses_them_again(self):
        for name in ("backup", "cordon", "switch", "rejoin"):
            self.done(name)
        self.assertNotIn("pausewr", self.tools.flags)
        self.done("drain")
        self.assertEqual(sorted(self.tools.flags), OWN_FLAGS)
        for name in ("restore", "rejoin", "verify-old", "uncordon"):
            self.done(name)
        self.assertEqual((self.tools.flags, self.tools.keys), (set(), {}))

    def test_a_cluster_that_does_not_answer_goes_back(self):
        """Monitors do not find each other over the new transport."""
        for name in ("backup", "cordon", "switch"):
            self.done(name)
        self.tools.changed["daemon_dump_ops_in_flight"] = '{"ops": [], "num_ops": 3}'
        self.tools.silent = True
        for name in ("ok-to-stop", "cordon", "drain"):
            with self.subTest(call=name):
                self.assertEqual(self.done(name).get("outstanding", 0), 0)
        for daemon in ("osd.0", "osd.1"):
            os.remove(self.socket_of(daemon))
        for name in ("stop", "restore", "start"):
            self.done(name)
        for name in ("ok-to-stop", "cordon", "drain"):
            with self.subTest(call=name):
                self.assertIn("error connecting to the cluster", self.text_of(name, "failed"))

    def test_a_degraded_cluster_goes_back(self):
        for name in ("backup", "cordon", "switch", "uncordon"):
            self.done(name)
        self.tools.changed["pg_stat"] = '{"pg_summary": {"num_pg_by_state": [{"name": "active+degraded", "num": 3}]}}'
        self.done("ok-to-stop")
        self.done("restore")
        self.assertIn("not clean", self.text_of("ok-to-stop", "not-yet"))


class Units(Adapter):
    def test_a_start_limit_that_was_reached_is_no_obstacle(self):
        """Ceph's units have StartLimitBurst=3 in StartLimitInterval=30min."""
        self.done("start")
        units = "ceph-osd@0.service ceph-osd@1.service"
        self.assertEqual(self.tools.log, ["systemctl daemon-reload", "systemctl reset-failed " + units, "systemctl start " + units])


class Rolling(Adapter):
    """From gateways to RNICs, node by node."""

    between = {"before": "gateway", "after": "rnic"}

    def setUp(self):
        super().setUp()
        self.tools.transport = "rdma"

    def run_on(self, device):
        """The daemons run with that device."""
        options = json.loads(recorded("rdma.daemon_config_show"))
        self.tools.changed["daemon_config_show"] = json.dumps({**options, "ms_async_rdma_device_name": device})

    def test_a_node_leaves_and_comes_back(self):
        for name in ("ok-to-stop", "cordon", "drain", "rejoin", "uncordon"):
            self.done(name, **self.between)
        self.assertEqual(self.tools.log, ["osd set-group noout osd.0 osd.1", "osd set-group noup osd.0 osd.1", "osd down osd.0 osd.1",
                                          "osd unset-group noup osd.0 osd.1", "osd unset-group noup osd.0 osd.1",
                                          "osd unset-group noout osd.0 osd.1"])
        self.assertEqual(self.tools.keys, {})
        self.tools.changed["ok_to_stop"] = '{"ok_to_stop": false}'
        self.assertEqual(self.text_of("ok-to-stop", "not-yet", **self.between), "ceph osd ok-to-stop says no")

    def test_a_refusal_is_asked_again(self):
        status, _, told = recorded("tcp.ok_to_stop_refused").partition("\n")
        self.tools.statuses["ok_to_stop"], self.tools.changed["ok_to_stop"] = int(status), told
        self.assertIn("ceph osd ok-to-stop says no", self.text_of("ok-to-stop", "not-yet", **self.between))
        self.tools.statuses["ok_to_stop"] = 11
        self.text_of("ok-to-stop", "not-yet", **self.between)
        self.tools.statuses["ok_to_stop"] = 22
        self.text_of("ok-to-stop", "failed", **self.between)
        self.tools.statuses = {"mon_ok_to_stop": 16}
        self.tools.changed.clear()
        self.text["scope"] = "all"
        self.assertIn("not enough monitors", self.text_of("ok-to-stop", "not-yet", **self.between))

    def test_the_way_back_from_drain_brings_the_stores_up(self):
        """Undo of a node that had not stopped: verify-old, uncordon."""
        for name in ("backup", "cordon", "drain"):
            self.done(name, **self.between)
        self.tools.changed["daemon_status"] = '{"state": "booting"}'
        self.tools.log.clear()
        self.assertEqual(self.text_of("verify-old", "not-yet", **self.between), "osd.0 is no member yet")
        self.assertEqual(self.tools.log, ["osd unset-group noup osd.0 osd.1"])
        self.assertEqual(self.text_of("uncordon", "not-yet", **self.between), "osd.0 is no member yet")
        self.assertEqual(self.tools.noout, {"osd.0", "osd.1"})
        del self.tools.changed["daemon_status"]
        for name in ("verify-old", "uncordon"):
            self.done(name, **self.between)
        self.assertEqual(self.tools.noout, set())

    def test_a_question_lets_no_store_up(self):
        self.done("drain", **self.between)
        self.tools.log.clear()
        self.done("verify-old", question=True, **self.between)
        self.assertEqual(self.tools.log, [])

    def test_a_noout_of_the_site_stays(self):
        self.tools.noout = {"osd.1", "osd.4"}
        for name in ("cordon", "cordon", "uncordon", "uncordon"):
            self.done(name, **self.between)
        self.assertEqual(self.tools.noout, {"osd.1", "osd.4"})
        self.assertEqual(self.tools.keys, {})

    def test_the_next_node_waits_until_data_are_whole(self):
        self.done("backup", **self.between)
        self.done("switch", **self.between)
        self.tools.changed["pg_stat"] = '{"pg_summary": {"num_pg_by_state": [{"name": "active+undersized+degraded", "num": 3}]}}'
        self.done("rejoin", **self.between)
        self.assertIn("3 of 3 placement groups are not clean", self.text_of("uncordon", "not-yet", **self.between))
        for name in ("restore", "rejoin", "verify-old", "uncordon"):
            self.done(name, **self.between)

    def test_a_store_that_does_not_come_back_keeps_no_other_one_down(self):
        self.done("drain", **self.between)
        os.remove(self.socket_of("osd.0"))
        self.tools.log.clear()
        self.assertEqual(self.text_of("rejoin", "not-yet", **self.between), "osd.0 is no member yet")
        self.assertEqual(self.tools.log, ["osd unset-group noup osd.1"])

    def test_bytes_are_those_of_the_transport_that_the_node_should_use(self):
        """The gateway carries nothing once the stores use the RNIC, and the RNIC nothing before."""
        for name, device, gateway, rnic, counted in (("verify", "mlx5_0", 0, 4096, "rnic"), ("verify", "mlx5_0", 4096, 0, None),
                                                     ("verify-old", "rocegw0", 4096, 0, "gateway"), ("verify-old", "rocegw0", 0, 4096, None)):
            with self.subTest(name=name, gateway=gateway):
                moved = {"gateway": 0, "rnic": 0}

                def count(key, step):
                    moved[key] += step
                    return moved[key]

                self.run_on(device)
                self.text["questions"] = {"exercise": ["true"]}
                with mock.patch.object(byte_counters, "gateway_bytes", lambda _, step=gateway: count("gateway", step)), \
                        mock.patch.object(byte_counters, "rnic_bytes", lambda step=rnic: count("rnic", step)):
                    answered = self.call(name, **self.between)
                self.assertEqual((answered["outcome"], answered.get("counted")), ("done", counted) if counted else ("inconclusive", None), answered)


if __name__ == "__main__":
    unittest.main()
