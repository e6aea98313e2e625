#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter ceph: inventory, health, units, and object stores that change one host after the other (fake_ceph.py)."""

import json
import os
import socket
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from fake_ceph import Adapter, recorded  # noqa: E402
from rocegw_adapter import byte_counters, ceph_cluster  # noqa: E402


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

    def test_units_that_the_library_will_not_reach_block_the_node(self):
        self.tools.unit = self.tools.unit.replace("LD_PRELOAD", "LD_DEBUG")
        self.assertEqual(self.text_of("health", "failed"), "ceph-osd@0.service will have no LD_PRELOAD with librocegw-verbs.so: neither "
                         "its environment nor its command has it")
        # The drop-in file of the template, which the migration will write.
        source = os.path.join(self.folder, "preload.conf")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f"[Service]\nEnvironment=LD_PRELOAD={self.library}\n")
        self.text["files"] = [{"path": "/etc/systemd/system/ceph-osd@.service.d/rocegw.conf", "tcp": "/nowhere", "gateway": source}]
        self.done("health")
        # RNICs need no library, and a site that starts daemons itself has no units.
        del self.text["files"]
        self.done("health", before="tcp", after="rnic")
        self.text["commands"] = {"start": ["true"]}
        self.done("health")

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
