# SPDX-License-Identifier: Apache-2.0
"""The Job of examples/kubernetes/apply-job.yaml without a cluster: its command, its documents and its configuration, against a
controller on this host, with the certificate that docs/operate/kubernetes.md makes for it."""

import os
import socket
import subprocess
import tempfile
import time
import unittest

import yaml

import chart

EXAMPLE = os.path.join(chart.ROOT, "examples", "kubernetes", "apply-job.yaml")
DEADLINE_SECONDS = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class ApplyJob(unittest.TestCase):

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.address = f"127.0.0.1:{free_port()}"
        self.config = self.write("controller.yaml", yaml.safe_dump(
            {"state_dir": self.path("state"), "address": self.address, "metrics": {"address": ""}}))
        self.log = open(self.path("log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(self.log.close)
        self.start()
        with open(EXAMPLE, encoding="utf-8") as file:
            self.config_map, self.job = yaml.safe_load_all(file)

    def path(self, *names):
        return os.path.join(self.place, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def program(self, name, *arguments, **variables):
        return subprocess.run([os.path.join(os.environ["ROCEGW_BINARIES"], name), *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_SECONDS, check=False,
                              env={**os.environ, **variables})

    def start(self):
        command = [os.path.join(os.environ["ROCEGW_BINARIES"], "rocegw-controller"), "--config", self.config]
        controller = subprocess.Popen(command, stdout=self.log, stderr=self.log)  # pylint: disable=consider-using-with
        self.addCleanup(controller.wait)
        self.addCleanup(controller.terminate)
        end = time.monotonic() + DEADLINE_SECONDS
        while self.administrator("get", "tenants").returncode != 0:
            self.assertLess(time.monotonic(), end, "the controller does not start")
            self.assertIsNone(controller.poll())

    def administrator(self, *arguments):
        return self.program("rocegwctl", *arguments, ROCEGW_CONTROLLER=f"unix:{self.path('state', 'admin.sock')}", ROCEGW_CONFIG="/none")

    def mount(self):
        """What kubelet mounts into the Job's pod, with paths and address of this host."""
        made = self.program("rocegw-controller", "--config", self.config, "user-certificate", "gitops", "--out", self.path("gitops"))
        self.assertEqual(made.returncode, 0, made.stdout)
        os.mkdir(self.path("user"))
        for file, key in (("ca.crt", "ca.crt"), ("gitops.crt", "tls.crt"), ("gitops.key", "tls.key")):
            os.rename(self.path("gitops", file), self.path("user", key))
        os.mkdir(self.path("objects"))
        for name, text in self.config_map["data"].items():
            replaced = text.replace("rocegw-controller.rocegw.svc:7471", self.address).replace("/etc/rocegw-user", self.path("user"))
            self.write(os.path.join("objects", name), replaced)

    def run_job(self, without=None):
        (container,) = self.job["spec"]["template"]["spec"]["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        self.assertEqual(mounts, {"objects": "/etc/rocegw-objects", "user": "/etc/rocegw-user"})
        program, *arguments = [word.replace("/etc/rocegw-objects", self.path("objects")) for word in container["command"]
                               if word != without]
        variables = {one["name"]: one["value"].replace("/etc/rocegw-objects", self.path("objects")) for one in container["env"]}
        return self.program(program, *arguments, **variables)

    def test_makes_the_objects_with_the_role_that_the_page_gives_it(self):
        self.mount()
        refused = self.run_job()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("spiffe://rocegw/user/gitops", refused.stdout)
        with open(os.path.join(chart.ROOT, "docs", "operate", "kubernetes.md"), encoding="utf-8") as file:
            (line,) = [line for line in file if "create rolebinding gitops" in line]
        bound = self.administrator(*line.split("rocegwctl ")[1].split())
        self.assertEqual(bound.returncode, 0, bound.stdout)
        first = self.run_job()
        self.assertEqual(first.returncode, 0, first.stdout)
        pool = yaml.safe_load(self.administrator("get", "pool", "red/train", "-o", "yaml").stdout)
        self.assertEqual(pool["spec"]["slots"], 16)
        again = self.run_job()
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertNotIn("created", again.stdout)
        self.assertNotIn("changed", again.stdout.replace("unchanged", ""))

    def test_less_suffices_where_the_tenant_is_there(self):
        self.mount()
        tenant, pool = list(yaml.safe_load_all(self.config_map["data"]["objects.yaml"]))
        done = self.administrator("create", "tenant", tenant["name"].split("/")[1])
        self.assertEqual(done.returncode, 0, done.stdout)
        for slots, role in ((3, ["role=operator"]), (4, ["role=tenant_admin", "tenant=tenants/red"])):
            done = self.administrator("create", "rolebinding", "gitops", "subject=spiffe://rocegw/user/gitops", *role)
            self.assertEqual(done.returncode, 0, done.stdout)
            pool["spec"]["slots"] = slots
            self.write(os.path.join("objects", "objects.yaml"), yaml.safe_dump(pool))
            done = self.run_job(without="--wait" if "tenant_admin" in role[0] else None)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.administrator("delete", "rolebinding", "gitops")


if __name__ == "__main__":
    unittest.main()
