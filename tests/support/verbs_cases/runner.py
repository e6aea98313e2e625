# SPDX-License-Identifier: Apache-2.0
"""Runs cases one after the other and reports them: one line each, the reason of a failure, a sum at the end."""

import fnmatch
import re
import time

from netlab.job import LabError

from .case import CaseFailure

# A link that dies oftener than that in one run is not the test equipment's whim.
_LINK_FAULTS_BORNE = 6


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
    whose link died by itself is reported and judged by a second run."""
    failed = 0
    link_faults = 0
    start = time.monotonic()
    for case in sorted(cases, key=lambda one: -one.mtu):
        began = time.monotonic()
        verdict, note = _attempt(case, pair)
        if verdict == "FAIL":
            faults = [fault for fault in (host.link_fault() for host in (pair.left, pair.right)) if fault]
            link_faults += len(faults)
            if faults:
                print(f"link {case.id} ({time.monotonic() - began:.1f} s) is run again:", *faults, note, sep="\n", flush=True)
                if link_faults <= _LINK_FAULTS_BORNE:
                    began = time.monotonic()
                    verdict, note = _attempt(case, pair)
        failed += verdict == "FAIL"
        # A host that did not survive the case spoils it, whatever the case itself saw; the next one gets a fresh host.
        stories = [story for story in (host.revive() for host in (pair.left, pair.right)) if story]
        if stories:
            failed += verdict == "pass"
            verdict, note = "FAIL", "\n".join([note, *stories])
        print(f"{verdict} {case.id} ({time.monotonic() - began:.1f} s) {note}", flush=True)
        if verdict == "FAIL" and after_failure:
            after_failure(case)
    dead = f", {link_faults} after the link had died" if link_faults else ""
    print(f"{len(cases)} cases, {failed} failed{dead} ({time.monotonic() - start:.0f} s)", flush=True)
    return failed


def _attempt(case, pair):
    """(verdict, note)"""
    try:
        pair.use_mtu(case.mtu)
        return "pass", case.run(pair) or ""
    except (CaseFailure, LabError) as error:
        return "FAIL", str(error)
