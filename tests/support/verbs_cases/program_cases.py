# SPDX-License-Identifier: Apache-2.0
"""The programs of rdma-core and perftest between two gateways: what tool_cases leaves out of them. Each ends well and shows what
it is for: data that it compared, or figures, while the counters of both gateways moved."""

import os
import re

from .case import Case, expect
from .tool_cases import perftest, run_tool

# What the suites that run tool_cases leave out, each program once; the tools among those with options that they do not use there.
ONCE = ["ibv_asyncwatch", "ibstat", "rdma_client.rc", "rdma_xclient.rc", "cmtime", "rstream.65536.blocking", "riostream.*", "rcopy", "udpong", "datagram_sockets.*",
        "perftest_more.counters", "perftest_more.ib_atomic_bw.events.socket", "perftest_more.ib_*_bw.queue_pairs.cm",
        "perftest_more.ib_read_bw.both_ways.socket", "perftest_more.ib_send_bw.datagrams.socket", "perftest_more.*.xrc.socket", "ibv_xsrq_pingpong",
        "rdma_xclient.xrc", "ucx_perftest.*"]

_WAYS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e", "ways")
_FIRST_TRANSFERS = ("ib_write", "ib_read", "ib_send")


def _perftest_case(name, program, connect, **options):
    # On a channel many small requests of a burst share one datagram, and so do their answers.
    at_least = 2 if program == "ib_atomic_bw" else 20

    def run(pair):
        with pair.counted(at_least=at_least):
            return perftest(pair, True, program, connect, mtu=4096, **options)
    return Case(f"perftest_more.{program}.{name}.{connect}", 4200, run)


def _datagrams(pair):
    """Nothing comes back of datagrams."""
    with pair.counted_one_way(True, at_least=200):
        return perftest(pair, True, "ib_send_bw", "socket", mtu=4096, extra=("-c", "UD"))


def _counters(pair):
    """perftest's difference of counters that it reads from files of the device, which it opens before it sends."""
    port = str(pair.right.fresh_port())
    iterations, size = 20000, 65536

    def command(host):
        return ["ib_write_bw", "-d", host.device, "-p", port, "-n", str(iterations), "-s", str(size), "-F", "-m", "4096",
                "-x", str(host.gid_index(host.address4)), "-W", "counters/port_xmit_data,hw_counters/sent_pkts"]
    _, text = run_tool(pair, True, command(pair.right), [*command(pair.left), pair.right.address4], ready="Waiting for client")
    found = {name: int(value) for name, value in re.findall(r"^\s*\w+/(\w+)=(\d+)", text, re.MULTILINE)}
    # The files may be 100 ms behind, and the run takes some seconds.
    for name, least in (("port_xmit_data", iterations * size / 4), ("sent_pkts", iterations * size / 4096)):
        expect(0.8 * least <= found.get(name, 0) <= 1.2 * least, f"{name} is {found.get(name)} and not about {least:.0f}:\n{text}")
    return str(found)


def _perftest_cases():
    cases = []
    for connect in ("cm", "socket"):
        for verb in _FIRST_TRANSFERS:
            cases += [
                _perftest_case("all_sizes", verb + "_bw", connect, extra=("-a",), iterations=10),
                _perftest_case("all_sizes", verb + "_lat", connect, extra=("-a",), iterations=10),
            ]
        for verb in (*_FIRST_TRANSFERS, "ib_atomic"):
            cases += [
                _perftest_case("queue_pairs", verb + "_bw", connect, queue_pairs=8),
                _perftest_case("both_ways", verb + "_bw", connect, extra=("-b",)),
            ]
            if verb != "ib_write":  # perftest has no events for it
                cases += [_perftest_case("events", verb + kind, connect, extra=("-e",)) for kind in ("_bw", "_lat")]
    cases += [
        Case("perftest_more.ib_send_bw.datagrams.socket", 4200, _datagrams),
        Case("perftest_more.counters", 4200, _counters),
        _perftest_case("lists", "ib_write_bw", "socket", extra=("-l", "10")),
        _perftest_case("inline", "ib_write_lat", "socket", extra=("-I", "64")),
    ]
    cases += [_perftest_case("xrc", verb + kind, "socket", extra=("-c", "XRC")) for verb in _FIRST_TRANSFERS for kind in ("_bw", "_lat")]
    return cases


def _events_seen(pair):
    """ibv_asyncwatch waits for events of the device and names it."""
    job = pair.left.start(["ibv_asyncwatch", "-d", pair.left.device])
    try:
        job.expect(rf"^{pair.left.device}: async event FD \d+", 30)
    finally:
        job.signal(9)
        job.wait(10)


def _diagnostics(pair):
    """ibstat and ibstatus show the device and its port as those of an RNIC."""
    text = pair.left.run(["ibstat", pair.left.device])
    for wanted in (rf"CA '{pair.left.device}'", r"Number of ports: 1", r"Node GUID: 0x(?!0000000000000000)[0-9a-f]{16}",
                   r"State: Active", r"Physical state: LinkUp", r"Rate: \d+", r"Link layer: Ethernet"):
        expect(re.search(wanted, text), f"ibstat shows nothing like {wanted}:\n{text}")
    names = pair.left.run(["ibstat", "-l"])
    expect(names.split() == [pair.left.device], f"ibstat -l lists:\n{names}")
    text = pair.left.run(["ibstatus"])
    for wanted in (rf"Infiniband device '{pair.left.device}' port 1 status:", r"state:\s+4: ACTIVE", r"phys state:\s+5: LinkUp",
                   r"rate:\s+\d+ Gb/sec", r"link_layer:\s+Ethernet"):
        expect(re.search(wanted, text), f"ibstatus shows nothing like {wanted}:\n{text}")
    # ls and find ask for extended attributes; a file without them is not a file that does not exist.
    path = f"/sys/class/infiniband/{pair.left.device}/node_guid"
    script = f"import os\nos.listxattr({path!r})\ntry:\n  os.getxattr({path!r}, 'user.none')\nexcept OSError as error:\n  print(error.strerror)"
    text = pair.left.run(["python3", "-c", script])
    expect("No such file" not in text and text.strip(), f"extended attributes: {text}")
    return "device and port shown"


def _domain_pingpong(pair):
    """ibv_xsrq_pingpong: shared receive queues of a domain, one queue pair that receives for them."""
    port = pair.right.fresh_port()

    def command(host):
        return ["ibv_xsrq_pingpong", "-d", host.device, "-g", str(host.gid_index(host.address4)), "-p", str(port), "-n", "200", "-s", "2000",
                "-m", "4096"]
    with pair.counted(at_least=200):
        outputs = run_tool(pair, True, command(pair.right), command(pair.left) + [pair.right.address4],
                           ready=lambda host, job: host.wait_listening(port, job))
    for output in outputs:
        expect("success" in output.split(), f"not content:\n{output}")


def _endpoints(server, client, options):
    """rdma_client and rdma_server, rdma_xclient and rdma_xserver: one message each way; both count it as success."""
    def run(pair, left_is_active=True):
        _, passive = pair.roles(left_is_active)
        port = passive.fresh_port()
        common = [*options, "-p", str(port)]
        with pair.counted(at_least=3):
            outputs = run_tool(pair, left_is_active, [server, *common], [client, *common, "-s", passive.address4], ready="start")
        for output in outputs:
            expect(re.search(r"end 0$", output.strip()), f"not content:\n{output}")
    return run


def _connections(pair, left_is_active=True, connections=200):
    """cmtime: connections at once, up and down; each step is measured."""
    _, passive = pair.roles(left_is_active)
    port = passive.fresh_port()
    # The answer to the last disconnection may come after the end of the program.
    with pair.counted(at_least=2 * connections - 4):
        _, text = run_tool(pair, left_is_active, ["cmtime", "-p", str(port)],
                           ["cmtime", "-p", str(port), "-c", str(connections), "-s", passive.address4], endless_server=True)
    steps = re.findall(r"^(create id|resolve addr|resolve route|create qp|connect|disconnect|destroy) *: +([\d.]+)", text,
                       re.MULTILINE)
    expect(len(steps) == 7 and float(dict(steps)["connect"]) > 0, f"not every step was measured:\n{text}")
    return f"{connections / (float(dict(steps)['connect']) / 1000):.0f} connections per second"


def _stream(program, size, blocking=False):
    """Sockets on queue pairs; -T v compares the bytes."""
    def run(pair, left_is_active=True):
        _, passive = pair.roles(left_is_active)
        port = passive.fresh_port()
        words = [program, "-p", str(port), "-S", str(size), "-C", "20", "-I", "20", "-T", "v", *(["-T", "b"] if blocking else [])]
        with pair.counted(at_least=20):
            outputs = run_tool(pair, left_is_active, words, [*words, "-s", passive.address4])
        rows = [re.search(r"^custom .* ([\d.]+)$", output.strip(), re.MULTILINE) for output in outputs]
        expect(all(rows), f"{program} printed no figures:\n{outputs[0]}\n{outputs[1]}")
        return rows[1].group(0)
    return run


def _copy(pair, left_is_active=True):
    """rcopy: a file arrives as it was."""
    active, passive = pair.roles(left_is_active)
    source, target = active.program("rdma_check"), f"/tmp/rcopy.{passive.fresh_port()}"

    def sum_of(host, path):
        return host.run_plain(["sha256sum", path]).split()[0]
    try:
        with pair.counted(at_least=20):
            run_tool(pair, left_is_active, ["rcopy"], ["rcopy", source, f"{passive.address4}:{target}"], endless_server=True)
        expect(sum_of(active, source) == sum_of(passive, target), "the copy differs")
        return passive.run_plain(["wc", "-c", target]).split()[0] + " bytes"
    finally:
        passive.run_plain(["rm", "-f", target])


def peer_program_cases():
    """Programs that tool_cases leaves out and that make sense against another kind of peer, in both roles."""
    programs = {"rdma_client": (1500, _endpoints("rdma_server", "rdma_client", [])),
                "cmtime": (1500, lambda pair, left_is_active: _connections(pair, left_is_active, 50)),
                "rstream": (4200, _stream("rstream", 65536)),
                "riostream": (4200, _stream("riostream", 65536)),
                "rcopy": (4200, _copy)}

    def case(name, mtu, run, role, left_is_active):
        return Case(f"program.{name}.{role}", mtu, lambda pair: run(pair, left_is_active))
    return [case(name, mtu, run, role, left_is_active) for name, (mtu, run) in programs.items()
            for role, left_is_active in (("active", True), ("passive", False))]


# Of 300 datagrams. A socket's first ones go by UDP, until its library has heard of its peer's queue pair.
_BY_QUEUE_PAIR = 200


def _has_port(port):
    return lambda host, job: host.wait_listening(port, job, kind="udp")


def _datagrams_back(pair):
    """udpong: each datagram comes back before the next one, whichever way the client waits."""
    for wait in ("n", "b", "a"):
        for own, address in (("0.0.0.0", pair.right.address4), ("::", pair.right.address6)):
            port = pair.right.fresh_port()
            with pair.counted(at_least=_BY_QUEUE_PAIR):
                _, text = run_tool(pair, True, ["udpong", "-b", own, "-p", str(port), "-T", wait],
                                   ["udpong", "-s", address, "-p", str(port), "-C", "300", "-S", "1000", "-T", "e", "-T", wait],
                                   ready=_has_port(port), endless_server=True)
            expect(re.search(r"^custom +1000 +600 +", text, re.MULTILINE), f"no figures:\n{text}")


def _datagram_sockets(family):
    def run(pair):
        """Datagram sockets of librdmacm, bytes and senders compared."""
        port, address = pair.right.fresh_port(), getattr(pair.right, f"address{family}")
        words = ["/usr/bin/python3", os.path.join(_WAYS, "datagram_sockets.py")]
        with pair.counted(at_least=2 * _BY_QUEUE_PAIR):
            _, text = run_tool(pair, True, [*words, "serve", address, str(port)], [*words, "ask", address, str(port)], ready="serving",
                               endless_server=True)
        return text.strip()
    return Case(f"datagram_sockets.ipv{family}", 1500, run)


def program_cases():
    return _perftest_cases() + [
        Case("ibv_asyncwatch", 1500, _events_seen),
        Case("ibstat", 1500, _diagnostics),
        Case("rdma_client.rc", 1500, _endpoints("rdma_server", "rdma_client", [])),
        Case("rdma_xclient.rc", 1500, _endpoints("rdma_xserver", "rdma_xclient", ["-c", "r"])),
        Case("rdma_xclient.xrc", 1500, _endpoints("rdma_xserver", "rdma_xclient", ["-c", "x"])),
        Case("ibv_xsrq_pingpong", 4200, _domain_pingpong),
        Case("cmtime", 1500, _connections),
        Case("rstream.64.waiting", 4200, _stream("rstream", 64)),
        Case("rstream.65536.blocking", 4200, _stream("rstream", 65536, blocking=True)),
        Case("riostream.65536.waiting", 4200, _stream("riostream", 65536)),
        Case("rcopy", 4200, _copy),
        Case("udpong", 4200, _datagrams_back),
        _datagram_sockets(4),
        _datagram_sockets(6),
    ]
