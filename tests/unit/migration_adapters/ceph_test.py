#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter ceph before answers of Ceph 16.2.15 that tests/interop/ceph_messenger recorded: six object stores on three hosts,
over TCP and over RDMA. Of the daemons' options and counters only those of the messenger are kept. The fake cluster carries out
flags and keys."""

import json
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import ceph  # noqa: E402
from rocegw_adapter import byte_counters  # noqa: E402
from rocegw_adapter.protocol import answer  # noqa: E402

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

    def run(self, words):
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
        return 0, self.changed[name] if name in self.changed else recorded(f"{self.transport}.{name}"), ""

    def daemon(self, words):
        return (0, "{}", "") if words == ["version"] else self.answered("daemon_" + "_".join(words))

    def ceph(self, words):
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
                text = json.dumps({**json.loads(text), "flags_set": sorted(self.flags)})
            return status, text, error
        elif words[:2] == ["osd", "ok-to-stop"]:
            return self.answered("ok_to_stop")
        elif words[0] == "osd":
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
            with open(os.path.join(self.folder, daemon + ".asok"), "w", encoding="utf-8"):
                pass
        self.text: dict = {"scope": "cluster", "conf": self.conf, "admin_socket": os.path.join(self.folder, "{daemon}.asok"),
                           "options": {"ms_async_rdma_polling_us": "0"}, "nodes": [self.node(number) for number in (1, 2, 3)]}

    @staticmethod
    def node(number):
        return {"name": f"h{number}", "transport": "tcp", "domains": {"rack": f"r{number}"}, "gateway": True,
                "daemons": [f"mon.h{number}", f"osd.{number * 2 - 2}", f"osd.{number * 2 - 1}"],
                "rdma": {"gateway": {"device": "rocegw0", "gid": GID}, "rnic": {"device": "mlx5_0", "gid": GID}}}

    def call(self, name, before="tcp", after="gateway"):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(self.text, file)
        return answer("ceph", ceph.RESTART_CALLS, ceph.Cluster,
                      {"protocol": 1, "id": "1", "call": name, "cluster": "c1", "node": "h1", "from": before, "to": after,
                       "deadline_seconds": 20})

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

    def test_output_that_is_not_understood_stops_the_step(self):
        """Failure case 32: each tool, with no JSON, other JSON, and a value of another kind."""
        for tool, call in (("osd_dump", "health"), ("quorum_status", "health"), ("pg_stat", "health"), ("config_dump", "health"),
                           ("osd_dump", "cordon"), ("pg_stat", "rejoin"), ("daemon_status", "rejoin"),
                           ("daemon_dump_ops_in_flight", "drain"), ("daemon_config_show", "verify"), ("daemon_perf_dump", "verify")):
            for text in ("", "Error EINVAL", "[7]", "null", '{"osds": [{"osd": "0"}], "num_ops": "none", "pg_summary": {}}'):
                self.tools.changed = {tool: text}
                with self.subTest(tool=tool, call=call, text=text):
                    self.assertNotIn(self.call(call)["outcome"], ("done", "not-yet"))
                    self.assertEqual(self.tools.keys, {})

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

    def test_clients_wait_until_all_groups_are_active(self):
        self.done("cordon")
        self.tools.changed["pg_stat"] = '{"pg_summary": {"num_pg_by_state": [{"name": "peering", "num": 3}, {"name": "active+clean", "num": 1}]}}'
        self.assertEqual(self.text_of("rejoin", "not-yet"), "3 of 4 placement groups are not active: peering")
        # A store that does not come back would otherwise count as up for ever.
        self.assertNotIn("nodown", self.tools.flags)
        self.assertIn("pausewr", self.tools.flags)

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
        self.assertGreater(of_tcp, 100000)
        self.assertLess(of_rdma, of_tcp / 10)
        self.assertGreater(of_rdma, 0)


class Rolling(Adapter):
    """From gateways to RNICs, node by node."""

    def test_a_node_leaves_and_comes_back(self):
        between = {"before": "gateway", "after": "rnic"}
        self.tools.transport = "rdma"
        for name in ("ok-to-stop", "cordon", "drain", "rejoin", "uncordon"):
            self.done(name, **between)
        self.assertEqual(self.tools.log, ["osd set-group noout osd.0 osd.1", "osd set-group noup osd.0 osd.1", "osd down osd.0 osd.1",
                                          "osd unset-group noup osd.0 osd.1", "osd unset-group noout osd.0 osd.1"])
        self.tools.changed["ok_to_stop"] = '{"ok_to_stop": false}'
        self.assertEqual(self.text_of("ok-to-stop", "not-yet", **between), "ceph osd ok-to-stop says no")


if __name__ == "__main__":
    unittest.main()
