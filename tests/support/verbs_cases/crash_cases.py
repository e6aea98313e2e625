# SPDX-License-Identifier: Apache-2.0
"""Cases in which a program is killed in the middle of its work: its peer notices, nobody else does, nothing is left."""

import signal

from netlab.job import LabError

from .case import Case, CaseFailure, expect
from .check_cases import endless, rdma_check

# Longer than the retries of a connection that was made by socket exchange (8 time-outs of some 100 ms).
NOTICE = 30


def _killed(identifier, left_is_active, kill_left, connect):
    def run(pair):
        client, server = endless(pair, left_is_active, connect)
        left, right = (client, server) if left_is_active else (server, client)
        victim, witness = (left, right) if kill_left else (right, left)
        try:
            victim.signal(signal.SIGKILL)
            # rdma_cm announces the end of a program; without it the requests must give up.
            due = "disconnected" if connect == "cm" else "transport retry counter exceeded"
            witness.expect(f"^endless: {due}", NOTICE)
        except LabError as error:
            raise CaseFailure(f"the peer of a killed program did not notice:\n{error}") from error
        finally:
            for job in (client, server):
                job.signal(signal.SIGKILL)
                job.wait(10)
        ran = rdma_check(pair, left_is_active, connect, cases="transfer.mixed*,transfer.both_ways")
        for host in (pair.left, pair.right):
            host.expect_idle()
        return f"the peer saw '{due}'; {len(ran)} rdma_check cases afterwards"
    return Case(identifier, 1500, run)


def _neighbour_unharmed(connect):
    """While one program is killed again and again, another one on the same gateway works on."""
    def run(pair):
        port = pair.right.fresh_port()
        server = pair.right.start([pair.right.program("rdma_check"), "server", "--port", str(port)])
        server.expect("serving on port", 30)
        neighbour = pair.left.start([pair.left.program("rdma_check"), "client", pair.right.address4, "--port", str(port),
                                     "--connect", connect, "--cases", "transfer.*"])
        kills = 0
        try:
            while neighbour.running:
                client, other = endless(pair, True, connect)
                client.signal(signal.SIGKILL)
                client.wait(10)
                other.signal(signal.SIGKILL)
                kills += 1
                expect(kills < 100, f"the neighbour of killed programs does not end:\n{neighbour.output}")
            expect(neighbour.returncode == 0, f"the neighbour of killed programs failed:\n{neighbour.output}")
        finally:
            neighbour.signal(signal.SIGKILL)
            server.signal(signal.SIGKILL)
            server.wait(10)
        for host in (pair.left, pair.right):
            host.expect_idle()
        return f"{kills} programs killed meanwhile"
    return Case(f"crash.neighbour.{connect}", 1500, run)


def crash_cases():
    cases = []
    for connect in ("cm", "socket"):
        for role, left_is_active in (("active", True), ("passive", False)):
            cases.append(_killed(f"crash.left_killed.{connect}.{role}", left_is_active, True, connect))
            cases.append(_killed(f"crash.right_killed.{connect}.{role}", left_is_active, False, connect))
        cases.append(_neighbour_unharmed(connect))
    return cases
