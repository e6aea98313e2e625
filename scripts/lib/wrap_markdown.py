# SPDX-License-Identifier: Apache-2.0
"""Wraps the paragraphs and list entries of a generated Markdown page at 120 columns. As a program: a filter.

Expects each paragraph and each list entry on one line; passes headings, comments, tables and fenced blocks on as they are."""

import re
import sys
import textwrap

WIDTH = 120
_BULLET = re.compile(r"\s*- ")


def wrapped(lines):
    """Yields the lines of the page with none longer than WIDTH that can be broken."""
    fenced = False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or len(line) <= WIDTH or line.startswith(("#", "|", "<!--", "```")):
            yield line
            continue
        bullet = _BULLET.match(line)
        indent = " " * bullet.end() if bullet else ""
        yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    for text in wrapped(sys.stdin.read().splitlines()):
        print(text)
