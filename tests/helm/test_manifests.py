# SPDX-License-Identifier: Apache-2.0
"""Manifests are what Kubernetes takes, their parts fit each other, and the daemons take their configurations."""

import copy
import os
import subprocess
import tempfile
import unittest

import yaml

import chart
import policies
import typed


class Types(unittest.TestCase):

    def test_all_objects_have_the_types_of_kubernetes(self):
        found = [one for _, rendering in chart.matrix() for one in rendering]
        self.assertEqual(typed.complaints(found), [])

    def test_an_admission_policy_too(self):
        found = chart.objects(chart.template("--set", "image.repository=registry.example.org/rocegw,admissionPolicy.enabled=true"))
        policy = chart.named(found, "ValidatingAdmissionPolicy", "rocegw-resources")
        binding = chart.named(found, "ValidatingAdmissionPolicyBinding", "rocegw-resources")
        self.assertEqual(binding["spec"]["policyName"], policy["metadata"]["name"])
        self.assertEqual(typed.complaints([policy, binding]), [])
        for one in policy["spec"]["matchConditions"] + policy["spec"]["variables"] + policy["spec"]["validations"]:
            for opening, closing in ("()", "[]", "{}"):
                self.assertEqual(one["expression"].count(opening), one["expression"].count(closing), one)

    def test_objects_of_the_driver_for_claims_too(self):
        text = chart.template("--set", "image.repository=x,agent.dra.enabled=true,agent.devicePlugin.cdiDir=/var/run/cdi")
        found = chart.objects(text)
        self.assertEqual(policies.complaints(found), [])
        self.assertEqual(typed.complaints([one for one in found if one["kind"] not in ("ConfigMap", "PriorityClass")]), [])
        policy = chart.named(found, "ValidatingAdmissionPolicy", "rocegw-rocegw-slices")
        account = chart.named(found, "ServiceAccount", "rocegw-agent")["metadata"]
        self.assertIn(f"system:serviceaccount:{account['namespace']}:{account['name']}",
                      policy["spec"]["matchConditions"][0]["expression"])
        config = chart.named(found, "ConfigMap", "rocegw-agent")["data"]["rocegw-agent.yaml"]
        done = Configurations().check("rocegw-agent.yaml", config)
        self.assertEqual(done.returncode, 0, done.stdout)
        paths = {mount["mountPath"] for mount in dict(chart.pods(found))["rocegw-agent"]["spec"]["containers"][0]["volumeMounts"]}
        self.assertLessEqual({"/var/lib/kubelet/plugins/rocegw.io", "/var/lib/kubelet/plugins_registry"}, paths)

    def test_objects_of_nodes_that_join_by_themselves_too(self):
        found = chart.objects(chart.template("--set", "image.repository=x,agent.join.automatic=true"))
        self.assertEqual(policies.complaints(found), [])
        self.assertEqual(typed.complaints([one for one in found if one["kind"] != "PriorityClass"]), [])
        self.assertEqual(chart.named(found, "Role", "rocegw-join")["rules"],
                         [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["rocegw-join"], "verbs": ["patch"]}])
        self.assertNotIn("data", chart.named(found, "ConfigMap", "rocegw-join"), "an upgrade would empty it")
        text = chart.named(found, "ConfigMap", "rocegw-controller")["data"]["rocegw-controller.yaml"]
        done = Configurations().check("rocegw-controller.yaml", text)
        self.assertEqual(done.returncode, 0, done.stdout)
        config = yaml.safe_load(text)["kubernetes"]
        account = chart.named(found, "ServiceAccount", "rocegw-agent")["metadata"]
        self.assertEqual(config["agent_account"], f"{account['namespace']}/{account['name']}")
        self.assertEqual(config["join_config_map"], "rocegw/rocegw-join")
        pods = dict(chart.pods(found))
        (token,) = [volume for volume in pods["rocegw-agent"]["spec"]["volumes"] if volume["name"] == "join-token"]
        self.assertEqual(token["projected"]["sources"][0]["serviceAccountToken"]["audience"], config["audience"])
        uses = {container["name"] for container in chart.containers(pods["rocegw-agent"])
                for mount in container["volumeMounts"] if mount["name"] == "join-token"}
        self.assertEqual(uses, {"join"})

    def test_nodes_join_by_themselves_only_when_it_is_asked_for(self):
        for name, found in chart.matrix():
            with self.subTest(name):
                self.assertIsNone(chart.named(found, "ConfigMap", "rocegw-join"))
                self.assertFalse([one for one in found for _, what, _ in policies.rights(one) if what == "tokenreviews"])
        for settings, kubernetes in (("agent.join.automatic=true,controller.enabled=false", "1.34.0"),
                                     ("agent.join.automatic=true", "1.29.0")):
            with self.assertRaisesRegex(chart.Refused, "agent.join.automatic needs"):
                chart.template("--set", "image.repository=x," + settings, kubernetes=kubernetes)

    def test_what_is_wrong_is_found(self):
        found = chart.objects(chart.rendered("etcd", monitoring=True))

        def spoiled(kind, change):
            one = copy.deepcopy(next(one for one in found if one["kind"] == kind))
            change(one)
            return one

        wrong = [spoiled("DaemonSet", lambda one: one["spec"]["template"]["spec"].update(hostPid=True)),
                 spoiled("DaemonSet", lambda one: one["spec"]["template"]["spec"]["containers"][0].update(livenesProbe={})),
                 spoiled("DaemonSet", lambda one: one["spec"].pop("selector")),
                 spoiled("Deployment", lambda one: one["spec"].update(replicas="3")),
                 spoiled("ConfigMap", lambda one: one["metadata"].update(label={})),
                 spoiled("PodMonitor", lambda one: one["spec"].update(podMetricEndpoints=[])),
                 spoiled("ServiceMonitor", lambda one: one["spec"]["endpoints"][0].update(port=7472))]
        told = "\n".join(typed.complaints(wrong))
        for word in ("hostPid", "livenesProbe", "selector", "not assignable to type 'number'", "label", "podMetricEndpoints",
                     "not assignable to type 'string'"):
            self.assertIn(word, told)


class Parts(unittest.TestCase):

    def test_selectors_find_their_pods_and_no_others(self):
        for name, found in chart.matrix():
            labels = {workload: pod["metadata"]["labels"] for workload, pod in chart.pods(found)}
            for one in found:
                selector = one.get("spec", {}).get("selector") if one["kind"] != "Certificate" else None
                if selector is None or one["kind"] == "ServiceMonitor":
                    continue
                wanted = selector if one["kind"] == "Service" else selector["matchLabels"]
                matched = [workload for workload, has in labels.items() if wanted.items() <= has.items()]
                with self.subTest(name, object=one["metadata"]["name"]):
                    self.assertEqual(len(matched), 1)

    def test_service_monitor_finds_one_service(self):
        found = chart.objects(chart.rendered("etcd", monitoring=True))
        wanted = chart.named(found, "ServiceMonitor", "rocegw-controller")["spec"]["selector"]["matchLabels"]
        matched = [one for one in found if one["kind"] == "Service" and wanted.items() <= one["metadata"]["labels"].items()]
        self.assertEqual([one["metadata"]["name"] for one in matched], ["rocegw-controller-pods"])
        self.assertEqual(matched[0]["spec"]["ports"][0]["name"], "metrics")

    def test_what_pods_name_is_there(self):
        for name, found in chart.matrix():
            for workload, pod in chart.pods(found):
                with self.subTest(name, workload=workload):
                    spec = pod["spec"]
                    self.assertIsNotNone(chart.named(found, "ServiceAccount", spec["serviceAccountName"]))
                    if spec["priorityClassName"] not in ("system-node-critical", "system-cluster-critical"):
                        self.assertIsNotNone(chart.named(found, "PriorityClass", spec["priorityClassName"]))
                    volumes = {volume["name"] for volume in spec["volumes"]}
                    volumes |= {"state"} if chart.named(found, "StatefulSet", workload) else set()
                    used = {mount["name"] for one in chart.containers(pod) for mount in one["volumeMounts"]}
                    self.assertEqual(volumes, used)
                    for volume in spec["volumes"]:
                        if "configMap" in volume:
                            self.assertIsNotNone(chart.named(found, "ConfigMap", volume["configMap"]["name"]))

    def test_gateway_and_agent_meet(self):
        for name, found in chart.matrix():
            with self.subTest(name):
                pods = dict(chart.pods(found))
                gateway, agent = pods["rocegw-gateway"], pods["rocegw-agent"]
                self.assertTrue(gateway["spec"]["hostNetwork"] and agent["spec"]["hostNetwork"], "both have the node's name")
                for key in ("nodeSelector", "tolerations", "affinity"):
                    self.assertEqual(gateway["spec"].get(key), agent["spec"].get(key))


class Configurations(unittest.TestCase):
    PROGRAMS = {"rocegwd.yaml": "rocegwd", "rocegw-agent.yaml": "rocegw-agent", "rocegw-controller.yaml": "rocegw-controller"}

    def check(self, file, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as place:
            place.write(text)
            place.flush()
            program = os.path.join(os.environ["ROCEGW_BINARIES"], self.PROGRAMS[file])
            return subprocess.run([program, "--config", place.name, "--check-config"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)

    def test_daemons_take_them(self):
        seen = set()
        for name, found in chart.matrix():
            for one in found:
                for file, text in (one.get("data", {}) if one["kind"] == "ConfigMap" else {}).items():
                    if file in self.PROGRAMS and (file, text) not in seen:
                        seen.add((file, text))
                        done = self.check(file, text)
                        self.assertEqual(done.returncode, 0, f"{name}: {file}: {done.stdout}")
        self.assertEqual({file for file, _ in seen}, set(self.PROGRAMS))

    def test_what_programs_may_use_fits_the_memory_limit_of_the_gateway(self):
        rest = 512 << 20
        for name, found in chart.matrix():
            with self.subTest(name):
                limits = chart.gateway_config(found)["default_pool"]["limits"]
                used = sum(chart.bytes_of(limits[key]) for key in ("segment_bytes", "heap_bytes", "remapped_bytes"))
                (container,) = chart.containers(dict(chart.pods(found))["rocegw-gateway"])
                self.assertLessEqual(used + rest, chart.bytes_of(container["resources"]["limits"]["memory"]))

    def test_a_wrong_key_is_seen_by_the_daemon(self):
        text = chart.template("--set", "image.repository=x,gateway.config.bogus=1")
        config = chart.named(chart.objects(text), "ConfigMap", "rocegw-gateway")["data"]["rocegwd.yaml"]
        done = self.check("rocegwd.yaml", config)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bogus", done.stdout)

    def test_a_pod_starts_its_program_with_its_configuration(self):
        for name, pod in chart.pods(chart.objects(chart.rendered("sqlite"))):
            (container,) = pod["spec"]["containers"]
            (file,) = [file for file, program in self.PROGRAMS.items() if [program] == container["command"]]
            self.assertEqual(container["args"][:2], ["--config", f"/etc/rocegw/{file}"], name)


if __name__ == "__main__":
    unittest.main()
