#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is read out of expressions."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from expressions import Parsed  # noqa: E402


def selectors(text):
    return [(s.metric, s.matchers, s.function, s.window) for s in Parsed(text).selectors]


class Expressions(unittest.TestCase):
    def test_plain_name(self):
        self.assertEqual(selectors("up"), [("up", {}, "", "")])

    def test_matchers_of_every_kind(self):
        self.assertEqual(selectors('a{b="c",d=~"e|f",g!="{",h!~"i"}'),
                         [("a", {"b": ("=", "c"), "d": ("=~", "e|f"), "g": ("!=", "{"), "h": ("!~", "i")}, "", "")])

    def test_function_around_a_range(self):
        self.assertEqual(selectors("sum by (x, y) (rate(a_total{b=\"c\"}[5m]))"), [("a_total", {"b": ("=", "c")}, "rate", "5m")])

    def test_a_rate_elsewhere_does_not_count(self):
        self.assertEqual([s.function for s in Parsed("rate(a[1m]) / sum(b)").selectors], ["rate", "sum"])

    def test_grouping_in_both_places(self):
        self.assertEqual(Parsed("sum by (x) (a) / on (y) group_left (z) max(b) by (w)").grouping, {"x", "y", "z", "w"})

    def test_metric_called_like_an_aggregation_is_none(self):
        self.assertEqual([s.metric for s in Parsed("topk(3, count without (x) (a))").selectors], ["a"])

    def test_words_between_are_no_metrics(self):
        self.assertEqual([s.metric for s in Parsed("a and b or c unless d > bool 1").selectors], list("abcd"))

    def test_group_left_without_labels(self):
        self.assertEqual([s.metric for s in Parsed("a < on (x) group_left max by (x) (b offset 1m)").selectors], ["a", "b"])

    def test_what_cannot_be_read_is_said(self):
        with self.assertRaises(ValueError):
            Parsed("a; b")


if __name__ == "__main__":
    unittest.main()
