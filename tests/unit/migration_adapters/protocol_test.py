#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that adapters run, with real processes: what they print is bounded, and so is their time."""

import os
import subprocess
import sys
import time
import types
import unittest
import warnings
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import byte_counters, protocol  # noqa: E402
from rocegw_adapter.protocol import Call, Problem  # noqa: E402


class Programs(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", ResourceWarning)

    def run_program(self, *words, given=None, deadline=20):
        cluster = types.SimpleNamespace(name="c1", node=lambda name: {})
        return Call(cluster, {"call": "health", "node": "n1", "from": "tcp", "to": "rnic", "deadline_seconds": deadline}).run(words, given)

    def test_status_output_and_the_last_line_of_standard_error(self):
        script = "cat; echo $ROCEGW_CALL $ROCEGW_CLUSTER $ROCEGW_NODE $ROCEGW_FROM $ROCEGW_TO; echo a >&2; echo b >&2; exit 3"
        self.assertEqual(self.run_program("sh", "-c", script, given="x\n"), (3, "x\nhealth c1 n1 tcp rnic\n", "b"))
        self.assertEqual(self.run_program("cat"), (0, "", ""))

    def test_standard_input_that_nobody_reads(self):
        self.assertEqual(self.run_program("true", given="x" * (1 << 20))[0], 0)

    def test_endless_output_ends_the_program_at_the_bound(self):
        for script in ("exec yes", "exec yes >&2"):
            begin = time.monotonic()
            with self.assertRaises(Problem) as raised:
                self.run_program("sh", "-c", script)
            self.assertEqual((raised.exception.outcome, str(raised.exception)), ("inconclusive", "sh wrote more than 4194304 bytes"))
            self.assertLess(time.monotonic() - begin, 15)

    def test_output_of_the_longest_length_is_taken(self):
        self.assertEqual(len(self.run_program("head", "-c", str(protocol.LONGEST_OUTPUT), "/dev/zero")[1]), protocol.LONGEST_OUTPUT)

    def test_a_program_that_takes_too_long_is_killed(self):
        for script in ("exec sleep 60", "exec >&- 2>&-; exec sleep 60", "while echo; do sleep 0.1; done"):
            with self.assertRaises(subprocess.TimeoutExpired, msg=script):
                self.run_program("sh", "-c", script, deadline=1)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_bytes_over_roce_are_those_of_the_transport_that_the_node_should_use(self):
        """Between gateways and RNICs one end moves nothing once the node has left it."""
        cluster = types.SimpleNamespace(name="c1", node=lambda name: {}, text={})
        with mock.patch.object(byte_counters, "gateway_bytes", lambda _: "gateway"), \
                mock.patch.object(byte_counters, "rnic_bytes", lambda: "rnic"):
            for before, after, verify, verify_old in (
                    ("tcp", "gateway", "gateway", "gateway"), ("tcp", "rnic", "rnic", "rnic"), ("gateway", "tcp", "gateway", "gateway"),
                    ("rnic", "tcp", "rnic", "rnic"), ("gateway", "rnic", "rnic", "gateway"), ("rnic", "gateway", "gateway", "rnic")):
                for name, expected in (("verify", verify), ("verify-old", verify_old)):
                    call = Call(cluster, {"call": name, "node": "n1", "from": before, "to": after, "deadline_seconds": 20})
                    self.assertEqual(byte_counters.roce_bytes(call), expected, (before, after, name))

    def test_metrics_are_bounded(self):
        class Page:
            def __init__(self, size):
                self.text = b"rocegw_tx_bytes_total 7\n" + b"#" * size

            def __enter__(self):
                return self

            def __exit__(self, *error):
                pass

            def read(self, most):
                return self.text[:most]

        with mock.patch("urllib.request.urlopen", lambda address, timeout: Page(10)):
            self.assertEqual(byte_counters.gateway_bytes("http://127.0.0.1:7474/metrics"), 7)
        with mock.patch("urllib.request.urlopen", lambda address, timeout: Page(protocol.LONGEST_OUTPUT)), \
                self.assertRaises(Problem):
            byte_counters.gateway_bytes("http://127.0.0.1:7474/metrics")


if __name__ == "__main__":
    unittest.main()
