# SPDX-License-Identifier: Apache-2.0
"""The pod of `helm test`: how it is rendered, and what its script says of a gateway."""

import unittest

import chart
import policies
from test_joining import Shells


def test_pod(example="sqlite"):
    return chart.named(chart.objects(chart.rendered(example)), "Pod", "rocegw-test")


class Rendered(unittest.TestCase):

    def test_is_a_hook_with_no_more_than_it_needs(self):
        for example in chart.EXAMPLES:
            pod = test_pod(example)
            self.assertEqual(pod["metadata"]["annotations"]["helm.sh/hook"], "test")
            for policy in (policies.privilege, policies.tokens, policies.resources):
                self.assertEqual(list(policy(example, pod)), [])
            (volume,) = pod["spec"]["volumes"]
            self.assertEqual(volume["hostPath"]["path"], "/run/rocegw")
            self.assertTrue(pod["spec"]["containers"][0]["volumeMounts"][0]["readOnly"])

    def test_without_gateways_there_is_none(self):
        found = chart.objects(chart.template("--set", "image.repository=x,gateway.enabled=false"))
        self.assertIsNone(chart.named(found, "Pod", "rocegw-test"))


class Script(Shells):

    def result(self, answer, status=0):
        self.program("rocegwctl", f"#!/bin/sh\necho \"$*\" > \"$PLACE/asked\"\ncat <<'END'\n{answer}\nEND\nexit {status}\n")
        container = test_pod()["spec"]["containers"][0]
        return self.shell(*container["command"], *container["args"])

    def test_a_gateway_with_a_configuration_of_the_fleet_passes(self):
        done = self.result('{"gateway": {"ready": true, "configSource": "6f1c"}}')
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("--socket /run/rocegw/grpc.sock", self.read("asked"))

    def test_what_is_wrong_is_said(self):
        for answer, status, why in (('{"gateway": {"ready": false, "configSource": "6f1c"}}', 10, ""),
                                    ('{"gateway": {"ready": false, "configSource": "6f1c"}}', 0, "not ready"),
                                    ('{"gateway": {"ready": true, "configSource": "static"}}', 0, "has its node joined"),
                                    ("", 6, "")):
            done = self.result(answer, status)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn(why, done.stdout)


if __name__ == "__main__":
    unittest.main()
