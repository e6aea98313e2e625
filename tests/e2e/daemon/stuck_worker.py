#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that a program of a trusted pool stops is named by /livez and in the log, and /livez is well again when the program has
ended: stuck_worker BINARIES. Needs root."""

import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair, http_get  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402

_METRICS_PORT = 7474
_WITHIN_S = 60


def _livez(host):
    try:
        http_get(host.namespace, _METRICS_PORT, "/livez")
        return "200"
    except LabError as error:
        return str(error)


def _await(host, status):
    """The answer of /livez once it holds this text."""
    deadline = time.monotonic() + _WITHIN_S
    while status not in (answer := _livez(host)):
        if time.monotonic() > deadline:
            raise LabError(f"/livez: {answer!r} in place of {status}; log:\n{host.log()[-3000:]}")
        time.sleep(0.2)
    return answer


def _expect(text, part):
    if part not in text:
        raise LabError(f"{part!r} is not in {text!r}")


def main():
    binaries = os.path.abspath(sys.argv[1])
    with Lab() as lab:
        left, right = (host.start_gateway() for host in gateway_pair(lab, binaries))
        server = right.start([right.program("neighbour"), "serve", str(right.gid_index(right.address4)), "21000"])
        server.expect("serving", 30)
        _await(left, "200")
        program = left.start([left.program("neighbour"), "blocked_memory", str(left.gid_index(left.address4)), "21000",
                              right.address4])
        _expect(_await(left, "HTTP/1.1 503"), "worker 0 has been stuck for")
        # A thread of the daemon's own writes the log.
        left.daemon.expect("watchdog: worker 0", 30)
        left.daemon.expect("call stack: ", 30)
        program.signal(9)
        program.wait(30)
        _await(left, "200")
        server.signal(9)
        server.wait(30)
        status = left.stop_gateway()
        if status != 0:
            raise LabError(f"the gateway ended with {status}")
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
