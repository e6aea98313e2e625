#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter nvmeof: what nvme-cli 2.3, ss and rdma of Debian 12 printed (recorded/, by tests/interop/nvme_paths/run.py
--record), output that is not understood, and SPDK's target by a fake of its JSON-RPC."""

import json
import os
import shutil
import sys
import tempfile
import unittest
import warnings

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

import nvmeof  # noqa: E402
from fake_spdk import NQN, FakeSpdk  # noqa: E402
from rocegw_adapter.addresses import described  # noqa: E402
from rocegw_adapter import nvmet  # noqa: E402
from rocegw_adapter.nvme_host import NvmeHost  # noqa: E402
from rocegw_adapter.protocol import DUAL_PATH_CALLS, Problem, answer  # noqa: E402

TCP = {"trtype": "tcp", "adrfam": "ipv4", "traddr": "10.77.0.1", "trsvcid": "4420"}
RDMA = {**TCP, "trtype": "rdma"}
RECORDED_NQN = "nqn.2026-11.com.example:disks"


def recorded(name):
    with open(os.path.join(HERE, "recorded", name), encoding="utf-8") as file:
        return file.read()


class Tools:
    """Stands for a call: answers commands from a table, by their first words."""

    def __init__(self, **outputs):
        self.outputs = outputs

    def must(self, words, what):
        text = self.outputs["_".join(word.strip("-") for word in words[:2])]
        return text(words) if callable(text) else text

    def must_json(self, words, what):
        return json.loads(self.must(words, what))


def host_of(stage, **other):
    tools = Tools(nvme_list_subsys=None)
    outputs = {"nvme_list-subsys": lambda words: recorded(f"{stage}.list_subsys" + ("_device" if len(words) == 5 else "")),
               "ls_/sys/class/nvme-subsystem/nvme-subsys0": recorded(f"{stage}.sysfs_subsystem")}
    tools.outputs = {**outputs, **other}
    return NvmeHost(tools, RECORDED_NQN, {"name": "host"})


class Host(unittest.TestCase):
    def outcome(self, call):
        with self.assertRaises(Problem) as raised:
            call()
        return raised.exception.outcome, str(raised.exception)

    def test_one_path_before(self):
        paths = host_of("tcp_only").paths()
        self.assertEqual([(path.controller, path.transport, path.state, path.ana_state) for path in paths],
                         [("nvme0", "tcp", "live", "optimized")])
        self.assertTrue(paths[0].leads_to(TCP))
        self.assertFalse(paths[0].leads_to(RDMA))

    def test_both_paths_after_the_flip(self):
        host = host_of("both_paths")
        host.expect((RDMA, "optimized"))
        host.expect((TCP, "non-optimized"))
        self.assertEqual(self.outcome(lambda: host.expect((RDMA, "inaccessible")))[0], "not-yet")

    def test_the_old_path_is_gone(self):
        host = host_of("rdma_only")
        host.expect((RDMA, "optimized"))
        self.assertEqual(self.outcome(lambda: host.expect((TCP, "optimized"))), ("not-yet", "host has no path to tcp 10.77.0.1:4420"))

    def test_a_path_that_reconnects_is_no_path_yet(self):
        text = recorded("both_paths.list_subsys").replace('"State":"live"', '"State":"connecting"')
        host = host_of("both_paths", **{"nvme_list-subsys": text})
        self.assertEqual(self.outcome(lambda: host.expect((RDMA, "optimized"))),
                         ("not-yet", "host: the path to rdma 10.77.0.1:4420 is connecting"))

    def test_in_flight(self):
        host = host_of("both_paths", **{"cat_/sys/block/nvme0c0n1/inflight": "       3        4\n",
                                        "cat_/sys/block/nvme0c1n1/inflight": "       0        0\n"})
        self.assertEqual([host.inflight(TCP) + host.inflight(RDMA)], [7])

    def test_the_format_of_nvme_cli_1_stops_the_step(self):
        host = host_of("both_paths", **{"nvme_list-subsys": '{"Subsystems": [{"Name": "nvme-subsys0", "NQN": "x"}]}'})
        self.assertEqual(self.outcome(host.paths)[0], "inconclusive")

    def test_names_from_a_host_are_no_words_of_commands(self):
        text = recorded("both_paths.list_subsys").replace("nvme-subsys0", "nvme-subsys0 -o /etc/passwd")
        self.assertEqual(self.outcome(host_of("both_paths", **{"nvme_list-subsys": text}).paths)[0], "inconclusive")
        text = recorded("both_paths.list_subsys").replace('"nvme1"', '"--all"')
        self.assertEqual(self.outcome(host_of("both_paths", **{"nvme_list-subsys": text}).paths)[0], "inconclusive")


class Sockets(unittest.TestCase):
    def test_bytes_and_peers(self):
        self.assertEqual(nvmet.tcp_bytes(Tools(**{"ss_HtinO": recorded("tcp_only.ss_bytes")}), TCP), BYTES_OF_RECORDING)
        self.assertEqual(nvmet.tcp_peers(Tools(**{"ss_Htn": recorded("tcp_only.ss_peers")}), TCP), 1)
        self.assertEqual(nvmet.tcp_peers(Tools(**{"ss_Htn": recorded("rdma_only.ss_peers")}), TCP), 0)

    def test_other_addresses_of_the_port_are_not_counted(self):
        """Portals of other subsystems use the same port number."""
        text = recorded("tcp_only.ss_bytes")
        both = Tools(**{"ss_HtinO": text + text.replace("10.77.0.1:4420", "10.77.1.1:4420")})
        self.assertEqual(nvmet.tcp_bytes(both, TCP), BYTES_OF_RECORDING)
        self.assertEqual(nvmet.tcp_bytes(both, {**TCP, "traddr": "10.77.2.1"}), 0)

    def test_an_ipv6_address_is_recognized_however_it_is_written(self):
        """A path in use must not look unused because a tool writes its address in another way than the description."""
        tcp = {"trtype": "tcp", "trsvcid": "4420", **described({"traddr": "FD77:0::1"}, "t1")}
        rdma = {**tcp, "trtype": "rdma"}
        self.assertEqual((tcp["traddr"], tcp["adrfam"]), ("fd77::1", "ipv6"))
        peers = "0 0 [fd77::1]:4420 [fd77::2]:55064\n0 0 [fd77::1]:4420 [fd77::2]:55070\n0 0 [fd77::9]:4420 [fd77::3]:1\n"
        self.assertEqual(nvmet.tcp_peers(Tools(ss_Htn=peers), tcp), 1)
        self.assertEqual(nvmet.tcp_peers(Tools(ss_Htn="0 0 [::ffff:10.77.0.1]:4420 [::ffff:10.77.0.2]:1\n"), TCP), 1)
        target = object.__new__(nvmet.NvmetTarget)
        for local in ("fd77::1:4420", "[fd77::1]:4420"):
            target.call = Tools(rdma_j=json.dumps([{"state": "CONNECT", "src-addr": local, "dst-addr": "fd77::2:58140"}]))
            self.assertEqual(target.connected(rdma), 1)
        host = host_of("both_paths", **{"nvme_list-subsys": recorded("both_paths.list_subsys").replace("10.77.0.1", "FD77::0:1")})
        self.assertIsNotNone(host.path_to(rdma))

    def test_an_address_that_no_connection_has_is_refused(self):
        for traddr, adrfam in (("0.0.0.0", None), ("::", None), ("::ffff:0.0.0.0", None), ("fe80::1%eth0", None), ("target-1", None),
                               (None, None), ("fd77::1", "ipv4"), ("10.0.0.1", "ipv6")):
            with self.assertRaises(Problem, msg=traddr) as raised:
                described({"traddr": traddr, **({"adrfam": adrfam} if adrfam else {})}, "t1")
            self.assertEqual(raised.exception.outcome, "failed")

    def test_without_tcp_diag_nothing_is_guessed(self):
        line = "0 0 10.77.0.1:4420 10.77.0.2:48040 rto:0.22 ato:0.04 qack:13 bidir cwnd:10 reordering:0\n"
        with self.assertRaises(Problem) as raised:
            nvmet.tcp_bytes(Tools(**{"ss_HtinO": line}), TCP)
        self.assertEqual(raised.exception.outcome, "inconclusive")

    def test_hosts_of_an_rdma_port(self):
        target = object.__new__(nvmet.NvmetTarget)
        target.call = Tools(**{"rdma_j": recorded("rdma_only.rdma_cm_id")})
        self.assertEqual(target.connected(RDMA), 1)
        self.assertEqual(target.connected({**RDMA, "trsvcid": "4421"}), 0)


class Spdk(unittest.TestCase):
    """All steps of a migration with SPDK's target, and back."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-spdk-")
        self.addCleanup(shutil.rmtree, self.folder)
        nvmeof.DESCRIPTIONS = self.folder
        nvmeof.STATE = os.path.join(self.folder, "state")
        self.peers = ""
        warnings.simplefilter("ignore", ResourceWarning)
        run = nvmeof.Step.run
        self.addCleanup(setattr, nvmeof.Step, "run", run)
        nvmeof.Step.run = lambda _, words, given=None: self.run_words(words)
        self.spdk = None

    def run_words(self, words):
        """Commands of the adapter, without processes."""
        if words[0] == "ss":
            return 0, self.peers, ""
        output = self.spdk.host(words[1:]) if words[0] == "on-host" else ""
        return (1, "", "no such command") if output is None else (0, output, "")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def target(self, **shape):
        socket_path = os.path.join(self.folder, "spdk.sock")
        target = FakeSpdk(socket_path, **shape)
        self.addCleanup(target.close)
        target.nvmf_subsystem_add_listener(NQN, {"trtype": "TCP", "adrfam": "IPv4", "traddr": "10.0.0.1", "trsvcid": "4420"})
        target.connections["tcp", "10.0.0.1", "4420"] = 0
        self.spdk = target
        host = ["on-host"]
        self.write("disks.json", json.dumps({
            "subsystem": NQN, "target": "spdk", "rpc_socket": socket_path,
            "nodes": [{"name": "t1", "transport": "tcp", "paths": {"tcp": {"traddr": "10.0.0.1"}, "gateway": {"traddr": "10.0.0.1"}}}],
            "hosts": [{"name": "h1", "run": host}],
            "questions": {"exercise": [*host, "dd"], "journal": ["true"], "bytes": [*host, "bytes"]}}))
        return target

    def forget(self, target):
        target.close()
        os.remove(os.path.join(self.folder, "spdk.sock"))

    def call(self, name):
        return answer("nvmeof", DUAL_PATH_CALLS, nvmeof.Cluster,
                      {"protocol": 1, "id": "1", "call": name, "cluster": "disks", "node": "t1", "from": "tcp", "to": "gateway",
                       "deadline_seconds": 20})

    def done(self, *names):
        for name in names:
            answered = self.call(name)
            self.assertEqual(answered["outcome"], "done", f"{name}: {answered}")
        return answered

    def test_there_and_back(self):
        for shape in ({}, {"groups": 0}, {"new": False}):
            with self.subTest(shape):
                target = self.target(**shape)
                before = self.done("health", "backup")
                self.done("ok-to-stop", "add-path", "add-path")
                self.assertEqual([each["ana"] for each in target.listeners], ["optimized", "inaccessible"])
                self.done("verify-path", "switch", "switch")
                self.assertEqual([each["ana"] for each in target.listeners], ["non_optimized", "optimized"])
                self.assertEqual(self.done("drain")["outstanding"], 0)
                verified = self.done("verify")
                self.assertEqual((verified["stated"], verified["counted"], verified["journal_intact"]), ("gateway", "gateway", True))
                # A backup that is sent again is the one from before the change.
                self.assertEqual(self.done("backup"), before)
                self.done("switch-back", "drain-new", "remove-new", "remove-new")
                self.assertEqual(self.done("restore", "restore")["config_hash"], before["config_hash"])
                verified = self.done("verify-old")
                self.assertEqual((verified["stated"], verified["counted"]), ("tcp", "tcp"))
                self.assertEqual(list(target.connections), [("tcp", "10.0.0.1", "4420")])
                self.forget(target)

    def migrated(self):
        target = self.target()
        self.done("health", "backup", "ok-to-stop", "add-path", "verify-path", "switch", "drain", "verify")
        return target

    def test_the_old_path_goes_when_no_host_uses_it(self):
        target = self.migrated()
        self.assertEqual(self.done("remove-old")["clients_on_old"], 0)
        self.assertEqual([each["address"]["trtype"] for each in target.listeners], ["RDMA"])
        self.assertEqual(self.done("remove-old")["clients_on_old"], 0)

    def test_the_target_is_saved_when_the_first_try_did_not(self):
        """An adapter that is killed after the listener is gone: the target must not have it again when it starts."""
        self.migrated()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        self.write("disks.json", json.dumps({**text, "commands": {"save": ["on-host", "save"]}}))
        self.assertEqual(self.call("remove-old")["outcome"], "failed")  # the host has no such command
        self.assertEqual(self.call("remove-old")["outcome"], "failed")
        self.write("disks.json", json.dumps({**text, "commands": {"save": ["on-host", "ls"]}}))
        self.assertEqual(self.done("remove-old")["clients_on_old"], 0)
        self.assertFalse(os.path.exists(os.path.join(nvmeof.STATE, "disks", "t1")))

    def test_a_host_that_nobody_named_keeps_the_old_path(self):
        """Failure case 22: the old path must not be removed while a client uses it."""
        target = self.migrated()
        self.peers = "0 0 10.0.0.1:4420 10.0.0.99:51000\n"
        self.assertEqual(self.done("remove-old")["clients_on_old"], 1)
        self.assertEqual(len(target.listeners), 2)

    def test_the_way_back_does_not_need_the_new_path(self):
        """Failure case: the RNIC dies after the switch. The host reconnects in vain, or the target has lost the listener."""
        for listed in (True, False):
            with self.subTest(listed_for_the_device=listed):
                target = self.migrated()
                target.reconnecting = {"rdma"}
                target.lists_reconnecting = listed
                self.done("switch-back", "drain-new", "remove-new", "restore", "verify-old")
                self.assertEqual([each["ana"] for each in target.listeners], ["optimized"])
                self.forget(target)
        target = self.migrated()
        del target.listeners[1]
        self.done("switch-back", "drain-new", "remove-new", "restore", "verify-old")

    def test_the_way_back_waits_for_hosts_that_still_use_the_new_path(self):
        target = self.migrated()
        target.stale = {"rdma": "optimized"}
        answered = self.call("switch-back")
        self.assertEqual((answered["outcome"], answered["text"]),
                         ("not-yet", "h1: the path to rdma 10.0.0.1:4420 is optimized, not inaccessible"))
        target.stale = {"tcp": "non_optimized"}
        self.assertEqual(self.call("switch-back")["outcome"], "not-yet")

    def test_both_paths_optimized_is_found(self):
        """Failure case 23."""
        target = self.migrated()
        for each in target.listeners:
            each["ana"] = "optimized"
        self.assertEqual(self.call("verify")["text"], "h1: both paths are optimized")

    def test_a_silent_fall_back_is_found(self):
        """Failure case 8: the host prefers RDMA, and the bytes go over TCP."""
        target = self.migrated()
        target.bytes = FallenBack()
        verified = self.done("verify")
        self.assertEqual((verified["stated"], verified["counted"]), ("gateway", "tcp"))

    def test_a_path_that_the_site_made_is_not_taken(self):
        target = self.target()
        target.nvmf_subsystem_add_listener(NQN, {"trtype": "RDMA", "adrfam": "IPv4", "traddr": "10.0.0.1", "trsvcid": "4420"})
        self.done("health", "backup")
        self.assertEqual(self.call("add-path")["text"], "the target had a path rdma 10.0.0.1:4420 before this migration")

    def test_nothing_is_changed_without_a_backup(self):
        target = self.target()
        self.assertEqual(self.call("add-path")["outcome"], "failed")
        self.assertEqual(len(target.listeners), 1)

    def test_a_save_command_that_fails_is_no_backup(self):
        """restore runs it, after the change."""
        self.target()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        self.write("disks.json", json.dumps({**text, "commands": {"save": ["on-host", "save"]}}))
        self.assertIn("save: ", self.call("backup")["text"])
        self.assertEqual(self.call("add-path")["text"], "there is no backup")
        self.write("disks.json", json.dumps({**text, "commands": {"save": ["on-host", "ls"]}}))
        self.done("backup", "add-path")

    def test_a_state_that_cannot_be_restored_is_no_backup(self):
        target = self.target()
        target.others = {2: "inaccessible"}
        self.assertIn("no ANA state that restore could write", self.call("health")["text"])
        self.assertEqual(self.call("backup")["text"],
                         "the old path tcp 10.0.0.1:4420 is mixed: no ANA state that restore could write")
        self.assertEqual(self.call("add-path")["text"], "there is no backup")
        target.others = {}
        self.done("backup")
        target.listeners.clear()
        self.assertIn("is not there", self.call("backup")["text"])

    def test_a_target_that_does_not_answer_fails_the_step(self):
        self.forget(self.target())
        self.assertEqual(self.call("health")["outcome"], "failed")

    def test_the_kernel_target_has_no_gateway(self):
        self.target()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        self.write("disks.json", json.dumps({**text, "target": "linux"}))
        self.assertIn("needs an RNIC", self.call("health")["text"])

    def test_unknown_words_of_the_description_are_refused(self):
        self.target()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        self.write("disks.json", json.dumps({**text, "hostz": []}))
        self.assertIn("hostz", self.call("health")["text"])

    def test_addresses_of_the_description_are_checked(self):
        self.target()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        text["nodes"][0]["paths"]["gateway"]["traddr"] = "0.0.0.0"
        self.write("disks.json", json.dumps(text))
        self.assertIn("t1, gateway: traddr has to be the address of one port", self.call("health")["text"])

    def test_an_nqn_is_no_text_for_a_shell(self):
        """Hosts run commands by ssh, which gives them to a shell."""
        self.target()
        with open(os.path.join(self.folder, "disks.json"), encoding="utf-8") as file:
            text = json.load(file)
        for nqn in ("nqn.x;reboot", "nqn.$(reboot)", "nqn.x/../y", "nqn.x`y`", "nqn.x&y", "uuid.x", "nqn." + "x" * 220):
            self.write("disks.json", json.dumps({**text, "subsystem": nqn}))
            self.assertIn("the subsystem has no NQN", self.call("health")["text"], nqn)


class FallenBack(dict):
    """Counters of a host whose RDMA path carries nothing."""

    def __init__(self):
        super().__init__(tcp=0, rdma=0)

    def __setitem__(self, key, value):
        super().__setitem__("tcp", value)


BYTES_OF_RECORDING = 63024 + 2952 + 61360 + 552408


if __name__ == "__main__":
    unittest.main()
