# SPDX-License-Identifier: Apache-2.0
"""Policies hold for every example everywhere, and each of them finds what it is for."""

import copy
import unittest

import chart
import policies


class Policies(unittest.TestCase):

    def test_matrix(self):
        for name, found in chart.matrix():
            with self.subTest(name):
                self.assertEqual(policies.complaints(found), [])

    def test_default_mode_has_no_capability(self):
        found = chart.objects(chart.rendered("sqlite"))
        for name, pod in chart.pods(found):
            for container in chart.containers(pod):
                self.assertNotIn("add", container["securityContext"]["capabilities"], f"{name}/{container['name']}")

    def test_each_capability_is_asked_for(self):
        def added(*settings):
            text = chart.template("--set", ",".join(("image.repository=x",) + settings))
            container = dict(chart.pods(chart.objects(text)))["rocegw-gateway"]["spec"]["containers"][0]
            return container["securityContext"]["capabilities"].get("add")

        self.assertEqual(added("gateway.capabilities.crossProcessMemory=true"), ["SYS_PTRACE"])
        self.assertEqual(added("gateway.capabilities.largeReceiveBuffers=true"), ["NET_ADMIN"])
        self.assertEqual(added("gateway.capabilities.socketOwners=true"), ["CHOWN", "DAC_OVERRIDE", "FOWNER"])
        self.assertEqual(added("gateway.ports[0].name=p", "gateway.ports[0].mode=af_packet"), ["NET_ADMIN", "NET_RAW"])
        self.assertEqual(added("gateway.ports[0].name=p", "gateway.ports[0].mode=af_xdp"),
                         ["BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW"])

    def test_who_wants_no_drain_gets_none(self):
        found = chart.objects(chart.template("--set", "image.repository=x,gateway.drainSeconds=0"))
        spec = dict(chart.pods(found))["rocegw-gateway"]["spec"]
        self.assertNotIn("lifecycle", spec["containers"][0])
        self.assertEqual(spec["terminationGracePeriodSeconds"], 30)

    def test_gateways_that_take_over_are_ready_when_they_have_and_list_no_ports(self):
        good = chart.objects(chart.rendered("sqlite"))
        self.assertEqual(policies.complaints(good), [])
        for key, value in (("readinessProbe", {"exec": {"command": ["true"]}}), ("ports", [{"name": "roce", "containerPort": 4791}]),
                           ("livenessProbe", {"httpGet": {"path": "/livez", "port": 7474}})):
            found = copy.deepcopy(good)
            dict(chart.pods(found))["rocegw-gateway"]["spec"]["containers"][0][key] = value
            self.assertNotEqual(policies.complaints(found), [], key)

    def test_policies_find_what_they_are_for(self):
        good = chart.objects(chart.rendered("dpdk"))

        def spoiled(component, change):
            found = copy.deepcopy(good)
            pod = dict(chart.pods(found))[f"rocegw-{component}"]
            change(pod["spec"], pod["spec"]["containers"][0])
            return policies.complaints(found)

        def each(path, value):
            def change(_, container):
                place = container
                for key in path[:-1]:
                    place = place[key]
                if value is None:
                    del place[path[-1]]
                else:
                    place[path[-1]] = value
            return change

        self.assertEqual(policies.complaints(good), [])
        for component, change in (
                ("gateway", each(("securityContext", "privileged"), True)),
                ("gateway", each(("securityContext", "capabilities", "add"), ["SYS_ADMIN"])),
                ("gateway", each(("securityContext", "capabilities", "drop"), ["NET_RAW"])),
                ("gateway", each(("lifecycle",), None)),
                ("gateway", each(("lifecycle", "preStop", "exec", "command"), ["rocegwctl", "--local", "drain", "--wait"])),
                ("gateway", lambda spec, _: spec.update(terminationGracePeriodSeconds=30)),
                ("agent", each(("securityContext", "capabilities", "add"), ["NET_RAW"])),
                ("agent", each(("securityContext", "readOnlyRootFilesystem"), None)),
                ("agent", each(("securityContext", "allowPrivilegeEscalation"), None)),
                ("agent", each(("securityContext", "seccompProfile"), None)),
                ("controller", each(("securityContext", "runAsUser"), 0)),
                ("controller", each(("livenessProbe",), None)),
                ("controller", each(("livenessProbe", "httpGet", "path"), "/readyz")),
                ("gateway", each(("readinessProbe", "httpGet", "host"), None)),
                ("gateway", each(("resources", "limits", "memory"), None)),
                ("gateway", each(("resources", "limits", "hugepages-2Mi"), "2Gi")),
                ("agent", lambda spec, _: spec.update(automountServiceAccountToken=True)),
                ("agent", lambda spec, _: spec.update(hostPID=True)),
                ("agent", lambda spec, _: spec.update(dnsPolicy="ClusterFirst")),
                ("agent", lambda spec, _: spec["volumes"].append({"name": "x", "hostPath": {"path": "/"}})),
                ("controller", lambda spec, _: spec.update(hostNetwork=True))):
            self.assertNotEqual(spoiled(component, change), [])
        self.assertNotEqual(policies.complaints(good + [{"kind": "Secret", "metadata": {"name": "x"}}]), [])
        for group, resource, verb in (("", "pods", "list"), ("", "secrets", "get"), ("*", "*", "*")):
            role = {"kind": "ClusterRole", "metadata": {"name": "x"},
                    "rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]}
            self.assertNotEqual(policies.complaints(good + [role]), [])

    def test_nothing_calls_the_api_server_unless_it_is_asked_for(self):
        for example in chart.EXAMPLES:
            found = chart.objects(chart.rendered(example))
            roles = [one for one in found if list(policies.rights(one))]
            tokens = [name for name, pod in chart.pods(found)
                      if any("projected" in volume for volume in pod["spec"]["volumes"])]
            if example != "cluster-api":
                self.assertEqual((roles, tokens), ([], []), example)
        found = chart.objects(chart.template("--set", "image.repository=x,agent.podIdentity=true"))
        (role,) = [one for one in found if one["kind"] == "ClusterRole"]
        self.assertEqual(sorted(policies.rights(role)), [("", "namespaces", "get"), ("", "pods", "get")])
        config = chart.named(found, "ConfigMap", "rocegw-agent")["data"]["rocegw-agent.yaml"]
        self.assertIn("api_server: true", config)


if __name__ == "__main__":
    unittest.main()
