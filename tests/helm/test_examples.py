# SPDX-License-Identifier: Apache-2.0
"""examples/kubernetes, which docs/operate/kubernetes.md has people apply: the manifests are Kubernetes', the pods keep to the restricted
profile, and pool, namespace and pods fit each other."""

import os
import unittest

import yaml

import chart
import typed

FOLDER = os.path.join(chart.ROOT, "examples", "kubernetes")


def documents(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


class Examples(unittest.TestCase):

    def setUp(self):
        self.tenant, self.pool = documents("pool.yaml")
        found = documents("pods.yaml")
        self.namespace = found[0]
        self.pods = found[1:]

    def test_manifests_are_kubernetes(self):
        self.assertEqual(typed.complaints(documents("pods.yaml")), [])

    def test_pods_keep_to_the_restricted_profile(self):
        self.assertEqual(self.namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted")
        for pod in self.pods:
            self.assertTrue(pod["spec"]["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["spec"]["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for key in ("hostNetwork", "hostPID", "hostIPC", "volumes"):
                self.assertNotIn(key, pod["spec"])
            for container in pod["spec"]["containers"]:
                self.assertIs(container["securityContext"]["allowPrivilegeEscalation"], False)
                self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})

    def test_they_fit_each_other(self):
        tenant, pool = self.pool["name"].split("/")[1::2]
        self.assertEqual(self.tenant["name"], f"tenants/{tenant}")
        attach = self.pool["spec"]["attach"]
        self.assertEqual((attach["identity"], attach["socketMode"]), ("REQUIRED", 0o666), "pods are not root")
        self.assertEqual([one["namespace"] for one in attach["serviceAccounts"]], [self.namespace["metadata"]["name"]])
        self.assertEqual(self.namespace["metadata"]["labels"][f"rocegw.io/{tenant}.{pool}"], "allowed")
        for pod in self.pods:
            self.assertEqual(pod["metadata"]["namespace"], self.namespace["metadata"]["name"])
            for container in pod["spec"]["containers"]:
                self.assertEqual(container["resources"]["limits"], {f"rocegw.io/{tenant}.{pool}": "1"})

    def test_claim_and_job_are_kubernetes_and_restricted(self):
        claim, job = documents("claim.yaml"), documents("apply-job.yaml")
        self.assertEqual(typed.complaints(claim + job), [])
        for spec in (claim[1]["spec"], job[1]["spec"]["template"]["spec"]):
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            (container,) = spec["containers"]
            self.assertIs(container["securityContext"]["allowPrivilegeEscalation"], False)
            self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        (request,) = claim[0]["spec"]["spec"]["devices"]["requests"]
        with open(os.path.join(chart.CHART, "values.yaml"), encoding="utf-8") as file:
            values = yaml.safe_load(file)
        self.assertEqual(request["exactly"]["deviceClassName"], values["agent"]["dra"]["deviceClass"])
        self.assertEqual(claim[1]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"], claim[0]["metadata"]["name"])

    def test_the_job_applies_what_the_example_of_the_page_makes(self):
        objects = list(yaml.safe_load_all(documents("apply-job.yaml")[0]["data"]["objects.yaml"]))
        self.assertEqual(objects, [self.tenant, self.pool])

    def test_the_page_shows_them(self):
        with open(os.path.join(chart.ROOT, "docs", "operate", "kubernetes.md"), encoding="utf-8") as file:
            page = file.read()
        for name in ("pool.yaml", "pods.yaml", "claim.yaml", "apply-job.yaml"):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                self.assertIn(file.read(), page, f"docs/operate/kubernetes.md does not show {name} as it is")


if __name__ == "__main__":
    unittest.main()
