# SPDX-License-Identifier: Apache-2.0
"""What a PromQL expression names: its selectors with their matchers, its grouping labels, the function around each."""

import re
from collections import namedtuple

# function: the one that a range selector stands in ("rate"), else "". window: text between its brackets.
Selector = namedtuple("Selector", "metric matchers function window")

_TOKEN = re.compile(r"""
    (?P<string>"(?:[^"\\]|\\.)*"|'[^']*') | (?P<duration>\[[^\]]*\]) | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*) |
    (?P<number>[0-9][0-9.]*[a-z]*) | (?P<mark>=~|!~|!=|==|>=|<=|[(){},=<>+\-*/%^@]) | (?P<space>\s+)""", re.X)
_WORDS = {"and", "or", "unless", "offset", "bool", "group_left", "group_right"}
_GROUPING = {"by", "without", "on", "ignoring"}


class Parsed:
    def __init__(self, text):
        self.text = text
        self.selectors = []
        self.grouping = set()
        self._tokens = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                raise ValueError(f"cannot read {text[position:]!r}")
            if found.lastgroup != "space":
                self._tokens.append((found.lastgroup, found.group()))
            position = found.end()
        self._read()

    def _read(self):
        tokens, at, functions = self._tokens, 0, []
        while at < len(tokens):
            kind, text = tokens[at]
            following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
            at += 1
            if text == "(":
                before = tokens[at - 2] if at >= 2 else ("", "")
                functions.append(before[1] if before[0] == "name" else "")
            elif text == ")":
                functions.pop()
            elif kind == "name" and text in _GROUPING or text in ("group_left", "group_right") and following == "(":
                at += 1
                while tokens[at][1] != ")":
                    if tokens[at][1] != ",":
                        self.grouping.add(tokens[at][1])
                    at += 1
                at += 1
            elif kind == "name" and text not in _WORDS and following != "(" and not self._is_operator(following, tokens, at):
                matchers = {}
                if following == "{":
                    at += 1
                    while tokens[at][1] != "}":
                        if tokens[at][0] == "name":
                            matchers[tokens[at][1]] = (tokens[at + 1][1], tokens[at + 2][1][1:-1])
                            at += 3
                        else:
                            at += 1
                    at += 1
                window = ""
                if at < len(tokens) and tokens[at][0] == "duration":
                    window = tokens[at][1][1:-1]
                    at += 1
                self.selectors.append(Selector(text, matchers, functions[-1] if functions else "", window))

    @staticmethod
    def _is_operator(following, tokens, at):
        """Aggregations may have their grouping before the bracket: sum by (...) (...)."""
        return following in _GROUPING and at + 1 < len(tokens) and tokens[at + 1][1] == "(" and \
            tokens[at - 1][1] in {"sum", "avg", "min", "max", "count", "topk", "bottomk", "group", "quantile"}
