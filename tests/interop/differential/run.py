#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the same verb scripts between two soft-RoCE guests and between two gateways, and compares what both say: every
completion with its status, opcode, length and immediate, their order, and the memory at the end.

  tests/interop/differential/run.py                          all scripts
  tests/interop/differential/run.py --only 'fault.*' --show  some of them, with what both said
  tests/interop/differential/run.py --channels enabled       only with gateways whose queue pairs share channels
  tests/interop/differential/run.py --kept FOLDER            soft-RoCE's words of an earlier run in FOLDER, or kept there by this one

The two may differ where cases.md, section "Differences", says so, and must differ there: a difference that is not listed
fails, and so does a listed one that is not found. Exit status 0: no other differences; 1: some; 2: it could not run."""

import argparse
import difflib
import fnmatch
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.rxe_guest import RxeGuest, prepare_image  # noqa: E402
from verbs_cases.suite import default_binaries  # noqa: E402

LINK_MTU = 4200
TIMEOUT = 300
ADDRESSES = [(f"10.77.0.{number}", f"fd77::{number}") for number in (1, 2)]
_ENTRY = re.compile(r"^- `([^`]+)` \((all|native|channels)\): .+?\n"
                    r"  - soft-RoCE: (nothing|`[^`]+`)\n  - gateway: (nothing|`[^`]+`)\n", re.MULTILINE | re.DOTALL)
_HOW = {"disabled": "native", "enabled": "channels"}


def rxe_guests(lab, arguments):
    """Two guests on a bridge."""
    image = prepare_image(lab, os.path.join(arguments.binaries, "..", "guest"),
                          os.path.join(arguments.binaries, "guest_agent"),
                          [os.path.join(arguments.binaries, "verbs_script")])
    namespace = lab.namespace("bridge")
    taps = ("tap0", "tap1")
    for tap in taps:
        lab.tap(namespace, tap, LINK_MTU)
    lab.bridge(namespace, "link0", taps, LINK_MTU)
    guests = [RxeGuest(lab, name, namespace, tap, addresses, image, LINK_MTU)
              for name, tap, addresses in zip(("left", "right"), taps, ADDRESSES)]
    return [guest.wait_ready() for guest in guests]


def gateways(lab, arguments, channels):
    hosts = gateway_pair(lab, arguments.binaries, mtu=LINK_MTU, settings=f"gateways: {{channels: {channels}}}\n")
    return [host.start_gateway() for host in hosts]


def play(hosts, only):
    """What the scripts say between two hosts: name of a script to its lines."""
    left, right = hosts
    port = right.fresh_port()
    server = right.start([right.program("verbs_script"), "right", "--port", str(port)])
    try:
        server.expect("serving on port", 30)
        client = left.start([left.program("verbs_script"), "left", right.address4, "--port", str(port), "--only", only])
        try:
            status = client.wait(TIMEOUT)
        finally:
            client.signal(9)
    finally:
        server.signal(9)
    if status != 0:
        raise LabError(f"{client.title} ended with {status}:\n{client.output[-3000:]}\n{server.output[-3000:]}")
    return parse(client.output)


def parse(text):
    scripts = {}
    lines = None
    for line in text.splitlines():
        if line.startswith("== "):
            lines = scripts.setdefault(line[3:].strip(), [])
        elif lines is not None and not re.fullmatch(r"\d+ scripts", line.strip()):
            lines.append(line.rstrip())
    return scripts


def known_differences(document):
    """(script, native or channels) to what soft-RoCE and what a gateway says there, as lists of lines."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    known = {}
    for script, where, rxe, ours in _ENTRY.findall(text[text.index("## Differences"):]):
        for how in _HOW.values() if where == "all" else [where]:
            known[script, how] = tuple([] if side == "nothing" else " ".join(side.strip("`").split()).split("; ")
                                       for side in (rxe, ours))
    return known


def difference(rxe, ours):
    """The lines that only one of the two says, in order."""
    only = ([], [])
    for mark, _, line in ((line[0], line[1], line[2:]) for line in difflib.ndiff(rxe, ours)):
        if mark in "-+":
            only["-+".index(mark)].append(line)
    return only


def judge(how, rxe, ours, known, show):
    """Number of scripts that differ otherwise than known."""
    wrong = 0
    for script in sorted(set(rxe) | set(ours)):
        if show:
            print(f"== {script}, {how}", *difflib.ndiff(rxe.get(script, []), ours.get(script, [])), sep="\n")
        found = difference(rxe.get(script, ["not played"]), ours.get(script, ["not played"]))
        expected = known.get((script, how), ([], []))
        if found == expected:
            continue
        wrong += 1
        print(f"DIFFERS {script}, {how}")
        for side, lines, due in zip(("soft-RoCE", "gateway"), found, expected):
            print(f"  {side} alone: {'; '.join(lines) or 'nothing'}; cases.md: {'; '.join(due) or 'nothing'}")
    return wrong


def soft_roce(arguments):
    """What soft-RoCE says, played now or, with --kept, by an earlier run."""
    kept = arguments.kept and os.path.join(arguments.kept, "soft_roce.txt")
    if kept and os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            return {name: lines for name, lines in parse(file.read()).items() if fnmatch.fnmatchcase(name, arguments.only)}
    with Lab() as lab:
        said = play(rxe_guests(lab, arguments), arguments.only)
    if kept:
        with open(kept, "w", encoding="utf-8") as file:
            for name, lines in said.items():
                print(f"== {name}", *lines, sep="\n", file=file)
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="GLOB", help="only scripts whose name matches")
    parser.add_argument("--channels", choices=("enabled", "disabled"), help="between the gateways; else once each")
    parser.add_argument("--binaries", type=os.path.abspath, default=default_binaries(), help="bin folder of the build to test")
    parser.add_argument("--kept", metavar="FOLDER", help="keep there what soft-RoCE says, or take it from there")
    parser.add_argument("--show", action="store_true", help="print what both say")
    arguments = parser.parse_args()
    known = known_differences(os.path.join(HERE, "..", "cases.md"))
    try:
        rxe = soft_roce(arguments)
        ours = {}
        for channels in [arguments.channels] if arguments.channels else ["disabled", "enabled"]:
            with Lab() as lab:
                ours[_HOW[channels]] = play(gateways(lab, arguments, channels), arguments.only)
    except (LabError, KeyboardInterrupt) as error:
        print(f"differential: {error or 'interrupted'}", file=sys.stderr)
        return 2
    forgotten = sorted({script for script, _ in known if fnmatch.fnmatchcase(script, arguments.only)} - set(rxe))
    wrong = len(forgotten)
    for how, said in ours.items():
        wrong += judge(how, rxe, said, known, arguments.show)
    if forgotten:
        print(f"cases.md lists differences of scripts that do not exist: {forgotten}")
    listed = len({script for script, _ in known} & set(rxe))
    print(f"{len(rxe)} scripts, {listed} with a known difference, {wrong} wrong")
    return 1 if wrong or not rxe else 0


if __name__ == "__main__":
    sys.exit(main())
