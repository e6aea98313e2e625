#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernel TCP makes of a link that loses packets, measured: the curve beside the simulator's scenario `loss`.

  tests/bench/tcp_loss.py --out tests/bench/results/tcp_loss.csv [--mbps 200] [--delay-us 500] [--losses 0,0.001,...]

Three network namespaces of its own: two hosts, and between them a process that is the cable. It takes packets off one
veth and puts them on the other when a link of that rate and delay would have brought them, and loses some of those that
go to the receiver, by chance. (netem would do the same; not every kernel has it.) Segmentation offload is off: a packet
is a segment. iperf3 sends for some seconds at each loss, after one second that does not count. Goodput is what the
receiver's program got; `lost` is what the cable lost, `again` what TCP sent again, in segments, warm-up included. Needs root, iperf3, iproute2 and
ethtool. Wall clock, on a machine that may do other things: medians of --rounds, and the file's first line says of what.
"""
import argparse
import collections
import datetime
import json
import os
import random
import select
import signal
import socket
import statistics
import subprocess
import sys
import time

NAMES = [f"tl{os.getpid()}{which}" for which in "abm"]
A, B, MIDDLE = NAMES
QUEUE_BYTES = 1 << 20
OVERHEAD = 24  # preamble, gap and check sum of Ethernet


def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if ok and done.returncode != 0:
        sys.exit(f"tcp_loss: {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def within(space, *words):
    return run("ip", "netns", "exec", space, *words)


def cable(mbps, delay_us, loss):
    """In the middle namespace; until SIGTERM, then tells what it lost."""
    ends = []
    for name in ("to_a", "to_b"):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.bind((name, 0))
        end.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        end.setblocking(False)
        ends.append(end)
    going = True

    def stop(*_):
        nonlocal going
        going = False

    signal.signal(signal.SIGTERM, stop)
    print("ready", flush=True)
    chance = random.Random(1)
    per_byte = 8e-6 / mbps
    free_at, travelling = [0.0, 0.0], [collections.deque(), collections.deque()]
    lost = full = late = 0
    while going:
        now = time.monotonic()
        soonest = min((line[0][0] for line in travelling if line), default=now + 0.05)
        if soonest > now:
            # Shorter than a sleep is exact.
            select.select(ends, [], [], 0 if soonest - now < 2e-4 else soonest - now - 1e-4)
        now = time.monotonic()
        for side in (0, 1):
            for _ in range(64):
                try:
                    frame, address = ends[side].recvfrom(2048)
                except BlockingIOError:
                    break
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                size = len(frame) + OVERHEAD
                begins = max(now, free_at[side])
                if (begins - now) / per_byte > QUEUE_BYTES:
                    full += 1
                    continue
                free_at[side] = begins + size * per_byte
                # What a link loses has used it.
                if side == 0 and len(frame) > 200 and chance.random() < loss:
                    lost += 1
                    continue
                travelling[side].append((free_at[side] + delay_us * 1e-6, frame))
        now = time.monotonic()
        for side in (0, 1):
            line = travelling[side]
            while line and line[0][0] <= now:
                due, frame = line.popleft()
                late += now - due > 5e-4
                try:
                    ends[1 - side].send(frame)
                except OSError:
                    pass
    print(json.dumps({"lost": lost, "full": full, "late": late}), flush=True)


def again():
    return json.loads(within(A, "nstat", "-a", "-s", "-z", "-j", "TcpRetransSegs"))["kernel"]["TcpRetransSegs"]


def measure(options, loss):
    me = os.path.abspath(__file__)
    link = subprocess.Popen(["ip", "netns", "exec", MIDDLE, sys.executable, me, "--cable", "--mbps", str(options.mbps),
                             "--delay-us", str(options.delay_us), "--losses", str(loss)], stdout=subprocess.PIPE, text=True)
    server = None
    try:
        link.stdout.readline()
        server = subprocess.Popen(["ip", "netns", "exec", B, "iperf3", "-s", "-1", "-J"], stdout=subprocess.PIPE, text=True)
        while ":5201" not in within(B, "ss", "-ltn"):
            time.sleep(0.01)
        before = again()
        within(A, "iperf3", "-c", "10.77.0.2", "-t", str(options.seconds), "-O", "1", "-C", options.cc, "-J")
        repeated = again() - before
        report = json.loads(server.communicate(timeout=20)[0])
        link.terminate()
        told = json.loads(link.communicate(timeout=20)[0].splitlines()[-1])
    finally:
        for process in (server, link):
            if process is not None:
                process.kill()
    return report["end"]["sum_received"]["bits_per_second"] / 1e6, told["lost"] + told["full"], repeated


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--mbps", type=int, default=200)
    parser.add_argument("--delay-us", type=int, default=500)
    parser.add_argument("--losses", default="0,0.001,0.005,0.01,0.02,0.05")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cc", default="cubic")
    parser.add_argument("--cable", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    losses = [float(text) for text in options.losses.split(",")]
    if options.cable:
        return cable(options.mbps, options.delay_us, losses[0])
    if not options.out:
        parser.error("--out is missing")
    rows = []
    try:
        for space in NAMES:
            run("ip", "netns", "add", space)
        for space, port, address in ((A, "to_a", "10.77.0.1/24"), (B, "to_b", "10.77.0.2/24")):
            run("ip", "link", "add", "name", "cable", "netns", space, "type", "veth", "peer", "name", port, "netns", MIDDLE)
            within(space, "ip", "address", "add", address, "dev", "cable")
            for where, name in ((space, "cable"), (MIDDLE, port)):
                within(where, "ip", "link", "set", "dev", name, "up")
                within(where, "ethtool", "-K", name, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
            within(space, "sysctl", "-q", "-w", "net.ipv4.tcp_no_metrics_save=1")
        for loss in losses:
            rounds = [measure(options, loss) for _ in range(options.rounds)]
            rates = [one[0] for one in rounds]
            rows.append((loss, statistics.median(rates), min(rates), max(rates), sum(one[1] for one in rounds),
                         sum(one[2] for one in rounds)))
            print("loss %g: %.1f Mbit/s (%.1f to %.1f), lost %d, sent again %d" % rows[-1], flush=True)
    finally:
        for space in NAMES:
            run("ip", "netns", "del", space, ok=False)
    with open(options.out, "w") as out:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ")
        out.write(f"# kernel TCP ({options.cc}), Linux {os.uname().release}, {now}, {options.mbps} Mbit/s, "
                  f"{options.delay_us} us each way, medians of {options.rounds} x {options.seconds} s, "
                  f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        out.write("loss,mbps,least,most,lost,again\n")
        for row in rows:
            out.write("%g,%.2f,%.2f,%.2f,%d,%d\n" % row)


main()
