#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of this tree that no compiler checks; see RULES below. Usage: scripts/check-rules [--list]

Looks at the files that git knows. Prints FILE:LINE: text for each violation and exits with 1 if there is any."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from comment_style import bad_comments  # noqa: E402
from doc_links import broken_links  # noqa: E402
from folder_sizes import MOST, full_folders  # noqa: E402
from handed_over import forgotten  # noqa: E402

CODE = (".cc", ".h", ".c")
COMMENTED = CODE + (".def", ".proto")
SOURCE = CODE + (".py", ".sh", ".proto", ".def")
MOST_LINES = 1000
MOST_LINES_OF_PYTHON = 400
WIDTH = 120
# Pure folders: time, packets and memory results are arguments there.
CORE = ("wire", "flow", "verbs", "transport", "cm")
CORE_BANNED = re.compile(r"#include <(thread|mutex|condition_variable|future|sys/socket\.h|sys/epoll\.h|poll\.h|time\.h|ctime)>"
                         r"|std::chrono::(system|steady|high_resolution)_clock|\bclock_gettime\b|\bstd::thread\b")
EMPTY_NAMES = {"common", "util", "utils", "manager", "helper", "helpers", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
IN_TESTS = re.compile(r"\b(GTEST_SKIP|DISABLED_\w+|sleep_for|sleep_until|usleep)\b|(?<![\w.:])sleep\(")
OUTSIDE = re.compile(r"/work/|\bshared/(facts|papers|tools|prototypes|design)|\bdesign\.md\b|\.library/")
INCLUDE = re.compile(r'^\s*#include "([^"]+)"')
RTE = re.compile(r"#include <rte_")
REASONS = "proto/rocegw/types/v1/reasons.proto"
REASONED = ("controlplane/api/", "controlplane/controllers/", "gateway/apply/", "gateway/session/")
REASON = re.compile(r'"([A-Z]{2,}(?:_[A-Z]+)*)"')
LAYERED = ("gateway", "proto", "controlplane", "agent")
LIBRARY = re.compile(r"rocegw_library\(\s*NAME\s+\w+\s+LAYER\s+(\d+)")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(name for name in listed.split("\0") if name and os.path.isfile(os.path.join(ROOT, name)))


def layers():
    """Folder (TOP/NAME) to its highest layer, from the build files."""
    found = {}
    for top in LAYERED:
        for folder in sorted(os.listdir(os.path.join(ROOT, top))):
            path = os.path.join(ROOT, top, folder, "CMakeLists.txt")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    numbers = [int(number) for number in LIBRARY.findall(file.read())]
                if numbers:
                    found[f"{top}/{folder}"] = max(numbers)
    return found


def room(path):
    """TOP/NAME of a file below a layered folder, None for any other."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] in LAYERED else None


LAYERS = layers()
with open(os.path.join(ROOT, REASONS), encoding="utf-8") as words:
    EXPLAINED = set(re.findall(r"^\s+([A-Z_]+) = \d+;", words.read(), re.M))
# The client is loaded into strangers' processes and shares with the daemon only what lies in shared memory.
CLIENT_MAY_USE = {"gateway/abi", "gateway/shm", "gateway/base"}
# Programs that no library depends on; they have no layer.
PROGRAMS = {"controlplane/cli"}


def is_script(lines):
    return bool(lines) and lines[0].startswith("#!")


def licence(name, lines):
    """SPDX-License-Identifier stands at the top of every source file and script."""
    if name.endswith(SOURCE) or is_script(lines):
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
            yield 1, "no SPDX-License-Identifier at the top"


def length(name, lines):
    """No source file has more than 1000 lines, and none in Python more than 400."""
    most = MOST_LINES_OF_PYTHON if name.endswith(".py") else MOST_LINES
    if name.endswith(SOURCE) and len(lines) > most:
        yield len(lines), f"{len(lines)} lines; a file is about one thing"


def names(name, lines):
    """Nothing is called common, util, manager or the like."""
    for part in re.split(r"[/_.\-]", name):
        if part.lower() in EMPTY_NAMES:
            yield 1, f"'{part}' in a name says nothing"


def guards(name, lines):
    """Headers use #pragma once (the ABI header, which is also read by C programs, a guard)."""
    if name.endswith(".h") and not name.startswith("gateway/abi/") and not any(line.startswith("#pragma once") for line in lines):
        yield 1, "no #pragma once"


def includes(name, lines):
    """Includes are rooted at the repository (but for what the build generates) and go to lower layers only."""
    if not name.endswith(CODE):
        return
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(1)
        if "/" not in target and not target.endswith((".pb.h", "revision.h", ".inc")):
            yield number, f'"{target}" is not rooted at the repository'
        mine, theirs = room(name), room(target)
        if mine is None or theirs is None or mine == theirs:
            continue
        if mine == "gateway/client":
            if theirs not in CLIENT_MAY_USE:
                yield number, f"{mine} must not use {theirs}"
        elif mine not in PROGRAMS and LAYERS.get(theirs, 99) >= LAYERS.get(mine, -1):
            yield number, f"{mine} (layer {LAYERS.get(mine)}) must not use {theirs} (layer {LAYERS.get(theirs)})"


def dpdk(name, lines):
    """DPDK stays behind the packet port: rte_ headers only in gateway/port/dpdk/."""
    if not name.endswith(CODE) or name.startswith("gateway/port/dpdk/") or name.startswith("tests/"):
        return
    for number, line in enumerate(lines, 1):
        if RTE.search(line):
            yield number, "DPDK header outside gateway/port/dpdk/"


def core(name, lines):
    """The protocol core has no clock, threads or sockets."""
    parts = name.split("/")
    if not name.endswith(CODE) or parts[0] != "gateway" or parts[1] not in CORE:
        return
    for number, line in enumerate(lines, 1):
        if CORE_BANNED.search(line):
            yield number, f"clock, thread or socket in {parts[1]}"


def finished(name, lines):
    """Nothing is left for later in the text."""
    if name == "scripts/lib/check_rules.py":
        return
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work"


def waiting(name, lines):
    """Tests neither sleep nor skip; a benchmark may pause between two looks at what it measures."""
    if not (name.startswith("tests/") and name.endswith(CODE)) or name.startswith("tests/bench/"):
        return
    for number, line in enumerate(lines, 1):
        if IN_TESTS.search(line):
            yield number, "a test that sleeps or skips"


def alone(name, lines):
    """The tree stands alone: nothing refers to the machine or papers it was written with."""
    if name == "scripts/lib/check_rules.py":
        return
    for number, line in enumerate(lines, 1):
        if OUTSIDE.search(line):
            yield number, "refers to something outside the tree"


def reasons(name, lines):
    """Every reason for machines is explained in reasons.proto."""
    if not (name.endswith(CODE) and name.startswith(REASONED)):
        return
    for number, line in enumerate(lines, 1):
        for word in REASON.findall(line):
            if word not in EXPLAINED:
                yield number, f"{word} is not in {REASONS}"


def links(name, lines):
    """Links between documents lead to files and headings that are there."""
    if name.endswith(".md"):
        yield from broken_links(ROOT, name, lines)


def width(name, lines):
    """No line of a document is longer than 120 columns."""
    if name.endswith(".md"):
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH:
                yield number, f"{len(line)} columns; a document has at most {WIDTH}"


def comments(name, lines):
    """A comment in a finished folder (scripts/lib/comment_style.py) names its subject and has at most 120 columns."""
    if name.endswith(COMMENTED):
        yield from bad_comments(name, lines)


def handed_over(name, lines):
    """A member that a HandOver function binds is handed over, or named with the reason why not."""
    if name.endswith(CODE):
        for number, member in forgotten("\n".join(lines)):
            yield number, f"{member} is bound and not handed over"


# What mypy finds in code without annotations: names, attributes and arguments that do not exist. The other kinds are guesses
# about the types of literals there.
MYPY = ["mypy", "--ignore-missing-imports", "--explicit-package-bases", "--check-untyped-defs", "--no-error-summary",
        "--hide-error-context", "--cache-dir", os.path.join(ROOT, "build", "mypy"),
        *(word for code in ("union-attr", "var-annotated", "operator", "arg-type", "assignment", "misc", "has-type", "index")
          for word in ("--disable-error-code", code))]


def types_fit(names):
    """mypy's findings."""
    paths = ":".join(os.path.join(ROOT, path) for path in ("tests/support", "scripts/lib"))
    judged = subprocess.run([*MYPY, *names], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
                            env={**os.environ, "MYPYPATH": paths})
    for line in judged.stdout.splitlines():
        if ": note: " not in line:
            yield f"{line} [mypy]"


def folders(names):
    """No folder holds more than 28 files directly; lists of data (corpora, goldens, recorded states, runbooks) may."""
    for folder, count in full_folders(names):
        yield f"{folder}: {count} files; a folder holds at most {MOST} directly [folders]"


def judged_by_others(files):
    """Scripts pass shellcheck, flake8 and mypy."""
    scripts = {"python": [], "sh": []}
    for name in files:
        with open(os.path.join(ROOT, name), "rb") as file:
            first = file.readline()
        if name.endswith(".py"):
            scripts["python"].append(name)
        elif first.startswith(b"#!") and b"python" in first:
            yield f"{name}: a program in Python is named .py, or a shell script starts it [names]"
        elif first.startswith((b"#!/bin/bash", b"#!/bin/sh")):
            scripts["sh"].append(name)
    for command, names in ((["shellcheck", "--format=gcc"], scripts["sh"]),
                           (["flake8", "--ignore=E501,W503,W504"], scripts["python"])):
        judged = subprocess.run([*command, *names], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        for line in judged.stdout.splitlines():
            yield f"{line} [{command[0]}]"
    yield from types_fit(scripts["python"])


RULES = (licence, length, names, guards, includes, dpdk, core, finished, waiting, alone, reasons, links, width,
         comments, handed_over)


def main():
    if "--list" in sys.argv:
        for rule in RULES:
            print(f"{rule.__name__:11} {rule.__doc__}")
        print(f"folders     {folders.__doc__}")
        print(f"others      {judged_by_others.__doc__}")
        return 0
    violations = 0
    files = tracked()
    for name in files:
        try:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except UnicodeDecodeError:
            continue  # data
        if "/corpus/" in name or name == "LICENSE":
            continue
        for rule in RULES:
            for number, text in rule(name, lines):
                violations += 1
                print(f"{name}:{number}: {text} [{rule.__name__}]")
    for complaint in (*folders(files), *judged_by_others(files)):
        violations += 1
        print(complaint)
    print(f"check-rules: {len(files)} files, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
