# SPDX-License-Identifier: Apache-2.0
"""Cases in which a gateway is killed and started again, or replaced, under a program that goes on, as a storage target does.
Both hosts are gateways."""

import contextlib
import re
import signal
import time

from netlab.echo_traffic import EchoTraffic
from netlab.fleet import eventually
from netlab.job import LabError
from netlab.take_over_kills import NEW_OLD_GOES_ON, OLD_HANDED_OVER, TakeOverKills

from .case import Case, CaseFailure, expect
from .endpoint_cases import Receiver, start_sender
from .endpoint_state_cases import suspend_and_drain

# The queue pairs give up (8 time-outs), the ids are told, and both programs try again every 100 ms.
RECOVERY = 30
_TAKE_OVERS = 10
_KILLS = 16
_ENDPOINT_MESSAGES = 20000  # of each sender
_ENDPOINT_ROUNDS = 5        # in which four take-overs have to happen under messages
_STORMS = 5                 # in which four take-overs have to happen under connections
_STORM_SIZE = ("8", "125")  # threads and listeners of each
_REMAPPED = 64 << 20
# Of workers and of ports.
_SUMS = ("rocegw_tx_packets_total", "rocegw_rx_bytes_total", "rocegw_cqe_entries_total", "rocegw_port_tx_packets_total",
         "rocegw_port_rx_bytes_total")
_COUNTERS = ("_total", "_count", "_sum", "_bucket")  # endings of names


def _restart(host):
    host.daemon.signal(signal.SIGKILL)
    host.daemon.wait(20)
    host.start_gateway()


def _storage(listens_on_all):
    """A target keeps its event channel, its device list and its asynchronous events over the end of its gateway, an initiator its
    event channel: after a restart of either gateway both go on, and every block is whole."""
    def run(pair):
        address = "0.0.0.0" if listens_on_all else pair.right.address4
        port = str(pair.right.fresh_port())
        common = ["--port", port, "--verify"]
        target = pair.right.start([pair.right.program("storage_io"), "target", address, *common])
        target.expect("^listening", 30)
        initiator = pair.left.start([pair.left.program("storage_io"), "initiator", pair.right.address4, *common,
                                     "--writes", "50", "--milliseconds", "600000"])
        try:
            initiator.expect("^answered", 30)
            opened = 1
            for restarts, host in enumerate((pair.right, pair.left, pair.right), 1):
                _restart(host)
                opened += host is pair.right
                try:
                    initiator.expect(rf"(?s)(^answered.*){{{restarts + 1}}}", RECOVERY)
                    # The target looks at its device seldom. The next restart must not come before it has.
                    target.expect(rf"(?s)(^device opened.*){{{opened}}}", RECOVERY)
                except LabError as error:
                    raise CaseFailure(f"{error}\ntarget:\n{target.output}") from error
            status = initiator.stop()
            expect(status == 0, f"the initiator ended with {status}:\n{initiator.output}")
            expect(target.stop() == 0, f"the target failed:\n{target.output}")
        finally:
            for job in (initiator, target):
                job.signal(signal.SIGKILL)
                job.wait(10)
        removed = re.findall(r"^removed: (\d+) events of (\d+) ids, none of (\d+)", target.output, re.MULTILINE)
        expect(len(removed) == 2 and all(events == ids and silent == "0" for events, ids, silent in removed),
               f"events of removal are not one for each id: {removed}\n{target.output}")
        for line, count in (("device ended", 2), ("device opened", 3), ("listening", 3)):
            found = len(re.findall(f"^{line}", target.output, re.MULTILINE))
            expect(found == count, f"'{line}' {found} times instead of {count}:\n{target.output}")
        for host in (pair.left, pair.right):
            host.expect_idle()
        return initiator.output.splitlines()[-1]
    return run


def _take_overs(pair):
    """Gateways are replaced by new processes under rping, which compares every byte: neither end notices more than a pause."""
    with open(pair.left.config, encoding="utf-8") as file:
        if "mode: udp" not in file.read():
            return _refused_take_over(pair)
    port = str(pair.right.fresh_port())
    common = ["-V", "-S", "4096", "-p", port, "-a", pair.right.address4]
    server = pair.right.start(["rping", "-s", *common])
    time.sleep(1)
    client = pair.left.start(["rping", "-c", *common, "-C", "1000000"])
    try:
        time.sleep(0.5)
        for host in (pair.right, pair.left) * (_TAKE_OVERS // 2):
            try:
                host.take_over()
            except LabError as error:
                raise CaseFailure(f"{error}\nserver:\n{server.output}\nclient:\n{client.output}") from error
            expect(server.running and client.running, f"server:\n{server.output}\nclient:\n{client.output}")
        before = pair.left.counters()
        time.sleep(0.5)
        sent, received = pair.left.moved(before, pair.left.counters())
        expect(sent > 10 and received > 10, f"no traffic after the last take-over: {sent} sent, {received} received")
        client.signal(signal.SIGTERM)
        client.wait(20)
        # The server sees the end of the connection as with a gateway that was never replaced.
        expect(server.wait(20) == 0, f"the server ended with {server.returncode}:\n{server.output}")
    finally:
        for job in (client, server):
            job.signal(signal.SIGKILL)
            job.wait(10)
    expect("DISCONNECT" in server.output, f"no end of the connection:\n{server.output}")
    for host in (pair.left, pair.right):
        host.expect_idle()
    return f"{_TAKE_OVERS} take-overs"


def _verified(kind, environment=(), registered=0):
    """Gateways of both hosts are replaced under queue pairs of a kind whose messages are verified byte by byte."""
    def run(pair):
        traffic = EchoTraffic(pair.right, pair.left, kind, 16, registered=registered, environment=environment)
        try:
            if registered:
                for host in (pair.left, pair.right):
                    expect(host.remapped_regions() > 0, f"{host.name}: the memory of the program did not move")
            for host in (pair.left, pair.right) * 2:
                eventually(f"traffic of all kinds that {_SUMS} count", lambda host=host: all(host.counters()[name] > 0 for name in _SUMS))
                before = host.counters()
                host.take_over()
                after = host.counters()
                fell = [(name, value, after.get(name)) for name, value in before.items()
                        if name.endswith(_COUNTERS) and value > after.get(name, 0)]
                expect(not fell, f"{host.name}: counters jumped back: {fell}")
                time.sleep(0.2)
                traffic.check()
            if registered:
                for host in (pair.left, pair.right):
                    expect(host.remapped_regions() > 0, f"{host.name}: the new daemon has no remapped region")
            report = traffic.end()
            expect(kind != "srq" or report["limits"] > 0, f"no event of the shared receive queue's limit: {report}")
        finally:
            traffic.kill()
        for host in (pair.left, pair.right):
            host.expect_idle()
        return f"4 take-overs, {report['messages']} messages, longest silence {report['longest_ms']:.0f} ms"
    return run


def _older_state(kind):
    """The left gateway is replaced in turns by one that knows only the previous version of each state, one that knows only the
    oldest, and today's: forth and back, under messages that are verified byte by byte."""
    def run(pair):
        host = pair.left
        today = host.daemon_program
        traffic = EchoTraffic(pair.right, host, kind, 16)
        try:
            for limit in ("previous", "oldest", "previous"):
                for program in ([f"ROCEGW_OLDER_STATE={limit}", "rocegwd_of_older_state"], today):
                    host.daemon_program = program
                    host.take_over()
                    older = f"states of the {limit} versions" in host.log()
                    expect(older == (program is not today), f"{limit}, {program}:\n{host.log()}")
                    time.sleep(0.2)
                    traffic.check()
            report = traffic.end()
        finally:
            host.daemon_program = today
            traffic.kill()
        for one in (pair.left, pair.right):
            one.expect_idle()
        return f"6 take-overs, {report['messages']} messages, longest silence {report['longest_ms']:.0f} ms"
    return run


def _endpoints(pair):
    """Gateways of both hosts are replaced under endpoints that send to a group: each message comes once, whole. Rounds of
    messages follow each other until four take-overs happened under them: how long one lasts depends on the machine."""
    met = messages = 0
    for _ in range(_ENDPOINT_ROUNDS):
        met += _endpoints_round(pair)
        messages += 2 * _ENDPOINT_MESSAGES
        if met >= 4:
            return f"{met} take-overs, {messages} messages"
    raise CaseFailure(f"only {met} take-overs happened under {messages} messages")


def _endpoints_round(pair):
    """Returns how many take-overs began and ended while all programs ran."""
    receiver = Receiver(pair.right, 2 * (_ENDPOINT_MESSAGES + 1), ("3", "depth"))
    senders = [start_sender(pair.left, _ENDPOINT_MESSAGES, (receiver,)) for _ in range(2)]
    jobs = senders + [receiver.job]
    met = 0
    try:
        while all(job.running for job in jobs):
            for host in (pair.left, pair.right):
                host.take_over()
                met += all(job.running for job in jobs)
        for job in jobs:
            status = job.wait(120)
            expect(status == 0, f"{job.title} ended with {status}:\n{job.output[-2000:]}")
        got = receiver.got()
        expect(len(got) == 2, f"messages from {len(got)} senders, not 2")
        wanted = sorted([f"message {number}" for number in range(_ENDPOINT_MESSAGES)] + ["that was all"])
        for texts in got.values():
            expect(sorted(texts) == wanted, "not each message came once")
    finally:
        for job in jobs:
            job.signal(signal.SIGKILL)
            job.wait(10)
    for host in (pair.left, pair.right):
        host.expect_idle()
    return met


def _suspended(pair):
    """Both gateways are replaced while an endpoint is suspended."""
    def take_over():
        for host in (pair.left, pair.right):
            host.take_over()
    return suspend_and_drain(pair, take_over)


def _untrusted(pair):
    """The same for programs of pools that are not trusted, to which threads of their own copy."""
    with contextlib.ExitStack() as changed:
        for host in (pair.left, pair.right):
            changed.enter_context(host.changed_config("dpdk: {", "default_pool: {trusted: false}\ndpdk: {"))
        return _verified("rc")(pair)


def _connections(pair):
    """Gateways of both hosts are replaced under programs whose threads set up and end connections all the time: each of the 8,000
    connections of a storm comes about. Storms follow each other until four take-overs happened under them."""
    met = 0
    for storms in range(1, _STORMS + 1):
        met += _storm(pair)
        if met >= 4:
            return f"{met} take-overs under {storms} storms"
    raise CaseFailure(f"only {met} take-overs happened under {_STORMS} storms")


def _storm(pair):
    """Returns how many take-overs began and ended while all connections were set up or ended."""
    server = pair.right.start([pair.right.program("connect_storm"), "server", pair.right.address4, *_STORM_SIZE])
    met = 0
    try:
        server.expect("^listening", 60)
        client = pair.left.start([pair.left.program("connect_storm"), "client", pair.right.address4, *_STORM_SIZE])
        while client.running:
            for host in (pair.left, pair.right):
                host.take_over()
                met += client.running
        status = client.wait(120)
        expect(status == 0, f"the client ended with {status}:\n{client.output}\nserver:\n{server.output}")
        expect(server.running, f"the server ended:\n{server.output}")
    finally:
        server.stop()
    for host in (pair.left, pair.right):
        host.expect_idle()
    return met


def _kills(pair):
    """The old process or the new one is killed at a random moment of a take-over, under verified messages: one gateway is left.
    The messages go on, unless the old process died before it had handed the program over; then the program hears of it."""
    kills = TakeOverKills(pair.left, pair.right)
    try:
        for _ in range(_KILLS):
            kills.one()
        kills.end()
        expect(kills.counts[NEW_OLD_GOES_ON] + kills.counts[OLD_HANDED_OVER] > 0,
               f"seed {kills.seed}: no messages went on over a kill: {kills.text()}")
    except LabError as error:
        raise CaseFailure(f"seed {kills.seed}, {kills.text()}: {error}") from error
    finally:
        kills.traffic.kill()
    for host in (pair.left, pair.right):
        host.expect_idle()
    return kills.text()


def _refused_take_over(pair):
    running = pair.left.daemon
    try:
        pair.left.take_over()
    except LabError as error:
        expect("a port is not on kernel sockets" in str(error), f"another reason: {error}")
        pair.left.daemon = running
        return "refused on this port"
    raise CaseFailure("a port that is not on kernel sockets was handed over")


def restart_cases():
    return [Case("restart.take_over", 1500, _take_overs, "gateway"),
            Case("restart.take_over.rc", 1500, _verified("rc"), "kernel_sockets"),
            Case("restart.take_over.ud", 1500, _verified("ud"), "kernel_sockets"),
            Case("restart.take_over.srq", 1500, _verified("srq"), "kernel_sockets"),
            Case("restart.take_over.xrc", 1500, _verified("xrc"), "kernel_sockets"),
            Case("restart.take_over.endpoints", 1500, _endpoints, "kernel_sockets"),
            Case("restart.take_over.connections", 1500, _connections, "kernel_sockets"),
            Case("restart.take_over.suspended", 1500, _suspended, "kernel_sockets"),
            Case("restart.take_over.remapped", 1500, _verified("rc", ("ROCEGW_REMAP=always",), _REMAPPED), "kernel_sockets"),
            Case("restart.take_over.untrusted", 1500, _untrusted, "kernel_sockets"),
            Case("restart.take_over.older_state.rc", 1500, _older_state("rc"), "kernel_sockets"),
            Case("restart.take_over.older_state.ud", 1500, _older_state("ud"), "kernel_sockets"),
            Case("restart.take_over.older_state.srq", 1500, _older_state("srq"), "kernel_sockets"),
            Case("restart.take_over.kills", 1500, _kills, "kernel_sockets"),
            Case("restart.storage", 1500, _storage(listens_on_all=False), "gateway"),
            Case("restart.storage.all_addresses", 1500, _storage(listens_on_all=True), "gateway")]
