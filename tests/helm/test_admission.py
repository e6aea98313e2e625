# SPDX-License-Identifier: Apache-2.0
"""The admission policy judges pods: its expressions are evaluated, by a CEL that is not Kubernetes' own."""

import copy
import json
import os
import subprocess
import unittest

import chart

NAMESPACE = "may not ask"
TWO_POOLS = "one rocegw pool"
AMOUNT = "its limit is 1"
PRELOAD = "own LD_PRELOAD"


def container(*pools, **more):
    resources = {"resources": {"limits": {"cpu": "1", **{f"rocegw.io/{pool}": "1" for pool in pools}}}} if pools else {}
    return {"name": "c", "image": "x", **resources, **more}


def variable(name, value):
    return {"env": [{"name": "HOME", "value": "/"}, {"name": name, "value": value}]}


def pod(*containers, init=()):
    spec = {"containers": list(containers)}
    if init:
        spec["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


OURS = "/opt/rocegw/lib/librocegw-verbs.so"
ALLOWED = {"rocegw.io/red.train": "allowed"}
# (what it is, pod, labels of its namespace, whom it concerns, what is said)
CASES = (
    ("asks for nothing", pod(container(), container(resources={})), {}, False, []),
    ("asks for what is no pool", pod(container(resources={"limits": {"example.org/red.train": "1"}})), {}, False, []),
    ("asks for nothing, with its own library", pod(container(**variable("LD_PRELOAD", "x.so"))), {}, False, []),
    ("may ask", pod(container("red.train")), ALLOWED, True, []),
    ("may ask, beside another container", pod(container(), container("red.train")), ALLOWED, True, []),
    ("two containers of a pool", pod(container("red.train"), container("red.train")), ALLOWED, True, []),
    ("init container", pod(container(), init=[container("red.train")]), ALLOWED, True, []),
    ("namespace without labels", pod(container("red.train")), None, True, [NAMESPACE]),
    ("namespace without the label", pod(container("red.train")), {"team": "red"}, True, [NAMESPACE]),
    ("label of another value", pod(container("red.train")), {"rocegw.io/red.train": "denied"}, True, [NAMESPACE]),
    ("label of another pool", pod(container("red.serve")), ALLOWED, True, [NAMESPACE]),
    ("one of two pools", pod(container("red.train"), container("red.serve")), ALLOWED, True, [NAMESPACE]),
    ("init container that may not", pod(container("red.train"), init=[container("red.serve")]), ALLOWED, True, [NAMESPACE]),
    ("two pools in a container", pod(container("red.train", "red.serve")), {**ALLOWED, "rocegw.io/red.serve": "allowed"}, True,
     [TWO_POOLS]),
    ("two pools, one not allowed", pod(container("red.train", "red.serve")), ALLOWED, True, [NAMESPACE, TWO_POOLS]),
    ("two of a pool", pod(container(resources={"limits": {"rocegw.io/red.train": "2"}})), ALLOWED, True, [AMOUNT]),
    ("none of a pool", pod(container(resources={"limits": {"rocegw.io/red.train": "0"}})), ALLOWED, True, [AMOUNT]),
    ("two of something else", pod(container("red.train"), container(resources={"limits": {"example.org/x": "2"}})), ALLOWED, True, []),
    ("other variables", pod(container("red.train", **variable("LD_LIBRARY_PATH", "/lib"))), ALLOWED, True, []),
    ("its own library", pod(container("red.train", **variable("LD_PRELOAD", "/lib/libjemalloc.so"))), ALLOWED, True, [PRELOAD]),
    ("its own library beside ours", pod(container("red.train", **variable("LD_PRELOAD", f"/lib/libjemalloc.so:{OURS}"))), ALLOWED,
     True, []),
    ("a library that a ConfigMap names", pod(container("red.train", env=[{"name": "LD_PRELOAD", "valueFrom": {}}])), ALLOWED, True,
     [PRELOAD]),
    ("its own library, in another container", pod(container("red.train"), container(**variable("LD_PRELOAD", "x.so"))), ALLOWED,
     True, []),
    ("its own library, in an init container that asks", pod(container(), init=[container("red.train",
                                                                               **variable("LD_PRELOAD", "x.so"))]), ALLOWED, True,
     [PRELOAD]),
)


def policy(more=""):
    text = chart.template("--set", f"image.repository=x,admissionPolicy.enabled=true{more}")
    return chart.named(chart.objects(text), "ValidatingAdmissionPolicy", "rocegw-resources")


def verdicts(*policies):
    """Of each policy, for each case."""
    requests = [{"object": case[1], "namespaceObject": {"metadata": {"name": "n"} if case[2] is None else
                                                        {"name": "n", "labels": case[2]}}} for case in CASES]
    done = subprocess.run(["node", os.path.join(os.path.dirname(os.path.abspath(__file__)), "admission.mjs")],
                          input=json.dumps([{"policy": one, "requests": requests} for one in policies]), stdout=subprocess.PIPE,
                          text=True, check=True)
    return json.loads(done.stdout)


class Admission(unittest.TestCase):

    def test_pods(self):
        (told,) = verdicts(policy())
        for (name, _, _, concerned, expected), verdict in zip(CASES, told):
            with self.subTest(name):
                self.assertEqual(verdict["matches"], concerned)
                self.assertEqual(len(verdict["denials"]), len(expected), verdict["denials"])
                for said, wanted in zip(verdict["denials"], expected):
                    self.assertIn(wanted, said)

    def test_own_library_does_no_harm_under_cdi(self):
        (told,) = verdicts(policy(",agent.devicePlugin.cdiDir=/var/run/cdi"))
        for (name, _, _, _, expected), verdict in zip(CASES, told):
            with self.subTest(name):
                self.assertEqual(len(verdict["denials"]), len([said for said in expected if said != PRELOAD]), verdict["denials"])

    def test_each_expression_decides_a_case(self):
        good = policy()
        others = []
        for part in ("matchConditions", "validations"):
            for number in range(len(good["spec"][part])):
                for instead in ("true", "false"):
                    other = copy.deepcopy(good)
                    other["spec"][part][number]["expression"] = instead
                    others.append((f"{part} {number} {instead}", other))
        for number, named in enumerate(good["spec"]["variables"]):
            other = copy.deepcopy(good)
            other["spec"]["variables"][number]["expression"] = "[]" if named["name"] == "askers" else "{}"
            others.append((named["name"], other))
        told, *of_others = verdicts(good, *(other for _, other in others))
        for (name, _), verdict in zip(others, of_others):
            with self.subTest(name):
                self.assertNotEqual(verdict, told)

    def test_what_cannot_be_evaluated_denies(self):
        for expression in ("variables.nobody.all(c, true)", "object.spec.containers.size()", "object.spec.containers +"):
            other = policy()
            other["spec"]["validations"][0]["expression"] = expression
            (told,) = verdicts(other)
            with self.subTest(expression):
                for case, verdict in zip(CASES, told):
                    self.assertEqual(bool(verdict["denials"]), case[3], case[0])


if __name__ == "__main__":
    unittest.main()
