# SPDX-License-Identifier: Apache-2.0
"""Links between documents: a relative link leads to a file of the tree, and its fragment to a heading there."""

import functools
import os
import re

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def _lines_outside_of_fences(lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _slug(heading):
    """The anchor that a forge makes of a heading: lower case, punctuation left out, spaces as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@functools.lru_cache(maxsize=None)
def _anchors(path):
    seen = {}
    with open(path, encoding="utf-8") as file:
        for _, line in _lines_outside_of_fences(file.read().splitlines()):
            found = re.match(r"#{1,6}\s+(.*)", line)
            if found:
                slug = _slug(found.group(1))
                seen[slug] = seen.get(slug, -1) + 1
    return {slug if n == 0 else f"{slug}-{n}" for slug, count in seen.items() for n in range(count + 1)}


def broken_links(root, name, lines):
    """(line, what is wrong) for each link of the document `name`, a path below root, that leads nowhere."""
    folder = os.path.dirname(os.path.join(root, name))
    for number, line in _lines_outside_of_fences(lines):
        for target in _LINK.findall(_CODE.sub("", line)):
            if _ELSEWHERE.match(target):
                continue
            path, _, fragment = target.partition("#")
            file = os.path.join(folder, path) if path else os.path.join(root, name)
            if not os.path.exists(file):
                yield number, f"the link to {target} leads to no file"
            elif fragment and file.endswith(".md") and fragment not in _anchors(os.path.normpath(file)):
                yield number, f"the link to {target} leads to no heading"
