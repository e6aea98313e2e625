# SPDX-License-Identifier: Apache-2.0
"""rdma-core's own test suite, from Debian's package of pyverbs, on the left host's device: both sides of a test are in one process.
Every test must pass, or be skipped for one of the reasons below."""

import gzip
import os
import re
import shutil

from netlab.job import LabError

from .case import Case, CaseFailure, expect

_PACKAGED = "/usr/share/doc/rdma-core/tests"
_TIMEOUT = 120
# How many tests of each file pass at least; what needs huge pages passes where there are some.
_PASSING = {
    "addr": 3, "atomic": 9, "cq": 3, "cq_events": 2, "cqex": 5, "device": 13, "fork": 1, "mr": 12, "odp": 15, "parent_domain": 1, "pd": 4,
    "qp": 21, "qpex": 19, "rdmacm": 10, "relaxed_ordering": 3, "shared_pd": 0,
}
# Of other devices, of this machine, or refused (docs/user/compatibility.md).
_SKIPS = re.compile(r"Device memory is not supported|Create Raw Packet QP .* is not supported|Extended QP is not supported"
                    r"|Importing a device is not supported|Parent Domain is not supported|Allocating dmabuf is not supported"
                    r"|There are no huge pages")
# It looks for completions of what it has posted a moment before, without waiting: on a busy machine there are none yet.
_MAY_FAIL = {"test_resize_cq"}
# Names, often a line about the test, sometimes what it prints, and the verdict.
_VERDICT = re.compile(r"^(test_\w+) \(tests\.[\w.]+\)(?:\n.*?)? \.\.\. (?:.*\n)??.*?(ok|skipped|ERROR|FAIL)\b(.*)$", re.MULTILINE)


def _unpacked(host):
    """The suite as its program expects it: Debian compresses the larger files."""
    folder = os.path.join(host.directory, "tests")
    if os.path.isdir(folder):
        return folder
    expect(os.path.isdir(_PACKAGED), f"{_PACKAGED} of the package python3-pyverbs is not there")
    os.mkdir(folder)
    for name in os.listdir(_PACKAGED):
        source = os.path.join(_PACKAGED, name)
        with (gzip.open if name.endswith(".gz") else open)(source, "rb") as packed:
            with open(os.path.join(folder, name.removesuffix(".gz")), "wb") as file:
                shutil.copyfileobj(packed, file)
    return folder


def _run(pair, name):
    host = pair.left
    program = os.path.join(_unpacked(host), "run_tests.py")
    job = host.start(["/usr/bin/python3", program, "--dev", host.device, "-v", f"tests.test_{name}"])
    try:
        job.wait(_TIMEOUT)
    except LabError as error:
        job.signal(9)
        raise CaseFailure(f"{error}\n{job.output}") from error
    verdicts = _VERDICT.findall(job.output)
    ran = re.search(r"^Ran (\d+) tests? in", job.output, re.MULTILINE)
    expect(ran and int(ran.group(1)) == len(verdicts), f"{len(verdicts)} verdicts were understood:\n{job.output}")
    for test, verdict, rest in verdicts:
        if verdict == "skipped":
            expect(_SKIPS.search(rest), f"{test} was skipped:{rest}")
        else:
            expect(test in _MAY_FAIL or verdict == "ok", f"{test}: {verdict}\n{job.output}")
    passed = sum(verdict == "ok" for _, verdict, _ in verdicts)
    expect(passed >= _PASSING[name], f"{passed} tests passed, {_PASSING[name]} were due:\n{job.output}")
    host.expect_idle()
    return f"{passed} of {len(verdicts)} tests"


def pyverbs_cases():
    return [Case(f"pyverbs.{name}", 4200, lambda pair, name=name: _run(pair, name)) for name in _PASSING]
