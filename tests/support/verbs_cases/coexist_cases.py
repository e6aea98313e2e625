# SPDX-License-Identifier: Apache-2.0
"""A gateway and an RDMA device of the kernel on one host: the guest has soft-RoCE, and for these cases a gateway of its own in
another network namespace. Programs with our library find both."""

import contextlib
import re

from netlab.fleet import eventually

from .case import Case, expect
from .tool_cases import run_tool

_DIRECTORY = "/run/gw"
# In a network namespace of its own, where the gateway talks to itself. No program has a route there.
_GATEWAY = "10.88.0.1"
_METRICS_PORT = 7474
_START = f"""set -e
mkdir -p {_DIRECTORY}
cat > {_DIRECTORY}/rocegwd.yaml <<END
name: guest
runtime_dir: {_DIRECTORY}
workers: 1
ports:
  - {{name: port0, mode: udp, interface: lo}}
attach_socket: {{path: {_DIRECTORY}/attach.sock, mode: 0666}}
grpc_socket: {{path: {_DIRECTORY}/grpc.sock}}
metrics: {{address: "127.0.0.1:{_METRICS_PORT}"}}
dpdk: {{huge_pages: off}}
END
exec unshare -n sh -c 'ip link set lo up
ip address add {_GATEWAY}/32 dev lo
exec /bin/rocegwd --config {_DIRECTORY}/rocegwd.yaml'"""


@contextlib.contextmanager
def _gateway_in(guest):
    daemon = guest.start_plain(_START)
    try:
        daemon.expect(r"is ready", 60)
        yield daemon
    finally:
        daemon.signal(15)
        daemon.wait(20)


class _WithLibrary:
    """The guest, where programs run with our library."""

    def __init__(self, guest):
        self._guest = guest
        self.address4 = guest.address4

    def start(self, command):
        return self._guest.start_plain(f"LD_PRELOAD=/bin/librocegw-verbs.so ROCEGW_SOCKET={_DIRECTORY}/attach.sock exec " +
                                       " ".join(command))


class _Roles:
    def __init__(self, active, passive):
        self._roles = (active, passive)

    def roles(self, _):
        return self._roles


def _packets(guest):
    counters = guest.counters()
    return counters["sent_pkts"] + counters["rcvd_pkts"]


@contextlib.contextmanager
def _by_soft_roce(guest, expected):
    """What happens meanwhile goes by the guest's own device, or not at all."""
    before = _packets(guest)
    yield
    moved = _packets(guest) - before
    expect((moved != 0) == expected, f"soft-RoCE moved {moved} packets")


def _rping(role, address, port):
    return ["rping", role, "-p", str(port), "-a", address, "-C", "10", "-V", "-v" if role == "-c" else "-d"]


def _one_listener(pair):
    """A listener on all addresses serves who comes by the gateway and who comes by soft-RoCE."""
    guest = pair.right
    with _gateway_in(guest):
        both = _WithLibrary(guest)
        port = guest.fresh_port()
        server = both.start([*_rping("-s", "0.0.0.0", port), "-P"])
        try:
            server.expect("rdma_listen", 30)
            for client, address, soft_roce in ((both, _GATEWAY, False), (both, guest.address4, True),
                                               (pair.left, guest.address4, True), (both, _GATEWAY, False)):
                with _by_soft_roce(guest, soft_roce):
                    job = client.start(_rping("-c", address, port))
                    status = job.wait(30)
                pings = len(re.findall(r"^ping data: ", job.output, re.MULTILINE))
                expect(status == 0 and pings == 10, f"{job.title}: {status}\n{job.output}\nserver:\n{server.output}")
        finally:
            server.signal(9)
            server.wait(10)
    return "four clients"


def _addresses(pair):
    """Ids go where their address is, on either side, also those that wait for their events."""
    guest = pair.right
    with _gateway_in(guest):
        both = _WithLibrary(guest)
        for active, passive, address, soft_roce in ((both, both, _GATEWAY, False), (both, both, guest.address4, True),
                                                    (both, pair.left, pair.left.address4, True),
                                                    (pair.left, both, guest.address4, True)):
            with _by_soft_roce(guest, soft_roce):
                port = guest.fresh_port()
                run_tool(_Roles(active, passive), True, _rping("-s", address, port), _rping("-c", address, port),
                         ready="rdma_listen")
            with _by_soft_roce(guest, soft_roce):
                port = str(guest.fresh_port())
                outputs = run_tool(_Roles(active, passive), True, ["rdma_server", "-p", port],
                                   ["rdma_client", "-p", port, "-s", address], ready="start")
            for output in outputs:
                expect(re.search(r"end 0$", output.strip()), f"not content:\n{output}")
    return "rping and rdma_client, four ways"


def _devices(pair):
    """Both are listed, and programs without a gateway find soft-RoCE as ever."""
    guest = pair.right
    with _gateway_in(guest):
        job = _WithLibrary(guest).start(["ibv_devinfo", "-l"])
        expect(job.wait(30) == 0 and re.search(r"2 HCAs.*rocegw0.*rxe0", job.output, re.DOTALL), job.output)


# The clock that wakes the machine counts whole seconds.
_ASLEEP_S = 5
_SUSPEND = f"""echo 0 >/sys/class/rtc/rtc0/wakealarm && echo +{_ASLEEP_S} >/sys/class/rtc/rtc0/wakealarm &&
echo mem >/sys/power/state"""
_SUSPENDED = "cat /sys/power/suspend_stats/success"
_LIVE = f"busybox wget -q -O - http://127.0.0.1:{_METRICS_PORT}/livez"


def _suspend(pair):
    """The machine sleeps (suspend to RAM) under traffic and wakes: programs go on, new ones connect, no thread passes for stuck."""
    guest = pair.right
    with _gateway_in(guest) as gateway:
        both = _WithLibrary(guest)
        port = guest.fresh_port()
        server = both.start([*_rping("-s", "0.0.0.0", port), "-P"])
        client = None
        try:
            server.expect("rdma_listen", 30)
            client = both.start(["rping", "-c", "-p", str(port), "-a", _GATEWAY, "-C", "1000000", "-V", "-v"])
            client.expect("ping data: ", 30)
            before = int(guest.run_plain(_SUSPENDED))
            guest.run_plain(_SUSPEND)
            expect(int(guest.run_plain(_SUSPENDED)) == before + 1, "the machine did not sleep")
            seen = client.output.count("ping data: ")
            eventually("pings after the sleep", lambda: client.output.count("ping data: ") > seen + 10, 30)
            expect("ok" in guest.run_plain(f"nsenter -t $(pidof rocegwd | cut -d ' ' -f 1) -n {_LIVE}"), "/livez")
            job = both.start(_rping("-c", _GATEWAY, port))
            expect(job.wait(30) == 0, f"{job.title}:\n{job.output}\nserver:\n{server.output}")
            expect("stuck" not in gateway.output, gateway.output[-3000:])
        finally:
            for job in (client, server):
                if job is not None:
                    job.signal(9)
                    job.wait(10)
    return f"asleep for {_ASLEEP_S} s"


def coexist_cases():
    return [Case("coexist.devices", 4200, _devices, "gateway"), Case("coexist.suspend", 4200, _suspend, "gateway"), Case("coexist.one_listener", 4200, _one_listener, "gateway"),
            Case("coexist.addresses", 4200, _addresses, "gateway")]
