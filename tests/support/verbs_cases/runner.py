# SPDX-License-Identifier: Apache-2.0
"""Runs cases one after the other and reports them: one line each, the reason of a failure, a sum at the end."""

import fnmatch
import re
import time

from netlab.job import LabError

from .case import CaseFailure

# A link that dies oftener than that in one run is not the test equipment's whim.
_LINK_FAULTS_BORNE = 6
# More failures than that in one run are no accident of timing.
_TRIED_AGAIN = 3


def select(cases, patterns, without=()):
    """Cases whose id matches one of the patterns, all if there are none, and matches none of those of `without`."""
    def matches(case, globs):
        return any(fnmatch.fnmatchcase(case.id, glob) for glob in globs)
    return [case for case in cases if (not patterns or matches(case, patterns)) and not matches(case, without)]


def undocumented(cases, document):
    """Ids that the document does not describe. A line `### ID` describes a case; * stands for several."""
    with open(document, encoding="utf-8") as file:
        described = re.findall(r"^### `(\S+)`", file.read(), re.MULTILINE)
    missing = [case.id for case in cases if not any(fnmatch.fnmatchcase(case.id, one) for one in described)]
    unknown = [one for one in described if not any(fnmatch.fnmatchcase(case.id, one) for case in cases)]
    return missing, unknown


def run_cases(cases, pair, after_failure=None):
    """Returns the ids of cases that failed, and whether a second try of them alone would tell something: not if a host did
    not survive a case, for what came before may have had its part in it. Cases of one link MTU run together, since changing it restarts hosts. A case
    whose link died by itself is reported and judged by a second run. A few others that failed are tried once more at the
    end, beside less of what else runs on the machine; the report names them."""
    start = time.monotonic()
    judge = _Judge(pair, after_failure)
    failed = [case for case in sorted(cases, key=lambda one: -one.mtu) if not judge.passes(case)]
    # The end of a host is never an accident of timing.
    again = [case for case in failed if case not in judge.ended_hosts] if len(failed) <= _TRIED_AGAIN else []
    if again:
        print(f"tried again: {', '.join(case.id for case in again)}", flush=True)
        failed = [case for case in failed if case not in again or not judge.passes(case)]
    dead = f", {judge.link_faults} after the link had died" if judge.link_faults else ""
    tries = f", {len(again)} tried again" if again else ""
    print(f"{len(cases)} cases, {len(failed)} failed{tries}{dead} ({time.monotonic() - start:.0f} s)", flush=True)
    return [case.id for case in failed], not judge.ended_hosts


class _Judge:
    """Runs cases and prints a line for each. pair: the two hosts; after_failure(case): what else to print of a failure."""

    def __init__(self, pair, after_failure):
        self.link_faults = 0
        self.ended_hosts = []  # cases that a host did not survive
        self._pair = pair
        self._after_failure = after_failure

    def passes(self, case):
        began = time.monotonic()
        verdict, note = _attempt(case, self._pair)
        hosts = (self._pair.left, self._pair.right)
        if verdict == "FAIL":
            faults = [fault for fault in (host.link_fault() for host in hosts) if fault]
            self.link_faults += len(faults)
            if faults:
                print(f"link {case.id} ({time.monotonic() - began:.1f} s) is run again:", *faults, note, sep="\n", flush=True)
                if self.link_faults <= _LINK_FAULTS_BORNE:
                    began = time.monotonic()
                    verdict, note = _attempt(case, self._pair)
        # A host that did not survive the case spoils it, whatever the case itself saw; the next one gets a fresh host.
        stories = [story for story in (host.revive() for host in hosts) if story]
        if stories:
            verdict, note = "FAIL", "\n".join([note, *stories])
            self.ended_hosts.append(case)
        print(f"{verdict} {case.id} ({time.monotonic() - began:.1f} s) {note}", flush=True)
        if verdict == "FAIL" and self._after_failure:
            self._after_failure(case)
        return verdict == "pass"


def _attempt(case, pair):
    """(verdict, note)"""
    try:
        pair.use_mtu(case.mtu)
        return "pass", case.run(pair) or ""
    except (CaseFailure, LabError) as error:
        return "FAIL", str(error)
