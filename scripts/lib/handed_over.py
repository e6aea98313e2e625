# SPDX-License-Identifier: Apache-2.0
"""Finds members that a HandOver function binds and does not hand over (docs/develop/hand_over.md)."""

import re

BINDING = re.compile(r"^( *)auto& \[([\w\s,]+)\] =", re.M)


def forgotten(text):
    """Yields line number and name for each bound member that is not used in the rest of its block."""
    if "StateStream" not in text:
        return
    for found in BINDING.finditer(text):
        # The block ends at the first line with less indentation.
        outside = re.compile(r"^ {0,%d}\S" % (len(found[1]) - 1), re.M).search(text, found.end())
        rest = text[found.end():outside.start() if outside else len(text)]
        for name in re.findall(r"\w+", found[2]):
            if not re.search(r"\b%s\b" % name, rest):
                yield text.count("\n", 0, found.start()) + 1, name
