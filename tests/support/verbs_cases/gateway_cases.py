# SPDX-License-Identifier: Apache-2.0
"""Cases about the gateway itself, at the left: what programs and operators see of it."""

import contextlib
import itertools
import json
import os
import re
import signal
import time

from netlab.fleet import eventually
from netlab.held_threads import HeldThreads, threads_of
from netlab.huge_pages import free_huge_pages
from netlab.job import LocalJob, run

from .case import Case, expect
from .check_cases import endless_traffic, rdma_check
from .tool_cases import perftest

# Any user but root; needs no entry in /etc/passwd.
_OTHER_USER = 61234


def _devinfo(pair):
    """ibv_devinfo shows a device that programs will take: active port, Ethernet, GIDs of both addresses."""
    text = pair.left.run(["ibv_devinfo", "-v", "-d", pair.left.device])
    for wanted in (r"state:\s+PORT_ACTIVE", r"link_layer:\s+Ethernet", r"max_mtu:\s+4096", r"active_mtu:\s+1024",
                   rf"GID\[\s*\d+\]:\s+::ffff:{re.escape(pair.left.address4)}, RoCE v2",
                   rf"GID\[\s*\d+\]:\s+{re.escape(pair.left.address6)}, RoCE v2"):
        expect(re.search(wanted, text), f"ibv_devinfo shows nothing like {wanted}:\n{text}")
    names = pair.left.run(["ibv_devices"])
    expect(pair.left.device in names, f"ibv_devices does not list {pair.left.device}:\n{names}")
    return "device, port and GIDs shown"


def _gid_order(pair):
    """GIDs come in the same order as those of the other host: link-local, IPv4, other IPv6. Programs take the last one, or the
    second."""
    def kinds(host):
        host.forget_gids()
        # Other cases may have added addresses; each kind counts where it comes first.
        found = ["link-local" if gid.startswith("fe80:") else "IPv4" if gid.startswith("::ffff:") else "IPv6"
                 for _, gid in host.gids()]
        return list(dict.fromkeys(found))
    eventually("a link-local address that is no longer tentative", lambda: len(kinds(pair.left)) >= 3)
    expect(kinds(pair.left) == kinds(pair.right), f"{kinds(pair.left)} instead of {kinds(pair.right)}")
    expect(kinds(pair.left) == ["link-local", "IPv4", "IPv6"] and pair.left.gids()[0][0] == 0, f"{pair.left.gids()}")
    port = str(pair.right.fresh_port())
    words = ["ibv_rc_pingpong", "-g", "0", "-p", port]
    server = pair.right.start([*words, "-d", pair.right.device])
    pair.right.wait_listening(int(port), server)
    pair.left.run([*words, "-d", pair.left.device, pair.right.address4])
    expect(server.wait(20) == 0, f"over link-local addresses:\n{server.output}")
    return ", ".join(gid for _, gid in pair.left.gids())


def _user(pair):
    """A program of another user than the daemon's: memory is reached through its descriptor."""
    ran = []
    with pair.counted(at_least=2):
        for connect in ("cm", "socket"):
            ran += rdma_check(pair, True, connect, cases="transfer.*,atomic.*", user=_OTHER_USER)
    pair.left.expect_idle()
    return f"{len(ran)} rdma_check cases as user {_OTHER_USER}"


def _status(pair):
    """rocegwctl shows the session of a program while it runs, and none afterwards."""
    with endless_traffic(pair):
        text = pair.left.control("status")
        status = json.loads(pair.left.control("-o", "json", "status"))
        sessions = status["sessions"].get("sessions", [])
        qps = status["qps"].get("qps", [])
        expect(len(sessions) == 1, f"{len(sessions)} sessions shown while one program runs:\n{text}")
        expect(len(qps) == 1, f"{len(qps)} queue pairs shown while one is in use:\n{text}")
        expect("rdma_check" in text, f"status does not name the program:\n{text}")
    pair.left.expect_idle()
    return "session and queue pair shown"


def _discovery(pair):
    """What the peer is, is found out before the first connection and told with it, and what that is good for."""
    other_is_gateway = hasattr(pair.right, "control")
    kind = '{kind="gateway"}' if other_is_gateway else '{kind="rdma_device"}'
    rdma_check(pair, True, "cm", cases="connect.*")
    known = pair.left.metrics().get(("rocegw_discovery_peers", kind), 0)
    expect(known >= 1, f"{known} peers are known as {kind}")
    outcome = '{outcome="gateway"}' if other_is_gateway else '{outcome="refused"}'
    asked = pair.left.metrics().get(("rocegw_discovery_questions_total", outcome), 0)
    expect(asked >= 1, f"{asked} questions ended as {outcome}")
    with endless_traffic(pair):
        shown = json.loads(pair.left.control("-o", "json", "get", "connections"))["connections"]
        shown = [row for row in shown if row["state"] == "established"]
        expect(len(shown) == 1, f"{len(shown)} established connections shown: {shown}")
        vendor = shown[0].get("sent", {}).get("vendorId", 0)
        expect((vendor != 0) == other_is_gateway, f"the request names vendor {vendor:#x}")
        number = shown[0]["localQpn"]
        text = pair.left.control("describe", "qp", f"{number:#08x}")
        channels = json.loads(pair.left.control("-o", "json", "get", "channels")).get("channels", [])
        used = [row for row in channels if row.get("users", 0) > 0]
        if pair.channels:
            expect("channel" in shown[0].get("agreed", []), f"what was agreed on: {shown[0]}")
            expect("a channel was agreed on by the CM" in text, f"the queue pair does not tell that it has a channel:\n{text}")
            expect(len(used) == 1 and used[0]["state"] == "open" and used[0]["remoteAddress"] == pair.right.address4
                   and used[0]["congestion"] == "caqm", f"channels: {channels}")
            expect(f"{used[0]['number']:#08x}" in pair.left.control("get", "channels"), "the table lacks the channel")
        else:
            why = "channels are not enabled here" if other_is_gateway else "the peer does not answer as a gateway"
            expect("standard RoCEv2" in shown[0]["reason"], f"reason: {shown[0]['reason']}")
            expect(why in text, f"the queue pair does not tell why it is native:\n{text}")
            expect(not channels, f"channels: {channels}")
    return f"peer known as {kind}, connection: {shown[0]['reason']}"


def memory_grown(host, before, unit="operations"):
    after = host.counters()
    return {way: after[f"rocegw_memory_{way}_{unit}_total"] - before[f"rocegw_memory_{way}_{unit}_total"]
            for way in ("cross", "direct")}


def _memory_ways(pair):
    """Both ways to reach client memory are used, by programs of the daemon's user and of another one: cross-process
    copies alone where a program forbids to move its pages, and pages that were moved onto shared ones."""
    note = []
    for user in (None, _OTHER_USER):
        for remap in ("never", "always"):
            before = pair.left.counters()
            for connect in ("cm", "socket"):
                rdma_check(pair, True, connect, cases="transfer.*,atomic.*", user=user, remap=remap)
            grown = memory_grown(pair.left, before)
            who = f"{'another user' if user else 'same user'}, {remap}: {grown}"
            if remap == "never":
                expect(grown["cross"] > 0 and grown["direct"] == 0, f"not (only) reached by copies: {who}")
            else:
                expect(grown["direct"] > 0, f"shared pages were not used: {who}")
            note.append(f"{grown['cross']:.0f}/{grown['direct']:.0f}")
    pair.left.expect_idle()
    return "cross/direct " + ", ".join(note)


def _remap_perftest(pair):
    """A program that knows nothing about it: perftest's buffer of 2 MiB is shared, all of its payload goes that way."""
    gateways = [host for host in (pair.left, pair.right) if host.is_gateway]
    before = [host.counters() for host in gateways]
    perftest(pair, True, "ib_write_bw", "cm", size=1 << 20)
    for host, old in zip(gateways, before):
        grown = memory_grown(host, old, "bytes")
        # What mode udp sends is not copied at all.
        name = "rocegw_memory_reference_bytes_total"
        grown["direct"] += host.counters()[name] - old[name]
        expect(grown["direct"] >= 200 << 20, f"{host.name}: 200 MiB were written, but by shared pages only {grown}")
        expect(grown["cross"] < 1 << 20, f"{host.name}: bytes went the other way too: {grown}")
    return f"{grown['direct'] / (1 << 20):.0f} MiB"


def _remap_check(pair):
    """Everything that rdma_check does, with each buffer moved that can be."""
    before = pair.left.counters()
    ran = []
    for left_is_active in (True, False):
        for connect in ("cm", "socket"):
            ran += rdma_check(pair, left_is_active, connect, remap="always", seed=8)
    expect(memory_grown(pair.left, before)["direct"] > 0, "shared pages were not used")
    pair.left.expect_idle()
    return f"{len(ran)} rdma_check cases"


def _workers(pair):
    """Queue pairs of one program sit on all workers, and packets that arrive at another one are handed over."""
    # With kernel sockets the kernel knows whose a packet is, unless it is told not to. Channels are few, and by chance each
    # of them may arrive where it belongs: every queue pair sends for itself.
    with pair.left.changed_config("mode: udp,", "mode: udp, steering: hash,"), \
            pair.left.changed_config("channels: enabled", "channels: disabled"):
        before = pair.left.metrics()
        for connect in ("cm", "socket"):
            for left_is_active in (True, False):
                rdma_check(pair, left_is_active, connect, qps=32,
                           cases="transfer.many_qps*,transfer.both_ways,atomic.contention*")
        after = pair.left.metrics()
    grown = {key: value - before.get(key, 0) for key, value in after.items()}
    per_worker = {labels: value for (name, labels), value in grown.items() if name == "rocegw_cqe_entries_total"}
    expect(len(per_worker) > 1 and all(per_worker.values()), f"completions per worker: {per_worker}")
    handed = sum(value for (name, _), value in grown.items() if name == "rocegw_handoff_rx_packets_total")
    expect(handed > 0, "no packet was handed over between workers")
    return f"{handed:.0f} packets handed over, completions {sorted(per_worker.values())}"


def _huge_pages(pair):
    """DPDK takes huge pages where enough are free, and ordinary ones otherwise."""
    gateways = [host for host in (pair.left, pair.right) if hasattr(host, "changed_config")]

    def transfers():
        with pair.counted(at_least=2):
            return sum((rdma_check(pair, left_is_active, connect, cases="transfer.*")
                        for left_is_active in (True, False) for connect in ("cm", "socket")), [])
    with contextlib.ExitStack() as changes:
        # 140 MiB for each, of which DPDK wants memory_mb to be free at its start and takes what it needs.
        changes.enter_context(free_huge_pages(70 * len(gateways)))
        for host in gateways:
            changes.enter_context(host.changed_config("huge_pages: off", "huge_pages: auto, memory_mb: 128"))
            expect(host.huge_page_bytes() > 0, f"{host.name} took no huge page")
        ran = transfers()
        taken = [f"{host.huge_page_bytes() >> 20} MiB" for host in gateways]
    with free_huge_pages(8), pair.left.changed_config("huge_pages: off", "huge_pages: auto, memory_mb: 128"):
        expect(pair.left.huge_page_bytes() == 0, "the gateway took huge pages though there were too few")
        ran += transfers()
    return f"{len(ran)} rdma_check cases, huge pages: {', '.join(taken)}"


def _xdp_program(pair):
    """The XDP program is on the interface while the daemon lives, and leaves with a daemon that is killed."""
    def attached():
        return "prog/xdp" in run(["ip", "link", "show", "dev", pair.left.interface], namespace=pair.left.namespace)
    expect(attached(), "no XDP program on the interface of a running gateway")
    pair.left.daemon.signal(signal.SIGKILL)
    eventually("an interface without a program", lambda: not attached())
    pair.left.start_gateway()
    expect(attached(), "no XDP program after the restart")
    with pair.counted(at_least=2):
        ran = rdma_check(pair, True, "cm", cases="transfer.mixed*")
    return f"{len(ran)} rdma_check cases after a kill"


def _cm_misuse(pair):
    """Calls of librdmacm that cannot work fail as they do with a kernel's device."""
    def said(host):
        return host.run([host.program("cm_misuse"), host.address4]).splitlines()
    ours, theirs = said(pair.left), said(pair.right)
    different = [f"{one} | {other}" for one, other in itertools.zip_longest(ours, theirs) if one != other]
    expect(not different, "gateway | the other:\n      " + "\n      ".join(different))
    return f"{len(ours)} calls"


def _refused(pair, change, pattern):
    """A daemon that cannot start says so in one line with the remedy, and does not exit with 0."""
    host = pair.left
    with open(host.config, encoding="utf-8") as file:
        text = change(file.read().replace(host.directory, os.path.join(host.directory, "second")))
    path = os.path.join(host.directory, "refused.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    job = LocalJob([os.path.join(host.binaries, "rocegwd"), "--config", path], namespace=host.namespace)
    try:
        status = job.wait(30)
    finally:
        job.signal(signal.SIGKILL)
    expect(status > 0, f"the daemon exited with {status}:\n{job.output}")
    lines = [line for line in job.output.splitlines() if re.search(pattern, line)]
    expect(len(lines) == 1, f"{len(lines)} lines like {pattern!r}:\n{job.output}")
    return lines[0][:120]


def _second_instance(pair):
    return _refused(pair, lambda text: text, r"(?i)already|another|second|in use")


def _missing_interface(pair):
    return _refused(pair, lambda text: text.replace(f"interface: {pair.left.interface}", "interface: nosuch0"),
                    r"nosuch0")


def _unknown_key(pair):
    return _refused(pair, lambda text: text + "wrokers: 3\n", r"refused\.yaml:\d+: .*wrokers")


def _endless_programs(pair):
    """Programs of the left host in the middle of their work, and their peers: one polls, two wait
    for events."""
    left, right = [], []
    address = str(pair.left.gid_index(pair.left.address4))
    port = str(pair.right.fresh_port())
    words = ["ib_write_bw", "-s", "65536", "-p", port, "-F", "--run_infinitely"]
    right.append(pair.right.start(words + ["-d", pair.right.device, "-x", str(pair.right.gid_index(pair.right.address4))]))
    pair.right.wait_listening(int(port), right[-1])
    left.append(pair.left.start(words + ["-d", pair.left.device, "-x", address, pair.right.address4]))
    left[-1].expect("#bytes", 30)
    port = str(pair.right.fresh_port())
    right.append(pair.right.start(["rping", "-s", "-d", "-a", pair.right.address4, "-p", port]))
    right[-1].expect("rdma_listen", 30)
    left.append(pair.left.start(["rping", "-c", "-a", pair.right.address4, "-p", port, "-v"]))
    left[-1].expect("ping data", 30)
    port = str(pair.right.fresh_port())
    right.append(pair.right.start([pair.right.program("rdma_check"), "server", "--port", port]))
    right[-1].expect("serving", 30)
    left.append(pair.left.start([pair.left.program("rdma_check"), "client", pair.right.address4, "--port", port,
                                 "--connect", "cm", "--cases", "endless.traffic"]))
    left[-1].expect(r"^endless: \d+ requests", 60)
    return left, right


def _lost(pair):
    """Programs whose gateway ends or dies are told: they end by themselves, with an error. Its successor serves at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left, right = _endless_programs(pair)
        try:
            pair.left.daemon.signal(number)
            status = pair.left.daemon.wait(20)
            expect(status == (0 if number == signal.SIGTERM else -signal.SIGKILL), f"the daemon ended with {status}")
            for job in left:
                expect(job.wait(30) != 0, f"{job.title} took the end of its gateway for success:\n{job.output}")
        finally:
            for job in left + right:
                job.signal(signal.SIGKILL)
                job.wait(10)
            if not pair.left.daemon.running:
                pair.left.start_gateway()
    return f"{len(rdma_check(pair, True, 'cm', cases='transfer.mixed*'))} rdma_check cases afterwards"


def _rests(pair):
    """Workers without work sleep, also after their interface was down, and programs work then."""
    # One that spins goes round some hundred thousand times a second.
    most = 5000
    # Addresses of IPv6 would be gone.
    run(["sh", "-c", f"echo 1 > /proc/sys/net/ipv6/conf/{pair.left.interface}/keep_addr_on_down"], namespace=pair.left.namespace)
    for state in ("down", "up"):
        run(["ip", "link", "set", pair.left.interface, state], namespace=pair.left.namespace)
    time.sleep(1)  # what came of it
    before = pair.left.counters()["rocegw_loop_idle_iterations_total"]
    time.sleep(1)
    rounds = pair.left.counters()["rocegw_loop_idle_iterations_total"] - before
    expect(rounds < most, f"workers with nothing to do went round {rounds} times in a second")
    ran = rdma_check(pair, True, "cm", cases="transfer.mixed*")
    return f"{rounds:.0f} rounds in a second, {len(ran)} rdma_check cases afterwards"


def _held_worker(pair):
    """Counters are there though a worker thread gets no processor, also during a drain, which asks workers what it waits for. Who
    stands still is named."""
    workers = [number for name, number in threads_of(pair.left.daemon.pid) if name == "rocegw-worker"]
    seen = []
    for drained in (False, True):
        if drained:
            pair.left.control("--local", "drain")
        try:
            with HeldThreads(workers[-1:]):
                seen.append(pair.left.counters())
        finally:
            if drained:
                pair.left.control("--local", "undrain")
    # All that no worker is asked for.
    for counters in seen:
        missing = [name for name in ("rocegw_queue_pairs", "rocegw_rx_packets_total", "rocegw_pool_used") if name not in counters]
        expect(not missing, f"without a worker's answer there is no {missing}; there are {sorted(counters)}")

    def silence():
        return max(value for (name, _), value in pair.left.metrics().items() if name == "rocegw_worker_silent_seconds")
    with HeldThreads(workers[-1:]):
        index = len(workers) - 1
        found = run(pair.left.control_words("--local", "doctor"), check=False)
        expect(f"worker {index} has not answered for" in found, f"doctor:\n{found}")
        eventually("a worker that is more than slow", lambda: silence() >= 5)
        told = run(pair.left.control_words("--local", "get", "qps"), check=False)
        expect(f"worker {index} has not answered for" in told, told)
    eventually("an end of what is owed, by a worker that runs again", lambda: silence() == 0)
    ran = rdma_check(pair, True, "cm", cases="transfer.mixed*")
    return f"{len(seen[0])} kinds of values, {len(ran)} rdma_check cases afterwards"


def gateway_cases():
    cases = [
        ("devinfo", 1500, _devinfo),
        ("gid_order", 1500, _gid_order),
        ("user", 4200, _user),
        ("status", 1500, _status),
        ("discovery", 1500, _discovery),
        ("memory_ways", 4200, _memory_ways),
        ("remap_perftest", 4200, _remap_perftest),
        ("remap_check", 4200, _remap_check),
        ("second_instance", 1500, _second_instance),
        ("missing_interface", 1500, _missing_interface),
        ("unknown_key", 1500, _unknown_key),
        ("lost", 1500, _lost),
        ("rests", 1500, _rests),
        ("held_worker", 1500, _held_worker),
        ("cm_misuse", 1500, _cm_misuse),
    ]
    return [Case(f"gateway.{name}", mtu, run, "gateway") for name, mtu, run in cases] + [
        Case("gateway.workers", 4200, _workers, "workers"),
        Case("gateway.huge_pages", 4200, _huge_pages, "dpdk"),
        Case("gateway.xdp_program", 1500, _xdp_program, "xdp")]
