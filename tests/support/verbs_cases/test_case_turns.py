# SPDX-License-Identifier: Apache-2.0
"""Which cases each of two command lines runs."""

import os
import unittest
from unittest import mock

from . import case_turns
from .case import Case

_CASES = [Case(f"case{number}", 1500, None) for number in range(100)]
_ELSEWHERE_NEVER = Case("sockets", 1500, None, "kernel_sockets")


class CaseTurnsTest(unittest.TestCase):
    @staticmethod
    def of(turn, share, cases=tuple(_CASES)):
        with mock.patch.dict(os.environ, ROCEGW_TURN=turn):
            return case_turns.of_share(list(cases), share)

    def test_each_case_runs_in_one_of_them(self):
        first, second = self.of("0", 0), self.of("0", 1)
        self.assertEqual(sorted(first + second), sorted(_CASES))
        self.assertGreater(min(len(first), len(second)), 25)

    def test_at_the_next_turn_they_change(self):
        self.assertEqual(self.of("0", 0), self.of("1", 1))
        self.assertEqual(self.of("0", 1), self.of("1", 0))

    def test_what_the_other_one_cannot_run_always_runs(self):
        for turn in ("0", "1"):
            self.assertEqual(self.of(turn, 0, [_ELSEWHERE_NEVER]), [_ELSEWHERE_NEVER])

    def test_without_a_turn_or_a_share_everything_runs(self):
        self.assertEqual(self.of("0", None), _CASES)
        with mock.patch.dict(os.environ):
            os.environ.pop("ROCEGW_TURN", None)
            self.assertEqual(case_turns.of_share(_CASES, 0), _CASES)


if __name__ == "__main__":
    unittest.main()
