# SPDX-License-Identifier: Apache-2.0
"""Cases that run rdma_check between the hosts: every verb, every byte compared."""

import contextlib
import re
import signal

from netlab.job import LabError

from .case import Case, CaseFailure, expect

_LINE = re.compile(r"^case (\S+) (ok|FAIL)(.*)$", re.MULTILINE)
TIMEOUT = 240


def endless(pair, left_is_active, connect, user=None):
    """rdma_check's endless traffic, already flowing: (active job, passive job)."""
    active, passive = pair.roles(left_is_active)
    port = passive.fresh_port()
    server = passive.start([passive.program("rdma_check"), "server", "--port", str(port)], user=user)
    server.expect("serving on port", 30)
    client = active.start([active.program("rdma_check"), "client", passive.address4, "--port", str(port),
                           "--connect", connect, "--cases", "endless.traffic"], user=user)
    for job in (client, server):
        job.expect(r"^endless: \d+ requests", 60)
    return client, server


@contextlib.contextmanager
def endless_traffic(pair):
    """The same from the left by rdma_cm, until the end of the block; the job at the left."""
    client, server = endless(pair, True, "cm")
    try:
        yield client
    finally:
        for job in (client, server):
            job.signal(signal.SIGKILL)
            job.wait(10)


def rdma_check(pair, left_is_active, connect, cases="*", mtu=1024, wait="poll", family=4, qps=4, seed=1, user=None,
               remap=None):
    """Runs rdma_check with the active host as its client. Returns the ids of the cases that ran; all were good."""
    active, passive = pair.roles(left_is_active)
    port = passive.fresh_port()

    def environment(host):
        # A host without a gateway has nothing to remap, and maybe no env(1).
        return ["env", f"ROCEGW_REMAP={remap}"] if remap and host.is_gateway else []

    server = passive.start([*environment(passive), passive.program("rdma_check"), "server", "--port", str(port)], user=user)
    try:
        server.expect("serving on port", 30)
        address = passive.address4 if family == 4 else passive.address6
        client = active.start([*environment(active), active.program("rdma_check"), "client", address, "--port", str(port),
                               "--connect", connect, "--cases", cases, "--mtu", str(mtu), "--wait", wait,
                               "--qps", str(qps), "--seed", str(seed)], user=user)
        try:
            status = client.wait(TIMEOUT)
        except LabError as error:
            client.signal(9)
            raise CaseFailure(str(error)) from error
    finally:
        server.signal(9)
        server.wait(10)  # its gateway may be inside of it, and hold the port
    results = _LINE.findall(client.output)
    failed = [f"{name}:{why}" for name, verdict, why in results if verdict != "ok"]
    how = f"{'active' if left_is_active else 'passive'}, {connect}, seed {seed}"
    expect(not failed, f"{len(failed)} of {len(results)} rdma_check cases failed ({how}):\n      " + "\n      ".join(failed))
    expect(status == 0 and results, f"rdma_check ended with {status}:\n{client.output}\nserver:\n{server.output}")
    return [name for name, _, _ in results]


def _case(identifier, link_mtu, left_is_active, **options):
    def run(pair):
        with pair.counted(at_least=2):
            ran = rdma_check(pair, left_is_active, **options)
        return f"{len(ran)} rdma_check cases"
    return Case(identifier, link_mtu, run)


def check_cases():
    cases = []
    for role, left_is_active in (("active", True), ("passive", False)):
        cases += [
            _case(f"check.cm.{role}.mtu4096", 4200, left_is_active, connect="cm"),
            _case(f"check.cm.{role}.mtu1024", 1500, left_is_active, connect="cm", wait="event"),
            _case(f"check.socket.{role}.mtu4096", 4200, left_is_active, connect="socket", mtu=4096, wait="event"),
            _case(f"check.socket.{role}.mtu1024", 1500, left_is_active, connect="socket", mtu=1024),
            # The other path MTUs and IPv6 change the packets, not what errors or connections do.
            _case(f"check.socket.{role}.mtu256", 4200, left_is_active, connect="socket", mtu=256,
                  cases="transfer.*,datagram.*", seed=2),
            _case(f"check.socket.{role}.mtu512", 4200, left_is_active, connect="socket", mtu=512,
                  cases="transfer.*,atomic.*", seed=3),
            _case(f"check.socket.{role}.mtu2048", 4200, left_is_active, connect="socket", mtu=2048,
                  cases="transfer.*", seed=4),
            _case(f"check.cm.{role}.ipv6", 4200, left_is_active, connect="cm", family=6, seed=5,
                  cases="transfer.*,atomic.*,connect.*"),
            _case(f"check.socket.{role}.ipv6", 1500, left_is_active, connect="socket", family=6, seed=6,
                  cases="transfer.*,atomic.*,datagram.*"),
            _case(f"check.cm.{role}.qps32", 4200, left_is_active, connect="cm", qps=32, seed=7,
                  cases="transfer.many_qps*,transfer.both_ways,atomic.contention*,connect.disconnect*"),
        ]
    return cases
