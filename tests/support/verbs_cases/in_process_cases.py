# SPDX-License-Identifier: Apache-2.0
"""Cases with the gateway inside of the program, at one end or at both: the same programs, and what happens when they end."""

import contextlib
import re
import signal

from netlab.job import LabError

from .case import Case, CaseFailure, expect
from .check_cases import endless, rdma_check
from .crash_cases import NOTICE
from .tool_cases import perftest, pingpong, rping, run_tool


def _launcher(host, *options):
    return [host.program("rocegw-run"), "--in-process", "--address", host.address4, *options, "--"]


@contextlib.contextmanager
def in_process(*hosts, options=()):
    """Programs of these hosts bring their gateway along, with these options of rocegw-run; their daemons are stopped meanwhile."""
    usual = {host: host.launcher for host in hosts}
    for host in hosts:
        host.stop_gateway()
        host.launcher = _launcher(host, *options)
        host.forget_gids()
    try:
        yield
    finally:
        for host in hosts:
            host.launcher = usual[host]
            host.forget_gids()
            host.start_gateway()


def _case(name, mtu, run):
    return Case(f"in_process.{name}", mtu, run, needs="in_process")


def _programs(name, both, options=()):
    def run(pair):
        notes, ran = [], []
        with in_process(*((pair.left, pair.right) if both else (pair.left,)), options=options):
            # With both alike the roles are too.
            for left_is_active in (True,) if both else (True, False):
                notes.append(perftest(pair, left_is_active, "ib_write_bw", "cm"))
                notes.append(perftest(pair, left_is_active, "ib_send_lat", "socket", 4096))
                rping(pair, left_is_active, 4)
                pingpong(pair, "ibv_rc_pingpong", ["-m", "4096"], left_is_active)
                ran += rdma_check(pair, left_is_active, "cm", cases="transfer.*,atomic.*,connect.*")
                ran += rdma_check(pair, left_is_active, "socket", cases="transfer.*,datagram.*", wait="event")
        return f"{len(ran)} rdma_check cases; ib_write_bw, ib_send_lat: " + "; ".join(notes)
    return _case(name, 4200, run)


def _killed(connect):
    def run(pair):
        with in_process(pair.left):
            client, server = endless(pair, True, connect)
            try:
                client.signal(signal.SIGKILL)
                # Nobody is left who could announce the end.
                server.expect("^endless: (transport retry counter exceeded|disconnected)", NOTICE)
            except LabError as error:
                raise CaseFailure(f"the peer of a killed program did not notice:\n{error}") from error
            finally:
                for job in (client, server):
                    job.signal(signal.SIGKILL)
                    job.wait(10)
            # The next one has the address and is another gateway.
            ran = rdma_check(pair, True, connect, cases="transfer.mixed*,transfer.both_ways")
        pair.right.expect_idle()
        return f"the peer saw it; {len(ran)} rdma_check cases of the next one"
    return _case(f"killed.{connect}", 1500, run)


def _exit(pair):
    """A program that just ends: its peer is told, and the program's own handlers find verbs in order."""
    with in_process(pair.left):
        for how in ("return", "exit"):
            port = pair.right.fresh_port()
            words = ["rping", "-s", "-d", "-a", pair.right.address4, "-p", str(port)]
            outputs = run_tool(pair, True, words, [pair.left.program("exit_connected"), pair.right.address4, str(port), how],
                               ready="rdma_listen")
            expect("RDMA_CM_EVENT_DISCONNECTED" in outputs[0], f"the peer was not told:\n{outputs[0]}")
            expect(how == "return" or "handler: attached" in outputs[1], f"a handler came too late:\n{outputs[1]}")
    pair.right.expect_idle()
    return "told of the end"


def _port_taken(pair):
    """Beside a daemon, and beside another one at the same address: one line with the remedy; at another address it works."""
    job = pair.left.start_plain([*_launcher(pair.left), "ibv_devinfo"])
    expect(job.wait(20) == 125, f"started beside a daemon:\n{job.output}")
    expect(re.fullmatch(r"rocegw-run: UDP port 4791 of \S+ is taken, by a rocegwd or another program .*--address.*\n", job.output),
           f"said:\n{job.output}")
    # Past the launcher's own look.
    library = f"{pair.left.binaries}/../lib/librocegw-verbs.so"
    job = pair.left.start_plain(["env", f"LD_PRELOAD={library}", "ROCEGW_IN_PROCESS=1", f"ROCEGW_ADDRESS={pair.left.address4}",
                                 "ROCEGW_RUN=1", "ibv_devinfo"])
    job.wait(20)
    lines = re.findall(r"^rocegw\[\d+\]: .*$", job.output, re.MULTILINE)
    expect(len(lines) == 1 and "UDP port 4791" in lines[0] and "stop it" in lines[0], f"said:\n{job.output}")
    with in_process(pair.left, pair.right):
        port = pair.left.fresh_port()
        server = pair.left.start(["rping", "-s", "-d", "-a", pair.left.address4, "-p", str(port)])
        server.expect("rdma_listen", 30)
        try:
            second = pair.left.start(["ibv_devinfo"])
            expect(second.wait(20) == 125 and "--address" in second.output, f"two at one address:\n{second.output}")
            usual, pair.left.launcher = pair.left.launcher, [*_launcher(pair.left)[:3], pair.left.address6, "--"]
            try:
                shown = pair.left.run(["ibv_devinfo", "-v"])
            finally:
                pair.left.launcher = usual
            expect(pair.left.address6 in shown and pair.left.address4 not in shown, f"not its own address alone:\n{shown}")
        finally:
            server.signal(signal.SIGKILL)
            server.wait(10)
    return "refused in one line; a second address works"


def _same_host(pair):
    """Two programs of one host, each with its gateway and an address of its own."""
    address = "10.77.0.101"
    pair.left.lab.address(pair.left.namespace, pair.left.interface, f"{address}/24")
    with in_process(pair.left):
        port = str(pair.left.fresh_port())
        words = ["-a", address, "-p", port, "-C", "20", "-S", "3000", "-V"]
        start = [pair.left.program("rocegw-run"), "--in-process", "--address", address, "--"]
        server = pair.left.start_plain([*start, "rping", "-s", "-d", *words])
        try:
            server.expect("rdma_listen", 30)
            output = pair.left.run(["rping", "-c", "-v", *words])
            expect(server.wait(30) == 0, f"the server:\n{server.output}")
        finally:
            server.signal(signal.SIGKILL)
    pings = len(re.findall(r"^ping data: ", output, re.MULTILINE))
    expect(pings == 20, f"{pings} of 20 pings:\n{output}")
    return "20 pings"


def in_process_peer_cases():
    """At one end, opposite somebody else's implementation."""
    return [_programs("rxe_peer", False), _killed("cm"), _killed("socket")]


def in_process_cases():
    return [_programs("daemon_peer", False), _programs("both", True),
            _programs("run_in_poll", True, ("--run-in-poll",)), _killed("cm"), _killed("socket"),
            _case("exit", 4200, _exit), _case("port_taken", 4200, _port_taken),
            _case("same_host", 4200, _same_host)]
