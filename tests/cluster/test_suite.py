# SPDX-License-Identifier: Apache-2.0
"""The suite itself, against a made-up cluster: what a failure leads to, and that nothing stays behind. No cluster is needed."""

import contextlib
import io
import os
import stat
import subprocess
import tempfile
import unittest

import manifests
import suite
from cases import Cases
from cluster import Cluster, Failed
from fake_cluster import FakeCluster

ARGUMENTS = ["--image", "registry.example.org/rocegw:1", "--namespace", "t", "--release", "r"]


def run(fake, *arguments):
    """(exit status, table)"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = suite.main(ARGUMENTS + list(arguments), fake)
    return status, out.getvalue()


class Suite(unittest.TestCase):

    def test_all_cases_pass_and_nothing_stays(self):
        fake = FakeCluster()
        status, table = run(fake)
        self.assertEqual(status, 0, table)
        self.assertTrue(table.endswith(f"{len(Cases.ORDER)} of {len(Cases.ORDER)} passed\n"), table)
        self.assertEqual(sorted(fake.objects), [("node", "", "n1"), ("node", "", "n2")])
        self.assertFalse(fake.released)

    def test_a_failure_is_told_and_the_others_go_on(self):
        status, table = run(FakeCluster({"thief"}))
        self.assertEqual(status, 1)
        self.assertRegex(table, r"refusal +FAILED +0 +a pod of a foreign namespace has a device")
        self.assertIn(f"{len(Cases.ORDER) - 1} of {len(Cases.ORDER)} passed", table)

    def test_wrong_data_fails(self):
        status, table = run(FakeCluster({"rping"}), "--case", "two_nodes")
        self.assertEqual(status, 1)
        self.assertRegex(table, r"two_nodes +FAILED +0 +data mismatch")

    def test_without_an_installation_the_rest_is_not_run_but_removed(self):
        fake = FakeCluster({"helm install"})
        status, table = run(fake)
        self.assertEqual(status, 1)
        self.assertRegex(table, r"install +FAILED")
        self.assertEqual(table.count("not run"), len(Cases.ORDER) - 1)
        self.assertEqual(sorted(fake.objects), [("node", "", "n1"), ("node", "", "n2")])

    def test_an_upgrade_that_ends_a_running_program_fails(self):
        status, table = run(FakeCluster({"gateway ends traffic"}), "--case", "upgrade")
        self.assertEqual(status, 1)
        self.assertRegex(table, r"upgrade +FAILED +0 +the running program ended")

    def test_what_helm_leaves_is_found(self):
        status, table = run(FakeCluster({"leftover"}), "--case", "uninstall")
        self.assertEqual(status, 1)
        self.assertIn("helm uninstall left clusterroles/left", table)

    def test_a_deletion_tells_what_the_running_program_saw(self):
        _, table = run(FakeCluster(), "--case", "delete_gateway", "--case", "delete_agent")
        self.assertRegex(table, r"delete_gateway +passed .*ended after 0 s \(cma event RDMA_CM_EVENT_DISCONNECTED, exit status 255\)")
        self.assertRegex(table, r"delete_agent +passed .*noticed nothing, the same pods talked again after 0 s")

    def test_a_program_that_ends_with_the_agent_is_a_failure(self):
        status, table = run(FakeCluster({"agent ends traffic"}), "--case", "delete_agent")
        self.assertEqual(status, 1)
        self.assertRegex(table, r"delete_agent +FAILED .*the running program ended: cma event")

    def test_what_stays_on_nodes_is_found(self):
        status, table = run(FakeCluster({"directories"}), "--case", "directories")
        self.assertEqual(status, 1)
        self.assertRegex(table, r"directories +FAILED .*the nodes still have var/lib/rocegw-agent")

    def test_a_single_case_brings_what_it_needs(self):
        _, table = run(FakeCluster(), "--case", "restricted")
        self.assertEqual([line.split()[0] for line in table.splitlines()[1:-1]], ["install", "join", "pool", "restricted"])

    def test_keep_leaves_the_release(self):
        fake = FakeCluster()
        run(fake, "--case", "pool", "--keep")
        self.assertTrue(fake.released)

    def test_all_that_is_applied_is_marked_and_in_the_suites_namespaces(self):
        fake = FakeCluster()
        seen = []
        apply = fake.apply

        def spy(*objects):
            seen.extend(objects)
            apply(*objects)

        fake.apply = spy
        run(fake)
        self.assertGreater(len(seen), 20)
        for one in seen:
            self.assertEqual(one["metadata"]["labels"][Cluster.LABEL], "true")
            if one["kind"] != "Namespace":
                self.assertIn(one["metadata"]["namespace"], ("t", "t-pods", "t-pods-foreign"))

    def test_pods_are_restricted(self):
        spec = manifests.pod_spec("image", ["a.b"])
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])
        self.assertEqual(spec["containers"][0]["securityContext"]["capabilities"], {"drop": ["ALL"]})

    def test_wrong_usage(self):
        for wrong in ([], ["--image", "registry.example.org:5000/rocegw"], ARGUMENTS + ["--case", "bogus"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                suite.main(wrong, FakeCluster())


class Calls(unittest.TestCase):
    """Cluster with programs of the test's in the places of kubectl and helm."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.program = os.path.join(place.name, "kubectl")
        self.cluster = Cluster(self.program, self.program, poll_seconds=0.01)

    def write(self, script):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(self.program, os.stat(self.program).st_mode | stat.S_IXUSR)

    def test_a_failed_call_says_why(self):
        self.write("echo 'pods is forbidden' >&2; exit 1")
        with self.assertRaisesRegex(Failed, "pods is forbidden"):
            self.cluster.items("pods")

    def test_a_call_without_an_end_is_ended(self):
        self.write("exec tail -f /dev/null")
        with self.assertRaisesRegex(Failed, "no end within 1 s"):
            self.cluster.kubectl("get", "pods", seconds=1)

    def test_waiting_ends_and_names_the_last_error(self):
        self.write("echo refused >&2; exit 1")
        with self.assertRaisesRegex(Failed, "pod is there: not within 0.2 s .*refused"):
            self.cluster.wait("pod is there", lambda: self.cluster.items("pods"), 0.2)

    def test_an_object_that_is_taken_was_not_refused(self):
        self.write("exit 0")
        with self.assertRaisesRegex(Failed, "takes what it should refuse"):
            self.cluster.refused({"kind": "Pod"})

    def test_the_launcher_shows_its_usage(self):
        launcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
        shown = subprocess.run([launcher, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("--image", shown)


if __name__ == "__main__":
    unittest.main()
