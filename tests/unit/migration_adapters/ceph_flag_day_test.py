#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter ceph on a flag day, when all object stores change within one window, and on the way back (fake_ceph.py)."""

import json
import os
import re
import socket
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import ceph  # noqa: E402
from fake_ceph import Adapter, CONF, FakeTools, GID, NO_COMMAND, OWN_FLAGS, recorded  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
