# SPDX-License-Identifier: Apache-2.0
"""Finds comments of C and C++ sources that begin without a subject, or are wider than the tree allows."""

import re

# A comment names its subject. These words stand for a noun that the reader does not have yet.
NO_SUBJECT = re.compile(r"//+\s*(whoever|whose|who|what|of|it|one|those|where|which|nobody|everybody|somebody|they)\b", re.I)
NARROW = 120
# Folders whose comments are rewritten in plain English. The list grows until it is the whole tree.
DONE = (
    "agent/",
    "controlplane/",
    "gateway/",
    "proto/",
    "tests/property/",
    "tests/sim/",
    "tests/unit/",
)


def comment_column(line):
    """Returns the column of the line's // comment, -1 without one. Text in quotes is no comment."""
    quote = ""
    at = 0
    while at < len(line):
        if line[at] == "\\":
            at += 1
        elif quote:
            quote = "" if line[at] == quote else quote
        elif line[at] == '"' or (line[at] == "'" and not line[at - 1:at].isalnum()):
            quote = line[at]
        elif line.startswith("//", at):
            return at
        at += 1
    return -1


def bad_comments(name, lines):
    """Yields line number and text for each comment of a finished folder that breaks the rules."""
    if not name.startswith(DONE):
        return
    above = -1
    blank = False
    for number, line in enumerate(lines, 1):
        column = comment_column(line)
        if column >= 0:
            if len(line) > NARROW:
                yield number, f"{len(line)} columns; a comment has at most {NARROW}"
            begins = column != above or blank or line[:column].strip() != ""
            found = NO_SUBJECT.match(line, column) if begins else None
            if found:
                yield number, f"a comment that begins with '{found.group(1)}'; name its subject"
        above = column
        blank = column >= 0 and line[column:].strip("/ ") == ""
