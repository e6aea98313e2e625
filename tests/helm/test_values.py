# SPDX-License-Identifier: Apache-2.0
"""Values: what is refused and how, and that schema, defaults and table say the same."""

import json
import os
import subprocess
import unittest

import yaml

import chart

IMAGE = ("--set", "image.repository=registry.example.org/rocegw")
ETCD = ("--set", "controller.store=etcd,controller.etcd.endpoints={e:2379}")
DRA = ("--set", "agent.dra.enabled=true,agent.devicePlugin.cdiDir=/var/run/cdi")


class Refusals(unittest.TestCase):

    def refused(self, why, *arguments, knows=()):
        with self.assertRaisesRegex(chart.Refused, why):
            chart.template(*IMAGE, *arguments, knows=knows)

    def test_unknown_keys_at_every_level(self):
        for path in ("bogus", "image.bogus", "gateway.bogus", "gateway.metrics.bogus", "gateway.capabilities.bogus",
                     "gateway.resources.bogus", "agent.join.bogus", "controller.authority.certManager.bogus",
                     "controller.persistence.bogus", "controller.donors.bogus", "monitoring.bogus", "agent.updateStrategy.bogus"):
            with self.subTest(path):
                self.refused("Additional property bogus is not allowed", "--set", f"{path}=1")

    def test_what_a_parent_chart_shares_is_no_unknown_key(self):
        chart.template(*IMAGE, "--set", "global.anything=1")

    def test_wrong_values(self):
        for setting in ("controller.store=oracle", "gateway.metrics.port=0", "gateway.metrics.port=70000", "controller.replicas=1",
                        "gateway.hugepages.size=4Mi", "image.digest=sha256:12", "image.pullPolicy=Often",
                        "gateway.runtimeDir=run", "gateway.updateStrategy.type=Recreate", "gateway.updateStrategy.rollingUpdate.maxSurge=0", "agent.updateStrategy.type=", "controller.persistence.size=big",
                        "controller.persistence.accessMode=ReadWriteMany", "gateway.ports[0].mode=pci", "trustDomain=Fleet_1",
                        "controller.etcd.endpoints={https://e:2379}", "agent.attachRules[0].uids={1}", "gateway.ports=null",
                        "image.repository=registry.example.org/rocegw:latest", "monitoring.interval=often",
                        "controller.donors.approvedGateways={Node_1}", "controller.donors.approvedGateways=*", "agent.dra.pools={train}", "agent.dra.pools={}", "agent.dra.deviceClass=A_b"):
            with self.subTest(setting):
                self.refused("schema", "--set", setting)

    def test_keys_of_configurations_that_are_the_charts(self):
        for setting in ("gateway.config.metrics.address=0.0.0.0:1", "gateway.config.name=a", "gateway.config.runtime_dir=/tmp",
                        "agent.config.join_file=/x", "agent.config.state_dir=/x", "controller.config.trust_domain=x",
                        "controller.config.admin_socket=/x", "controller.config.replica_address=x:1",
                        "controller.config.donors.approved_gateways={a}"):
            with self.subTest(setting):
                self.refused("Must not validate the schema", "--set", setting)

    def test_a_mode_without_quotes_would_become_another_number(self):
        self.refused("attach_socket.mode: Invalid type", "--set-json", 'gateway.config={"attach_socket":{"mode":432}}')

    def test_admission_policies_need_a_newer_cluster(self):
        with self.assertRaisesRegex(chart.Refused, "needs Kubernetes 1.30"):
            chart.template(*IMAGE, "--set", "admissionPolicy.enabled=true", kubernetes="1.29.0")

    def test_claims_need_cdi_and_a_newer_cluster(self):
        self.refused("needs agent.devicePlugin.enabled and agent.devicePlugin.cdiDir", "--set", "agent.dra.enabled=true")
        with self.assertRaisesRegex(chart.Refused, "needs Kubernetes 1.34"):
            chart.template(*IMAGE, *DRA, kubernetes="1.33.0")

    def test_an_image_is_needed(self):
        with self.assertRaisesRegex(chart.Refused, "image.repository is needed"):
            chart.template()

    def test_several_controllers_need_one_authority_and_etcd(self):
        self.refused("needs controller.etcd.endpoints", "--set", "controller.store=etcd")
        self.refused("needs one authority", *ETCD)
        self.refused("no cert-manager", *ETCD, "--set", "controller.authority.certManager.enabled=true")
        chart.template(*IMAGE, *ETCD, "--set", "controller.authority.secretName=s")
        chart.template(*IMAGE, *ETCD, "--set", "controller.authority.certManager.enabled=true", knows=chart.CERT_MANAGER)


class Agreement(unittest.TestCase):

    def setUp(self):
        with open(os.path.join(chart.CHART, "values.yaml"), encoding="utf-8") as file:
            self.values = yaml.safe_load(file)
        with open(os.path.join(chart.CHART, "values.schema.json"), encoding="utf-8") as file:
            self.schema = json.load(file)

    def test_schema_and_defaults_have_the_same_keys(self):
        def compare(path, schema, values):
            properties = schema.get("properties")
            if schema.get("additionalProperties") is not False or properties is None:
                return
            self.assertEqual(set(properties) - {"global"}, set(values), path)
            for key, value in values.items():
                if isinstance(value, dict):
                    compare(f"{path}.{key}", properties[key], value)

        compare("", self.schema, self.values)

    def test_every_object_of_the_schema_says_what_it_takes(self):
        def walk(path, schema):
            if isinstance(schema, dict):
                if "properties" in schema and "additionalProperties" not in schema:
                    self.assertTrue(path.endswith((".config", ".gatewayPort")) or ".config." in path, f"{path} takes anything")
                for key, value in schema.items():
                    walk(f"{path}.{key}", value)

        walk("", self.schema)

    def test_table_of_values_is_current(self):
        subprocess.run([os.path.join(chart.ROOT, "scripts", "update_chart_doc"), "--check"], check=True)

    def test_version_is_that_of_the_programs(self):
        with open(os.path.join(chart.CHART, "Chart.yaml"), encoding="utf-8") as file:
            version = yaml.safe_load(file)["appVersion"]
        with open(os.path.join(chart.ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            self.assertIn(f"project(rocegw VERSION {version} ", file.read())


if __name__ == "__main__":
    unittest.main()
