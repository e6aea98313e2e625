# SPDX-License-Identifier: Apache-2.0
"""Steps of programs, packets and workers: bad links, faulty programs, quotas, floods, a worker without a processor. Each takes a
Scene."""

import os
import signal

from scraped_fleet import change, pool
from netlab.fleet import eventually
from netlab.held_threads import HeldThreads, threads_of
from netlab.job import LabError, run
from prometheus import MOST, rising

# Frames of nonsense, faster than a stopped gateway takes them; from one source port, so that one worker gets all of them.
FLOOD = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 40000))\n"
         "for _ in range({count}): s.sendto(bytes({size}), ('{address}', 4791))")
# For the connection manager, damaged: what comes of it is for nobody.
FLOOD_OF_MADS = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 "for _ in range({count}): s.sendto(b'\\x64\\0\\xff\\xff\\0\\0\\0\\1' + bytes(300), ('{address}', 4791))")
# Requests for queue pairs of any worker, by way of any worker.
FOR_ALL_WORKERS = ("import os, socket\nfor port in range(40000, 40032):\n"
                   "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    s.bind(('', port))\n"
                   "    for _ in range(250): s.sendto(b'\\4\\0\\xff\\xff\\0' + os.urandom(3) + bytes(56), ('{address}', 4791))")


def channels(scene):
    """A pool of a tenant; between gateways frames go over channels"""
    scene.fleet.apply(pool())
    scene.fleet.into_pool()
    scene.on_a_bad_link([("ib_write_bw", 4), ("ib_read_bw", 2)], "RocegwChannelLoss", "rocegw_channel_probe_events_total")


def native(scene):
    """Plain RoCEv2 between the same gateways, one of which nobody knows for a gateway, out of the pool"""
    for host in scene.fleet.hosts:
        change(host, "channels: enabled", "discovery: disabled" if host is scene.right else "channels: disabled")
        up = f'up{{job="rocegw-gateway",node="{host.address4}"}}'
        for _ in range(2):
            host.stop_gateway()
            scene.until_shows(f"1 - {up}")
            host.start_gateway()
            scene.until_shows(up)
    scene.until_fires("RocegwGatewayRestarts")
    scene.fleet.out_of_pool()
    scene.on_a_bad_link([("ib_write_bw", 4), ("ib_read_bw", 2), ("ib_atomic_bw", 1)], "RocegwRetransmission",
                        "rocegw_atomic_replay_events_total", "rocegw_read_replay_events_total", "rocegw_tail_probe_events_total",
                        "rocegw_timeout_events_total", "rocegw_implied_nak_events_total", "rocegw_nak_sequence_rx_packets_total",
                        "rocegw_cnp_rx_packets_total", "rocegw_congestion_switch_events_total")


def no_way(scene):
    """No route to the peer, then a port that is down"""
    traffic = scene.fleet.connected("ib_write_bw", 4)
    scene.rounds()
    run(["ip", "route", "add", "unreachable", f"{scene.right.address4}/32"], namespace=scene.left.namespace)
    scene.until_fires("RocegwSendingGivenUp")
    run(["ip", "route", "del", "unreachable", f"{scene.right.address4}/32"], namespace=scene.left.namespace)
    run(["ip", "link", "set", "link0", "down"], namespace=scene.left.namespace)
    scene.until_fires("RocegwPortDown")
    scene.until_shows("sum(rocegw_channel_path_change_events_total)", "sum(rocegw_channel_close_events_total)")
    run(["ip", "link", "set", "link0", "up"], namespace=scene.left.namespace)
    # IPv6 addresses go with the link.
    run(["ip", "address", "replace", f"{scene.left.address6}/64", "dev", "link0", "nodad"], namespace=scene.left.namespace)
    scene.fleet.end(*traffic)


def nobody_there(scene):
    """Connections to hosts that are gone: each waits for discovery"""
    program = scene.left.start([scene.left.program("misuse"), "nobody", str(scene.left.gid_index(scene.left.address4))])
    program.expect("done", MOST)
    scene.until_fires("RocegwSetUpBudgetBurns")
    scene.fleet.end(program)


def late_receiver(scene):
    """A program that posts no receives for a while, and one whose many connections lose their peer"""
    server, client = scene.fleet.connected("ib_send_bw", 4, "-r", "16")
    scene.rounds(1)
    server.signal(signal.SIGSTOP)
    scene.until_fires("RocegwReceiverNotReady")
    server.signal(signal.SIGCONT)
    scene.fleet.end(server, client)
    server, client = scene.fleet.connected("ib_write_bw", 16)
    # The first failure that it sees would be its end, and that of connections which have not failed yet.
    scene.fleet.link.lose = 1
    client.signal(signal.SIGSTOP)
    scene.fleet.kill(server)
    scene.until_fires("RocegwQueuePairsFail")
    client.signal(signal.SIGCONT)
    client.wait(MOST)
    scene.fleet.link.well()


def misuse(scene):
    """Programs with faults of their own"""
    gid_index = str(scene.left.gid_index(scene.left.address4))
    for fault, until, seen in (("overrun", scene.until_fires, "RocegwCompletionQueueOverrun"),
                               ("vanish", scene.until_shows, rising("rocegw_memory_fault_operations_total")),
                               ("scribble", scene.until_fires, "RocegwClientFault")):
        program = scene.left.start([scene.left.program("misuse"), fault, gid_index])
        program.expect("done", MOST)
        until(seen)
        scene.fleet.kill(program)


def quotas(scene):
    """Limits that are reached, exceeded, held back by; a reserve that does not suffice"""
    scene.fleet.apply(pool(qps=8, ready=1))
    scene.fleet.into_pool()
    full = scene.fleet.connected("ib_write_bw", 8)
    scene.until_fires("RocegwReserveTooSmall", "RocegwPoolNearLimit")
    over = scene.fleet.perftest("ib_write_bw", 4)
    over[1].wait(MOST)
    scene.until_fires("RocegwPoolRefuses")
    scene.fleet.end(*full, *over)
    scene.fleet.apply(pool(rate=", bytesPerSecond: 4000000"))
    slow = scene.fleet.connected("ib_write_bw", 2)
    scene.until_shows(rising('rocegw_pool_refused_total{limit="bytes_per_second"}'))
    scene.fleet.end(*slow)
    scene.fleet.apply(pool(rate=", bytesPerSecond: null"))


def denied(scene):
    """Programs that nobody vouches for, then those that somebody does"""
    scene.fleet.apply(pool(identity=", identity: REQUIRED"))
    for _ in range(3):
        if scene.left.start(["ibv_devinfo", "-d", "rocegw0"]).wait(MOST) == 0:
            raise LabError("somebody whom nobody knows got in")
        scene.rounds(1)
    scene.until_fires("RocegwAccessDenied")
    for agent in scene.fleet.agents:
        agent.configure(f"{{pool: tenants/blue/pools/fast, uids: [{os.geteuid()}], cgroups: [/]}}")
        eventually("the new rules", lambda a=agent: "attach_rules are read again" in a.daemon.output, MOST)
    for _ in range(3):
        scene.left.run_plain(f"ROCEGW_SOCKET={scene.left.attach_socket} {scene.left.program('rocegw-run')} -- ibv_devinfo -d rocegw0")
        scene.rounds(1)
    scene.until_shows(rising("rocegw_agent_attach_verdicts_total"))
    scene.fleet.apply(pool(identity=", identity: RECORDED"))


def rejected(scene):
    """A pool with an address that only one of the gateways has"""
    scene.fleet.controller.ctl("apply", "-f", "-", stdin=pool(more="addresses: [\"10.77.0.1\"]"))
    scene.until_fires("RocegwObjectsRejected")
    scene.fleet.apply(pool(more="addresses: []"))


def drain(scene):
    """A drain under traffic"""
    traffic = scene.fleet.connected("ib_write_bw", 2)
    scene.fleet.controller.ctl("get", "sessions", "-g", "right")
    scene.until_shows("sum(rocegw_agent_questions_total)")
    scene.fleet.controller.ctl("drain", "right", "--deadline", "2s", "--on-deadline", "disconnect", "--wait", "--timeout", "50")
    scene.rounds()
    scene.fleet.controller.ctl("undrain", "right")
    scene.fleet.end(*traffic)


def held_up(scene):
    """A gateway that gets no processor: packets pile up"""
    def flood(count):
        run(["/usr/bin/python3", "-c", FLOOD.format(count=count, size=2000, address=scene.right.address4)], namespace=scene.right.namespace)
    scene.until_fires("RocegwNotInSync", doing=scene.stop_in_a_change)
    flood(20000)
    scene.right.daemon.signal(signal.SIGCONT)
    # The kernel tells what it lost with what it did not.
    scene.until_fires("RocegwReceiveBufferFull", doing=lambda: flood(100))


def flooded(scene):
    """More messages for the connection manager than a gateway answers"""
    def flood():
        run(["/usr/bin/python3", "-c", FLOOD_OF_MADS.format(count=200000, address=scene.right.address4)], namespace=scene.left.namespace)
    scene.until_fires("RocegwFlood", doing=flood)


def starved(scene):
    """A worker that gets no processor: the other one cannot hand over what is its own"""
    last = [number for name, number in threads_of(scene.right.daemon.pid) if name == "rocegw-worker"][-1:]

    def starve():
        with HeldThreads(last):
            run(["/usr/bin/python3", "-c", FOR_ALL_WORKERS.format(address=scene.right.address4)], namespace=scene.left.namespace)
        scene.rounds(2)
    scene.until_shows(rising('rocegw_drops_total{reason="handoff_full"}'), doing=starve)
    scene.until_fires("RocegwGatewayDropsPackets")
    with HeldThreads(last):
        scene.until_fires("RocegwWorkerHangs")
