# SPDX-License-Identifier: Apache-2.0
"""What a second try of a suite runs."""

import os
import tempfile
import unittest
from unittest import mock

from . import failed_cases, runner
from .case import Case

_CASES = [Case(f"case{number}", 1500, None) for number in range(3)]


class FailedCasesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        variables = mock.patch.dict(os.environ, ROCEGW_FAILED_CASES=folder.name)
        variables.start()
        self.addCleanup(variables.stop)

    def test_second_try_runs_what_failed_and_a_third_one_everything(self):
        self.assertEqual(failed_cases.remaining(_CASES), _CASES)
        failed_cases.remember(["case1"])
        self.assertEqual(failed_cases.remaining(_CASES), [_CASES[1]])
        self.assertEqual(failed_cases.remaining(_CASES), _CASES)

    def test_try_that_did_not_end_is_repeated_as_a_whole(self):
        failed_cases.remember([])
        self.assertEqual(failed_cases.remaining(_CASES), _CASES)

    def test_other_command_line_has_a_list_of_its_own(self):
        failed_cases.remember(["case1"])
        with mock.patch("sys.argv", ["run.py", "--workers", "2"]):
            self.assertEqual(failed_cases.remaining(_CASES), _CASES)

    def test_without_the_folder_every_try_runs_everything(self):
        with mock.patch.dict(os.environ):
            del os.environ["ROCEGW_FAILED_CASES"]
            failed_cases.remember(["case1"])
            self.assertEqual(failed_cases.remaining(_CASES), _CASES)

    def test_without_leaves_out_what_matches(self):
        self.assertEqual(runner.select(_CASES, ["case*"], ["*1"]), [_CASES[0], _CASES[2]])
        self.assertEqual(runner.select(_CASES, [], ["case*"]), [])


if __name__ == "__main__":
    unittest.main()
