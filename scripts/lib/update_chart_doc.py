#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of values in helm/rocegw/README.md anew, from the comments of values.yaml. Usage: scripts/update_chart_doc
[--check]; with --check it changes nothing and fails when the list is not current."""

import json
import os
import re
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from wrap_markdown import wrapped  # noqa: E402

CHART = os.path.join(ROOT, "helm", "rocegw")
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"
KEY = re.compile(r"^( *)([A-Za-z]\w*):")


def comments(text):
    """Path of each key that has a comment right above it, and the comment."""
    path, comment, found = [], [], {}
    for line in text.splitlines():
        key = KEY.match(line)
        if line.lstrip().startswith("#"):
            comment.append(line.strip().lstrip("# "))
        else:
            if key:
                path = path[:len(key.group(1)) // 2] + [key.group(2)]
                if comment:
                    found[".".join(path)] = " ".join(comment)
            comment = []
    return found


def rows(values, meaning, path=""):
    """(key, default, meaning), down to what has a comment of its own."""
    for name, value in values.items():
        key = f"{path}.{name}" if path else name
        if key in meaning:
            yield key, value, meaning[key]
        elif isinstance(value, dict) and value:
            yield from rows(value, meaning, key)
        else:
            raise SystemExit(f"values.yaml: {key} has no comment")


def listing():
    with open(os.path.join(CHART, "values.yaml"), encoding="utf-8") as file:
        text = file.read()
    lines = []
    for key, value, meaning in rows(yaml.safe_load(text), comments(text)):
        lines.append(f"- `{key}` (default `{json.dumps(value)}`): {meaning}")
    return "\n".join(wrapped(lines)) + "\n"


def main():
    name = os.path.join(CHART, "README.md")
    with open(name, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    current = before + BEGIN + listing() + END + after
    if current == text:
        return 0
    if "--check" in sys.argv:
        print("helm/rocegw/README.md is not current: run scripts/update_chart_doc", file=sys.stderr)
        return 1
    with open(name, "w", encoding="utf-8") as file:
        file.write(current)
    return 0


if __name__ == "__main__":
    sys.exit(main())
