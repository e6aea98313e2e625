# SPDX-License-Identifier: Apache-2.0
"""What is rendered for whom, and that it changes only when somebody wants it to."""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import yaml

import chart

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
# All of them exist, unchanged, in every version of Kubernetes that the chart is for.
KNOWN_APIS = {"v1", "apps/v1", "rbac.authorization.k8s.io/v1", "policy/v1", "scheduling.k8s.io/v1", "cert-manager.io/v1", "monitoring.coreos.com/v1"}
CLUSTER_WIDE = {"PriorityClass", "ClusterRole", "ClusterRoleBinding"}


def kinds(found):
    return {one["kind"] for one in found}


def rule_groups(*settings):
    """Of the PrometheusRule."""
    text = chart.template("--set", ",".join(settings), knows=chart.MONITORING)
    return chart.named(chart.objects(text), "PrometheusRule", "rocegw-rules")["spec"]["groups"]


class Rendering(unittest.TestCase):

    def test_matrix(self):
        seen = 0
        for name, found in chart.matrix():
            with self.subTest(name):
                seen += 1
                self.assertGreaterEqual(len(found), 4)
                self.assertLessEqual({one["apiVersion"] for one in found}, KNOWN_APIS)
                keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found]
                self.assertEqual(len(keys), len(set(keys)), "an object twice")
                for one in found:
                    self.assertEqual(one["metadata"].get("namespace"), None if one["kind"] in CLUSTER_WIDE else "rocegw")
        self.assertEqual(seen, 4 * len(chart.EXAMPLES))
        self.assertGreaterEqual(len(chart.EXAMPLES), 5)

    def test_golden(self):
        update = os.environ.get("ROCEGW_UPDATE_GOLDEN")
        expected = {f"{example}.yaml" for example in chart.EXAMPLES}
        if update:
            os.makedirs(GOLDEN, exist_ok=True)
        for example in chart.EXAMPLES:
            with self.subTest(example):
                # Dashboards and rules are somebody else's text.
                text = chart.template("--values", os.path.join(chart.CHART, "ci", f"{example}-values.yaml"), "--set",
                                      "monitoring.dashboards=false,monitoring.rules=false",
                                      knows=chart.CERT_MANAGER + chart.MONITORING)
                name = os.path.join(GOLDEN, f"{example}.yaml")
                if update:
                    with open(name, "w", encoding="utf-8") as file:
                        file.write(text)
                with open(name, encoding="utf-8") as file:
                    self.assertMultiLineEqual(file.read(), text, "ROCEGW_UPDATE_GOLDEN=1 tests/helm/run ... writes it anew")
        self.assertEqual(set(os.listdir(GOLDEN)), expected)

    def test_rendering_is_repeatable(self):
        arguments = ("--values", os.path.join(chart.CHART, "ci", "issued-authority-values.yaml"))
        first, second = (chart.template(*arguments, knows=chart.CERT_MANAGER) for _ in range(2))
        self.assertEqual(first, second, "something is made up anew at each rendering")

    def test_lint(self):
        for example in chart.EXAMPLES:
            # Lint knows no cluster, so it takes cert-manager for absent.
            if example != "issued-authority":
                chart.helm("lint", "--strict", chart.CHART, "--values", os.path.join(chart.CHART, "ci", f"{example}-values.yaml"))

    def test_monitors_need_their_kinds_and_a_page_to_scrape(self):
        without = kinds(chart.objects(chart.rendered("etcd")))
        self.assertFalse(without & {"PodMonitor", "ServiceMonitor", "PrometheusRule"})
        found = chart.objects(chart.rendered("etcd", monitoring=True))
        monitors = [one["metadata"]["name"] for one in found if one["kind"] in ("PodMonitor", "ServiceMonitor")]
        self.assertEqual(sorted(monitors), ["rocegw-agent", "rocegw-controller", "rocegw-gateway"])
        # Pages that listen on loopback cannot be scraped.
        found = chart.objects(chart.rendered("sqlite", monitoring=True))
        self.assertNotIn("PodMonitor", kinds(found))
        self.assertIn("ServiceMonitor", kinds(found))

    def test_jobs_and_labels_that_dashboards_ask_for(self):
        found = chart.objects(chart.rendered("etcd", monitoring=True))
        for component in ("gateway", "agent", "controller"):
            kind, key = ("ServiceMonitor", "endpoints") if component == "controller" else ("PodMonitor", "podMetricsEndpoints")
            (endpoint,) = chart.named(found, kind, f"rocegw-{component}")["spec"][key]
            labels = {rule["targetLabel"]: rule.get("replacement", rule.get("sourceLabels")) for rule in endpoint["relabelings"]}
            self.assertEqual(labels, {"job": f"rocegw-{component}", "cluster": "north",
                                      "node": ["__meta_kubernetes_pod_node_name"]})

    def test_dashboards_are_those_of_the_repository(self):
        place = os.path.join(chart.ROOT, "dashboards", "grafana")
        found = [one for one in chart.objects(chart.rendered("sqlite")) if one["metadata"].get("labels", {}).get("grafana_dashboard")]
        given = {name: text for one in found for name, text in one["data"].items()}
        self.assertEqual(set(given), {name for name in os.listdir(place) if name.endswith(".json")})
        self.assertGreaterEqual(len(given), 1)
        for name, text in given.items():
            with open(os.path.join(place, name), encoding="utf-8") as file:
                self.assertEqual(json.loads(text), json.load(file), name)
            self.assertLess(len(text), 1 << 20, "a ConfigMap holds no more")

    def test_rules_are_those_of_the_repository(self):
        def groups(*settings):
            settings += ("image.repository=x", "gateway.metrics.expose=true", "agent.metrics.expose=true")
            return rule_groups(*settings)

        with open(os.path.join(chart.ROOT, "dashboards", "prometheus", "rules.yaml"), encoding="utf-8") as file:
            wanted = yaml.safe_load(file)["groups"]
        self.assertEqual(groups(), wanted)
        for group in wanted:
            for rule in group["rules"]:
                if "alert" in rule:
                    path = rule["annotations"]["runbook_url"]
                    rule["annotations"]["runbook_url"] = f"https://git.example.org/rocegw/{path}"
        self.assertEqual(groups("monitoring.runbooks=https://git.example.org/rocegw/"), wanted)

    def test_a_job_can_be_missed_where_it_is_scraped(self):
        def missed(*settings):
            alerts = {rule.get("alert", "") for group in rule_groups("image.repository=x", *settings) for rule in group["rules"]}
            self.assertIn("RocegwGatewayDown", alerts)
            return sorted(name for name in alerts if name.endswith("Absent"))

        self.assertEqual(missed(), ["RocegwControllersAbsent"])
        self.assertEqual(missed("gateway.metrics.expose=true", "agent.metrics.expose=true"),
                         ["RocegwAgentsAbsent", "RocegwControllersAbsent", "RocegwGatewaysAbsent"])
        self.assertEqual(missed("gateway.metrics.expose=true", "controller.enabled=false", "agent.join.secretName=x"),
                         ["RocegwGatewaysAbsent"])
        self.assertEqual(missed("gateway.metrics.expose=true", "monitoring.scrape=false"), [])

    def test_one_controller_or_several(self):
        one = chart.objects(chart.rendered("sqlite"))
        self.assertIsNotNone(chart.named(one, "StatefulSet", "rocegw-controller"))
        self.assertFalse(kinds(one) & {"Deployment", "PodDisruptionBudget"}, "a budget of one holds up drains")
        several = chart.objects(chart.rendered("etcd"))
        self.assertEqual(chart.named(several, "Deployment", "rocegw-controller")["spec"]["replicas"], 3)
        self.assertEqual(chart.named(several, "PodDisruptionBudget", "rocegw-controller")["spec"]["maxUnavailable"], 1)
        self.assertNotIn("StatefulSet", kinds(several))

    def test_older_kubernetes_gets_what_it_has(self):
        def mode(version):
            found = chart.objects(chart.rendered("sqlite", version))
            return chart.named(found, "StatefulSet", "rocegw-controller")["spec"]["volumeClaimTemplates"][0]["spec"]["accessModes"]

        def policy(version):
            found = chart.objects(chart.rendered("etcd", version))
            return chart.named(found, "PodDisruptionBudget", "rocegw-controller")["spec"].get("unhealthyPodEvictionPolicy")

        self.assertEqual([mode("1.26.0"), mode("1.34.0")], [["ReadWriteOnce"], ["ReadWriteOncePod"]])
        self.assertEqual([policy("1.26.0"), policy("1.34.0")], [None, "AlwaysAllow"])
        with self.assertRaisesRegex(chart.Refused, "incompatible with Kubernetes"):
            chart.template("--set", "image.repository=x", kubernetes="1.25.0")

    def test_a_roll_of_agents_touches_no_gateway(self):
        values = ("--values", os.path.join(chart.CHART, "ci", "sqlite-values.yaml"))
        before = chart.objects(chart.template(*values))
        after = chart.objects(chart.template(*values, "--set", "agent.config.log_level=debug,controller.config.log_level=debug"))
        pod = dict(chart.pods(before))
        self.assertEqual(pod["rocegw-gateway"], dict(chart.pods(after))["rocegw-gateway"])
        self.assertNotEqual(pod["rocegw-agent"], dict(chart.pods(after))["rocegw-agent"])

    @staticmethod
    def gateway(*settings):
        found = chart.objects(chart.template("--set", "image.repository=x", *(word for one in settings for word in ("--set", one))))
        spec = chart.named(found, "DaemonSet", "rocegw-gateway")["spec"]
        return spec["updateStrategy"], spec["template"]["spec"]["containers"][0]

    def test_a_changed_gateway_takes_over_from_the_running_one(self):
        for settings in ((), ("gateway.updateStrategy.type=RollingUpdate",)):
            strategy, container = self.gateway(*settings)
            self.assertEqual(strategy, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
            self.assertEqual(container["args"][-2:], ["--take-over", "--stay-when-replaced"])
            self.assertNotIn("ports", container)
        strategy, _ = self.gateway("gateway.updateStrategy.rollingUpdate.maxSurge=10%")
        self.assertEqual(strategy["rollingUpdate"]["maxSurge"], "10%")

    def test_gateways_that_cannot_take_over_are_replaced_as_before(self):
        dpdk = ("gateway.ports[0].name=p", "gateway.ports[0].mode=af_packet", "gateway.ports[0].interface=eth0")
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        for settings, expected in (
                (dpdk, {"type": "OnDelete"}),
                ((*dpdk, "gateway.updateStrategy.type=RollingUpdate"), rolling),
                (("gateway.updateStrategy.type=OnDelete",), {"type": "OnDelete"}),
                (("gateway.updateStrategy.type=RollingUpdate", "gateway.updateStrategy.rollingUpdate.maxUnavailable=1"), rolling)):
            with self.subTest(settings):
                strategy, container = self.gateway(*settings)
                self.assertEqual(strategy, expected)
                self.assertEqual(container["args"], ["--config", "/etc/rocegw/rocegwd.yaml"])
                self.assertEqual([port["name"] for port in container["ports"]], ["metrics", "roce"])
                self.assertEqual(container["lifecycle"]["preStop"]["exec"]["command"][0], "rocegwctl")

    def test_only_the_pod_with_the_gateway_is_ready_and_drains(self):
        _, container = self.gateway()
        ready = container["readinessProbe"]["exec"]["command"]
        drain = container["lifecycle"]["preStop"]["exec"]["command"]
        with tempfile.TemporaryDirectory() as place:
            lock = os.path.join(place, "lock")
            for command in (ready, drain):
                socket = command.index("--socket") + 1
                self.assertEqual(command[socket], "/run/rocegw/grpc.sock")
                command[socket] = os.path.join(place, "grpc.sock")
                command[0] = os.path.join(os.environ["ROCEGW_BINARIES"], command[0])
            # Here no gateway listens: the pod with the gateway asks it, and the other pod does not.
            for holder, (is_ready, is_drained) in ((os.getpid(), (6, 6)), ("", (10, 0)), (1 << 22, (10, 0))):
                with open(lock, "w", encoding="ascii") as file:
                    file.write(f"{holder}\n")
                for command, status in ((ready, is_ready), (drain, is_drained)):
                    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, status, (holder, command))

    def test_another_version_of_the_chart_alone_makes_no_new_pods(self):
        with tempfile.TemporaryDirectory() as place:
            newer = os.path.join(place, "rocegw")
            shutil.copytree(chart.CHART, newer)
            name = os.path.join(newer, "Chart.yaml")
            with open(name, encoding="utf-8") as file:
                text = file.read()
            self.assertIn("\nversion: 0.1.0\n", text)
            with open(name, "w", encoding="utf-8") as file:
                file.write(text.replace("\nversion: 0.1.0\n", "\nversion: 9.9.9\n"))
            values = ("--values", os.path.join(chart.CHART, "ci", "etcd-values.yaml"))
            self.assertEqual(dict(chart.pods(chart.objects(chart.template(*values)))),
                             dict(chart.pods(chart.objects(chart.template(*values, chart=newer)))))

    def test_notes_tell_what_to_do_next(self):
        with tempfile.TemporaryDirectory() as place:
            told = os.path.join(place, "rocegw")
            shutil.copytree(chart.CHART, told)
            # Helm shows notes of a release only: here they are rendered as an object.
            shutil.move(os.path.join(told, "templates", "NOTES.txt"), os.path.join(told, "notes.txt"))
            with open(os.path.join(told, "templates", "notes.yaml"), "w", encoding="utf-8") as file:
                file.write('kind: Notes\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get "notes.txt") . | toJson }}\n')

            def notes(example):
                values = ("--values", os.path.join(chart.CHART, "ci", f"{example}-values.yaml"))
                found = chart.objects(chart.template(*values, knows=chart.CERT_MANAGER, chart=told))
                return chart.named(found, "Notes", "notes")["text"]

            for example in chart.EXAMPLES:
                text = notes(example)
                self.assertNotIn("<no value>", text)
                self.assertNotIn("\n\n\n", text, example)
                self.assertIn("enforce=privileged", text)
            self.assertIn("scripts/join-nodes --namespace rocegw --release rocegw\n", notes("sqlite"))
            self.assertIn("exec statefulset/rocegw-controller -c rocegw-controller -- rocegwctl status", notes("sqlite"))
            self.assertIn("volume claim state-rocegw-controller-0", notes("sqlite"))
            self.assertIn("Metrics of gateways and agents listen on loopback", notes("sqlite"))
            self.assertIn("exec deployment/rocegw-controller", notes("etcd"))
            for text in ("loopback", "volume claim", "delete its pod"):
                self.assertNotIn(text, notes("etcd"))
            self.assertIn("NODE.yaml of Secret rocegw-join", notes("nodes-only"))
            self.assertNotIn("rocegwctl get gateways", notes("nodes-only"))

    def test_copied_chart(self):
        """As people vendor it: the folder alone, links as they are."""
        with tempfile.TemporaryDirectory() as place:
            copy = os.path.join(place, "rocegw")
            shutil.copytree(chart.CHART, copy, symlinks=True)
            values = ("--values", os.path.join(chart.CHART, "ci", "sqlite-values.yaml"))
            self.assertEqual(chart.template(*values, knows=chart.MONITORING),
                             chart.template(*values, knows=chart.MONITORING, chart=copy))

    def test_package(self):
        with tempfile.TemporaryDirectory() as place:
            chart.helm("package", chart.CHART, "--destination", place)
            (name,) = os.listdir(place)
            with tarfile.open(os.path.join(place, name)) as archive:
                files = set(archive.getnames())
            self.assertIn("rocegw/alerts/rules.yaml", files)
            self.assertTrue([file for file in files if file.startswith("rocegw/dashboards/")])
            self.assertLessEqual({"rocegw/Chart.yaml", "rocegw/values.schema.json", "rocegw/templates/NOTES.txt"}, files)
            self.assertFalse([file for file in files if file.startswith("rocegw/ci/")])
            packed = os.path.join(place, name)
            values = ("--values", os.path.join(chart.CHART, "ci", "etcd-values.yaml"))
            self.assertEqual(chart.template(*values, knows=chart.MONITORING),
                             chart.template(*values, knows=chart.MONITORING, chart=packed))


if __name__ == "__main__":
    unittest.main()
