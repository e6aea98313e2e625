#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Asks whether the tests would notice: changes one small thing in a copy of the source (a comparison, a sign, a condition, a
statement left out), builds the quick tests of that folder anew and runs them. A change that no test notices survives and is
printed: either a test is missing, or the change means the same. Not part of CI: choose a time and read the survivors.
Nothing outside of build/mutate is touched. Exit status: 0, or 1 when the tests fail without any change."""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build" / "mutate"
COPY = WORK / "source"
BUILD = WORK / "build"
# The tests that cover a folder, quickest first.
TESTS = {
    "wire": ["unit_wire", "unit_mad", "property_wire"],
    "shm": ["unit_shm", "unit_post_and_take"],
    "verbs": ["unit_verbs", "unit_transport"],
    "flow": ["unit_flow", "unit_transport"],
    "transport": ["unit_transport", "property_transport_pair"],
}
TEST_LIMIT_S = 60
MEMORY_LIMIT = 4 << 30

# What is replaced by what. Spaces keep templates, references and pointers out of it.
SWAPS = [
    (" == ", " != "), (" != ", " == "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
    (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), (" & ", " | "), (" << ", " >> "), (" >> ", " << "),
    ("++", "--"), (" += ", " -= "), (" -= ", " += "), ("true", "false"), ("false", "true"), ("std::min", "std::max"),
    ("std::max", "std::min"),
]
STATEMENT = re.compile(r"^\s+(?!return\b|using\b|friend\b|static\b|const\b|auto\b|break\b|case\b|else\b|default\b|goto\b|throw\b)"
                       r"((\+\+|--)?[\w:.>\[\]()*-]+(\(.*\)|\+\+|--| [|&^+*-]?= .*);)$")
CONDITION = re.compile(r"\bif \((?!constexpr)(.*)\)( \{| [^;{]*;)$")
# A member's first value: mostly replaced before it is read.
DEFAULT = re.compile(r"^\s+[\w:<>]+ \w+ = \w+;")
NUMBER = re.compile(r"(?<=[ (\[,])(\d+)(?=[;,)\] ])")


def code_of(line):
    """The line with comments and literals blanked, so that offsets stay."""
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'', lambda found: "#" * len(found.group()), line)
    return re.sub(r"//.*", lambda found: " " * len(found.group()), line)


def mutations_of(text):
    """Pairs of line number and new line."""
    for number, line in enumerate(text.split("\n")):
        code = code_of(line)
        if not code.strip() or re.match(r"\s*(#|static_assert|using |template|enum |namespace)", code):
            continue
        if DEFAULT.match(code):
            continue
        for old, new in SWAPS:
            for found in re.finditer(re.escape(old), code):
                yield number, line[:found.start()] + new + line[found.end():]
        for found in NUMBER.finditer(code):
            yield number, f"{line[:found.start()]}{int(found.group()) + 1}{line[found.end():]}"
        if found := CONDITION.search(code):
            condition = found.group(1)
            if condition.count("(") == condition.count(")") and ";" not in condition:
                yield number, f"{line[:found.start(1)]}!({line[found.start(1):found.end(1)]}){line[found.end(1):]}"
        if code.rstrip() == line and STATEMENT.match(code) and code.count("(") == code.count(")"):
            yield number, ""


def run(command, limit):
    """Exit status; none when it ran too long or took too much memory."""
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=bound) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def ninja(targets):
    return subprocess.run(["ninja", "-j2", "-C", str(BUILD), *targets], capture_output=True, text=True)


def prepare(targets):
    """A copy of the source as it is, built; false when it does not pass."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    COPY.mkdir(parents=True, exist_ok=True)
    for old in [path for path in COPY.rglob("*") if path.is_file() and str(path.relative_to(COPY)) not in wanted]:
        old.unlink()
    for name in wanted:
        to = COPY / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_bytes() != (ROOT / name).read_bytes():
            shutil.copy(ROOT / name, to)
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
                        "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DROCEGW_WITH_GRPC=OFF", "-DROCEGW_WITH_DPDK=OFF",
                        "-DROCEGW_WITH_BENCH=OFF", "-DROCEGW_FAST_TESTS=ON"], check=True, stdout=subprocess.DEVNULL)
    built = ninja(targets)
    if built.returncode != 0:
        print(built.stdout[-3000:], file=sys.stderr)
        return False
    failing = [target for target in targets if run([str(BUILD / "bin" / target)], TEST_LIMIT_S) != 0]
    for target in failing:
        print(f"mutate: {target} fails without any change", file=sys.stderr)
    return not failing


def judge(mutation):
    path = COPY / mutation["file"]
    text = path.read_text()
    lines = text.split("\n")
    lines[mutation["line"] - 1] = mutation["new"]
    path.write_text("\n".join(lines))
    try:
        # One after the other: most changes are noticed by the first, and a header's make the others slow to build.
        for target in TESTS[mutation["folder"]]:
            if ninja([target]).returncode != 0:
                return "not compiled"
            if run([str(BUILD / "bin" / target), "--gtest_fail_fast", "--gtest_brief=1"], TEST_LIMIT_S) != 0:
                return "killed"
        return "survived"
    finally:
        path.write_text(text)


def find(folders, only):
    found = {}
    for folder in folders:
        found[folder] = []
        for path in sorted((ROOT / "gateway" / folder).glob("*.[ch]*")):
            name = str(path.relative_to(ROOT))
            if path.suffix not in (".cc", ".h") or (only and not any(part in name for part in only)):
                continue
            text = path.read_text()
            lines = text.split("\n")
            found[folder] += [{"folder": folder, "file": name, "line": number + 1, "old": lines[number], "new": new}
                              for number, new in mutations_of(text)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", help=f"of gateway/: {', '.join(TESTS)}; all when none is named")
    parser.add_argument("--only", action="append", metavar="PART", help="files whose path contains PART")
    parser.add_argument("--count", type=int, default=100, help="changes to try, taken in turn from the folders (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="begin no change later than this (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones are taken (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print how many there are, and stop")
    parser.add_argument("--again", metavar="FILE", help="only those that survived in FILE, which --json has written")
    parser.add_argument("--json", metavar="FILE", help="write every result")
    options = parser.parse_args()
    folders = options.folder or list(TESTS)
    if unknown := [folder for folder in folders if folder not in TESTS]:
        parser.error(f"no folder {unknown[0]!r}; there are {', '.join(TESTS)}")
    os.nice(19)
    found = find(folders, options.only)
    print("mutate: " + ", ".join(f"{folder} {len(mutations)}" for folder, mutations in found.items()) + " possible changes")
    if options.list:
        return 0
    pick = random.Random(options.seed)
    for mutations in found.values():
        pick.shuffle(mutations)
    turn = [m for group in zip(*[ms + [None] * (max(map(len, found.values())) - len(ms)) for ms in found.values()]) for m in group if m]
    if options.again:
        earlier = {(m["file"], m["old"], m["new"]) for m in json.loads(pathlib.Path(options.again).read_text())
                   if m["result"] == "survived"}
        turn = [m for m in turn if (m["file"], m["old"], m["new"]) in earlier]
    if not prepare(sorted({target for folder in folders for target in TESTS[folder]})):
        return 1
    ends = time.monotonic() + options.minutes * 60
    results = []
    try:
        for mutation in turn[:options.count]:
            if time.monotonic() > ends:
                break
            result = judge(mutation)
            results.append({**mutation, "result": result})
            if result == "survived":
                print(f"survived  {mutation['file']}:{mutation['line']}\n  - {mutation['old'].strip()}\n  + {mutation['new'].strip()}",
                      flush=True)
    except KeyboardInterrupt:
        print("mutate: stopped")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{'folder':12}{'killed':>8}{'survived':>10}{'not compiled':>14}")
    for folder in folders:
        counts = [sum(1 for r in results if r["folder"] == folder and r["result"] == kind)
                  for kind in ("killed", "survived", "not compiled")]
        print(f"{folder:12}{counts[0]:8}{counts[1]:10}{counts[2]:14}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
