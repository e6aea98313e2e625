# SPDX-License-Identifier: Apache-2.0
"""Cases that run Debian's RDMA programs, unmodified, between the hosts.

perftest does not look at the data, so each of its cases also runs rdma_check for the same verb on the same connection
kind; the other programs compare their payload themselves."""

import itertools
import re
import time

from netlab.job import LabError

from .case import Case, CaseFailure, expect
from .check_cases import rdma_check

TIMEOUT = 90
# A client that comes before its server listens is refused. perftest -R says that it waits before it listens, and listens
# and connects a second time without waiting for one another. The daemon waits and asks again for 100 ms in either role
# (listener_grace); a starved guest may take longer, and perftest's server waits for ever then. rstream and riostream say
# `rpoll` where they could not connect, and only there, with whatever errno a second thread of librdmacm has left behind.
# riostream's server listens first and sets the number of its mappings then: who comes in between may map nothing.
# Each such try is printed, and each gives the server more time before the client starts.
_TOO_EARLY = re.compile(r"REJECTED|rejected|Unexpected CM event|Couldn't connect|refused|reject|event: RDMA_CM_EVENT_UNREACHABLE"
                        r"|^rpoll: |^riomap: Cannot allocate memory", re.MULTILINE)
_TRIES = 6


def _finish(job):
    try:
        status = job.wait(TIMEOUT)
    except LabError as error:
        job.signal(9)
        raise CaseFailure(str(error)) from error
    expect(status == 0, f"{job.title} ended with {status}:\n{job.output}")
    return job.output


def run_tool(pair, left_is_active, server_command, client_command, ready=None, endless_server=False):
    """Server on the passive host, client on the active one; both must end with 0. Returns both outputs. endless_server: it would
    serve others after the client, and is ended."""
    active, passive = pair.roles(left_is_active)
    for attempt in itertools.count(1):
        server = passive.start(server_command)
        try:
            if callable(ready):
                ready(passive, server)
            elif ready:
                server.expect(ready, 30)
            time.sleep(0.3 * (attempt - 1))
            client = active.start(client_command)
            try:
                status = client.wait(TIMEOUT)
            except LabError as error:
                client.signal(9)
                raise CaseFailure(f"{error}\nserver:\n{server.output}") from error
            if status == 0:
                return server.output if endless_server else _finish(server), client.output
            why = f"{client.title} ended with {status}:\n{client.output}\nserver:\n{server.output}"
            expect(_TOO_EARLY.search(client.output) and attempt < _TRIES, why)
            print(f"early {client.title}: came before its server was ready, try {attempt} of {_TRIES}", flush=True)
        finally:
            server.signal(9)
            server.wait(10)


# perftest -------------------------------------------------------------------------------------------------------------

# program: (sizes, iterations, the rdma_check case that compares the same verb's data)
_PERFTEST = {
    "ib_write_bw": (65536, 200, "transfer.write.sizes*"),
    "ib_write_lat": (64, 200, "transfer.write.sizes*"),
    "ib_read_bw": (65536, 200, "transfer.read.sizes*"),
    "ib_read_lat": (64, 200, "transfer.read.sizes*"),
    "ib_send_bw": (65536, 200, "transfer.send.sizes*"),
    "ib_send_lat": (64, 200, "transfer.send.sizes*"),
    "ib_atomic_bw": (8, 200, "atomic.*"),
    "ib_atomic_lat": (8, 200, "atomic.*"),
}
# perftest compares two clocks at its start. Where it gets no processor meanwhile they do not agree, it says so, and its figures are
# zero.
_UNTIMED = "Correlation coefficient r^2"
_RESULT = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)", re.MULTILINE)


def perftest(pair, left_is_active, program, connect, mtu=None, extra=(), size=None, queue_pairs=1, iterations=None):
    """Runs one perftest program; its table must hold a line for the size and count that were asked for, with figures in it.
    extra may have -a: one for every size."""
    usual_size, usual_iterations, _ = _PERFTEST[program]
    iterations = iterations or usual_iterations
    size = size or usual_size
    if "UD" in extra:
        size = 1024
    sizes = [2**power for power in range(1, 24)] if "-a" in extra else [size]
    active, passive = pair.roles(left_is_active)
    port = passive.fresh_port()

    def command(host):
        # Retries for four seconds: a guest that gets no processor for half a second would otherwise be the end of it.
        words = [program, "-d", host.device, "-p", str(port), "-n", str(iterations), "-F", "-u", "17", *extra]
        if queue_pairs != 1:
            words += ["-q", str(queue_pairs)]
        if not program.startswith("ib_atomic") and "-a" not in extra:
            words += ["-s", str(size)]
        if connect == "cm":
            return words + ["-R"]
        return words + ["-x", str(host.gid_index(host.address4)), "-m", str(mtu)]

    for attempt in itertools.count(1):
        outputs = run_tool(pair, left_is_active, command(passive), command(active) + [passive.address4],
                           ready="Waiting for client")
        if _UNTIMED not in outputs[1] or attempt == _TRIES:
            break
        print(f"untimed {program}: could not tell the time, try {attempt} of {_TRIES}", flush=True)
    # A line of its table is bytes, count, and figures; both directions count for -b.
    rows = _RESULT.findall(outputs[1])
    wanted = [(str(one), str(iterations * queue_pairs)) for one in sizes]
    expect([row[:2] for row in rows] == wanted and all(float(figure) > 0 for row in rows for figure in row[2:]),
           f"{program} printed no results for {len(sizes)} sizes up to {sizes[-1]} bytes:\n{outputs[1]}")
    return " ".join(rows[-1])


def _perftest_case(program, connect, role, left_is_active, mtu):
    link_mtu = 4200 if mtu == 4096 else 1500

    def run(pair):
        size, iterations, check = _PERFTEST[program]
        with pair.counted(at_least=iterations // 64):
            result = perftest(pair, left_is_active, program, connect, mtu)
            rdma_check(pair, left_is_active, connect, cases=check, mtu=mtu)
        return result
    return Case(f"perftest.{program}.{connect}.{role}.mtu{mtu}", link_mtu, run)


def _datagram_case(role, left_is_active):
    def run(pair):
        with pair.counted(at_least=20):
            result = perftest(pair, left_is_active, "ib_send_lat", "socket", 4096, extra=("-c", "UD"))
            rdma_check(pair, left_is_active, "socket", cases="datagram.*", mtu=4096)
        return result
    return Case(f"perftest.ib_send_lat_ud.socket.{role}", 4200, run)


def _shared_receives_case(role, left_is_active):
    """Several queue pairs of each side take their receives from one queue."""
    def run(pair):
        with pair.counted(at_least=20):
            return perftest(pair, left_is_active, "ib_send_bw", "socket", 4096, extra=("--use-srq",), queue_pairs=4)
    return Case(f"perftest.ib_send_bw_srq.socket.{role}", 4200, run)


def _unreliable_case(program, role, left_is_active):
    """Over an unreliable connection nothing slows the sender down: small messages, which fit what a receiver holds."""
    def run(pair):
        with pair.counted_one_way(left_is_active, at_least=200):
            return perftest(pair, left_is_active, program, "socket", 4096, extra=("-c", "UC"), size=1024)
    return Case(f"perftest.{program}_uc.socket.{role}", 4200, run)


# librdmacm's and libibverbs' own examples -----------------------------------------------------------------------------


def rping(pair, left_is_active, family):
    """20 pings; the client compares what comes back."""
    passive = pair.roles(left_is_active)[1]
    port = passive.fresh_port()
    server_address = passive.address4 if family == 4 else passive.address6
    # -V compares the data that came back; -d says when it listens.
    common = ["-p", str(port), "-a", server_address, "-C", "20", "-S", "3000", "-V"]
    outputs = run_tool(pair, left_is_active, ["rping", "-s", "-d", *common], ["rping", "-c", "-v", *common],
                       ready="rdma_listen")
    pings = len(re.findall(r"^ping data: ", outputs[1], re.MULTILINE))
    expect(pings == 20, f"rping printed {pings} of 20 pings:\n{outputs[1]}")


def _rping(role, left_is_active, family):
    def run(pair):
        with pair.counted(at_least=40):
            rping(pair, left_is_active, family)
        return "20 pings compared"
    return Case(f"rping.{role}.ipv{family}", 4200 if family == 4 else 1500, run)


def _ucmatose(role, left_is_active):
    def run(pair):
        passive = pair.roles(left_is_active)[1]
        port = passive.fresh_port()
        common = ["-p", str(port), "-c", "4", "-C", "10", "-S", "5000"]
        with pair.counted(at_least=40):
            outputs = run_tool(pair, left_is_active, ["ucmatose", *common],
                               ["ucmatose", *common, "-s", passive.address4], ready="starting server")
        for output in outputs:
            expect("return status 0" in output, f"ucmatose is not content:\n{output}")
        return "4 connections, 10 messages each"
    return Case(f"ucmatose.{role}", 4200, run)


def _udaddy(role, left_is_active):
    def run(pair):
        passive = pair.roles(left_is_active)[1]
        common = ["-c", "2", "-C", "10", "-S", "1000"]
        with pair.counted(at_least=10):
            outputs = run_tool(pair, left_is_active, ["udaddy", *common],
                               ["udaddy", *common, "-s", passive.address4], ready="starting server")
        for output in outputs:
            expect("return status 0" in output, f"udaddy is not content:\n{output}")
        return "2 endpoints, 10 messages each"
    return Case(f"udaddy.{role}", 4200, run)


def _mckey(role, left_is_active, family):
    group = "239.77.1.9" if family == 4 else "ff15::77:9"

    def run(pair):
        active, passive = pair.roles(left_is_active)
        common = ["-m", group, "-C", "10", "-S", "1000"]

        def command(host):
            return ["mckey", *common, "-b", host.address4 if family == 4 else host.address6]
        # Two endpoints of the passive host get each message, and end when they have all ten.
        other = passive.start(command(passive))
        try:
            other.expect("receiving data transfers", 30)
            with pair.counted_one_way(left_is_active, at_least=10):
                outputs = run_tool(pair, left_is_active, command(passive), command(active) + ["-s"],
                                   ready="receiving data transfers")
                outputs = (*outputs, _finish(other))
        finally:
            other.signal(9)
            other.wait(10)
        for output in outputs:
            expect("return status 0" in output, f"mckey is not content:\n{output}")
        return "10 messages to two members"
    return Case(f"mckey.{role}.ipv{family}", 4200 if family == 4 else 1500, run)


def pingpong(pair, program, options, left_is_active):
    """One of libibverbs' examples; both sides look at what they received."""
    active, passive = pair.roles(left_is_active)
    port = passive.fresh_port()

    def command(host):
        # -c: look at what was received.
        return [program, "-d", host.device, "-g", str(host.gid_index(host.address4)), "-p", str(port),
                "-n", "200", "-s", "2000", "-c", *options]
    outputs = run_tool(pair, left_is_active, command(passive), command(active) + [passive.address4],
                       ready=lambda host, job: host.wait_listening(port, job))
    for output in outputs:
        expect("200 iters in" in output, f"{program} is not content:\n{output}")
        expect("invalid data" not in output, f"{program} received wrong data:\n{output}")
    return re.search(r"200 iters in .*", outputs[1]).group(0)


def _pingpong(program, options, role, left_is_active, mtu, name=None):
    def run(pair):
        with pair.counted(at_least=200):
            return pingpong(pair, program, options, left_is_active)
    return Case(f"{name or program}.{role}.mtu{mtu}", 4200 if mtu > 1024 else 1500, run)


def timestamp_cases():
    """Between two gateways: soft-RoCE has no timestamps."""
    return [_pingpong("ibv_rc_pingpong", ["-m", "4096", "-N", "-t"], "active", True, 4096, name="ibv_ts_pingpong")]


def multicast_cases():
    """Between two gateways: Linux joins no IPv6 groups for soft-RoCE."""
    return [_mckey("active", True, 6), _mckey("passive", False, 6)]


def tool_cases():
    cases = []
    for number, (role, left_is_active) in enumerate((("active", True), ("passive", False))):
        for index, program in enumerate(_PERFTEST):
            # Every program meets both MTUs, both ways of connecting and both roles, not all products of them.
            for connect in ("cm", "socket"):
                mtu = 4096 if (index + number + (connect == "cm")) % 2 else 1024
                cases.append(_perftest_case(program, connect, role, left_is_active, mtu))
        cases += [
            _datagram_case(role, left_is_active),
            _shared_receives_case(role, left_is_active),
            _rping(role, left_is_active, 4),
            _rping(role, left_is_active, 6),
            _ucmatose(role, left_is_active),
            _udaddy(role, left_is_active),
            _mckey(role, left_is_active, 4),
            _unreliable_case("ib_write_bw", role, left_is_active),
            _unreliable_case("ib_send_bw", role, left_is_active),
            _pingpong("ibv_uc_pingpong", ["-m", "4096"], role, left_is_active, 4096),
            _pingpong("ibv_rc_pingpong", ["-m", "4096"], role, left_is_active, 4096),
            _pingpong("ibv_rc_pingpong", ["-m", "1024", "-e"], role, left_is_active, 1024),
            _pingpong("ibv_rc_pingpong", ["-m", "4096", "-N"], role, left_is_active, 4096, name="ibv_wr_pingpong"),
            _pingpong("ibv_srq_pingpong", ["-m", "4096", "-q", "8"], role, left_is_active, 4096),
            _pingpong("ibv_ud_pingpong", [], role, left_is_active, 4096),
        ]
    return cases
