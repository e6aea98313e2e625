# SPDX-License-Identifier: Apache-2.0
"""Runs cases one after the other and reports them: one line each, the reason of a failure, a sum at the end."""

import fnmatch
import re
import time

from netlab.job import LabError

from .case import CaseFailure

# A link that dies oftener than that in one run is not the test equipment's whim.
_LINK_FAULTS_BORNE = 6
# So many cases of one run, live peers on a machine that others use, may fail once.
_SECOND_TRIES = 2


def select(cases, patterns):
    if not patterns:
        return cases
    return [case for case in cases if any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns)]


def undocumented(cases, document):
    """Ids that the document does not describe. A line `### ID` describes a case; * stands for several."""
    with open(document, encoding="utf-8") as file:
        described = re.findall(r"^### `(\S+)`", file.read(), re.MULTILINE)
    missing = [case.id for case in cases if not any(fnmatch.fnmatchcase(case.id, one) for one in described)]
    unknown = [one for one in described if not any(fnmatch.fnmatchcase(case.id, one) for case in cases)]
    return missing, unknown


def run_cases(cases, pair, after_failure=None):
    """Returns the number of cases that failed. Cases of one link MTU run together, since changing it restarts hosts. A case
    whose link died by itself is reported and judged by a second run; so is, a few times in a run and in full view, a failure
    that both hosts survived."""
    failed = 0
    link_faults = 0
    second_tries = 0
    start = time.monotonic()
    for case in sorted(cases, key=lambda one: -one.mtu):
        began = time.monotonic()
        verdict, note = _attempt(case, pair)
        if verdict == "FAIL":
            faults = [fault for fault in (host.link_fault() for host in (pair.left, pair.right)) if fault]
            link_faults += len(faults)
            second_tries += not faults
            if link_faults <= _LINK_FAULTS_BORNE and second_tries <= _SECOND_TRIES:
                cause = "its link died" if faults else "it failed"
                print(f"again {case.id} ({time.monotonic() - began:.1f} s): {cause}", *faults, note, sep="\n", flush=True)
                began = time.monotonic()
                verdict, note = _attempt(case, pair)
        failed += verdict != "pass"
        print(f"{verdict} {case.id} ({time.monotonic() - began:.1f} s) {note}", flush=True)
        if verdict != "pass" and after_failure:
            after_failure(case)
    print(f"{len(cases)} cases, {failed} failed, {min(second_tries, _SECOND_TRIES)} tried twice, {link_faults} dead links "
          f"({time.monotonic() - start:.0f} s)", flush=True)
    return failed


def _attempt(case, pair):
    """(verdict, note). A host that did not survive the case spoils it, whatever the case itself saw; the next one gets a fresh
    host."""
    try:
        pair.use_mtu(case.mtu)
        verdict, note = "pass", case.run(pair) or ""
    except (CaseFailure, LabError) as error:
        verdict, note = "FAIL", str(error)
    stories = [story for story in (host.revive() for host in (pair.left, pair.right)) if story]
    return ("DEAD", "\n".join([note, *stories])) if stories else (verdict, note)
