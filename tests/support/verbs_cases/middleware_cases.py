# SPDX-License-Identifier: Apache-2.0
"""Programs that reach verbs by a library in between, or bring transfers of their own: UCX, libfabric, sockets, qperf. Those that
can compare what arrives; the others show figures, while the counters of both gateways move."""

import glob
import re

from .case import Case, expect
from .tool_cases import run_tool


def _listens(port):
    return lambda host, job: host.wait_listening(port, job)


def _ucx(transport, test, size):
    """ucx_perftest makes its connections over datagrams of its own, also where a test runs on connected queue pairs."""
    def run(pair):
        port, count = pair.right.fresh_port(), 5 if size > 1000000 else 100
        words = ["env", f"UCX_TLS={transport}", f"UCX_NET_DEVICES={pair.right.device}:1", "ucx_perftest", "-p", str(port), "-t", test,
                 "-s", str(size), "-n", str(count), "-w", "1"]
        with pair.counted(at_least=10):
            _, text = run_tool(pair, True, words, [*words, pair.right.address4], ready=_listens(port))
        result = re.search(rf"^Final: +{count} +[\d.]+ .*$", text, re.MULTILINE)
        expect(result, f"no figures:\n{text}")
        return " ".join(result.group(0).split())
    return Case(f"ucx_perftest.{transport}.{test}.{size}", 4200, run)


def _libfabric(endpoint):
    """fi_pingpong compares (-c) what comes back, in every size up to 6 MB."""
    def run(pair):
        port = pair.right.fresh_port()
        words = ["fi_pingpong", "-p", "verbs", "-e", endpoint, "-c", "-I", "5", "-S", "all"]
        with pair.counted(at_least=100):
            _, text = run_tool(pair, True, [*words, "-B", str(port)], [*words, "-P", str(port), pair.right.address4],
                               ready=_listens(port))
        expect(re.search(r"^6m +5 +=5 ", text, re.MULTILINE), f"not every size came back:\n{text}")
    return Case(f"fi_pingpong.{endpoint}", 4200, run)


_QPERF = ("rc_bw", "rc_rdma_read_bw", "ver_rc_compare_swap", "ver_rc_fetch_add")


def _qperf(pair):
    """qperf connects by librdmacm (-cm 1); its ver_ tests compare what the atomics leave."""
    port = str(pair.right.fresh_port())
    with pair.counted(at_least=100):
        _, text = run_tool(pair, True, ["qperf", "-lp", port],
                           ["qperf", "-lp", port, "-cm", "1", "-t", "1", pair.right.address4, *_QPERF],
                           ready=_listens(int(port)), endless_server=True)
    figures = re.findall(r"^(\w+):\s+(?:bw|msg_rate) += +[\d.]+ ", text, re.MULTILINE)
    expect(figures == list(_QPERF), f"not every test has figures:\n{text}")


def _iperf3(pair):
    """Sockets that librspreload.so makes rsockets of. The server finds what it accepted by select(); each accepting may take it the five
    seconds after which rsockets look again (docs/user/programs.md)."""
    socket_library = glob.glob("/usr/lib/*/rsocket/librspreload.so")[0]
    port = pair.right.fresh_port()

    def words(*options):
        return f"LD_PRELOAD=$LD_PRELOAD:{socket_library} exec iperf3 -p {port} " + " ".join(options)
    with pair.counted(at_least=100):
        server, client = run_tool(pair, True, words("-s", "-1"), words("-c", pair.right.address4, "-n", "20M"),
                                  ready="Server listening")
    for text in (server, client):
        received = re.search(r" ([\d.]+) MBytes .*receiver", text)
        expect(received and float(received.group(1)) >= 19.5, f"not all arrived:\n{text}")


def middleware_cases():
    return [
        _ucx("rc_v", "tag_lat", 8),
        _ucx("rc_v", "tag_bw", 8388608),
        _ucx("rc_v", "ucp_get", 100000),
        _ucx("rc_v", "ucp_fadd", 8),
        _ucx("ud_v", "tag_bw", 100000),
        _libfabric("msg"),
        _libfabric("rdm"),
        Case("qperf", 4200, _qperf),
        Case("iperf3", 4200, _iperf3),
    ]
