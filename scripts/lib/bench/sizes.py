#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Curves over message size between two hosts on one veth: throughput, messages per second, CPU seconds per GB and latency of
RDMA WRITE (perftest) over the gateways, memory moved and not, in turns with kernel TCP with and without offloads (iperf3 with
writes of that size, qperf for the latency). --plots DIR draws them as SVG. Needs root."""

import argparse
import json
import os
import re
import signal
import statistics
import sys

import e2e
from e2e import BANDWIDTH, LATENCY, Bench, gateway_pair_in, machine, start_gateways, stop_gateways
from line_plot import Curve, plot
from netlab.job import LabError, run
from netlab.lab import Lab

SIZES = tuple(1 << power for power in range(4, 24))
LARGEST_LATENCY = 1 << 20
TCP_LATENCY = re.compile(r"latency\s*=\s*([\d.]+)\s*(ns|us|ms|sec)")
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "sec": 1e6}
CHARTS = (("gbit_s", "Gbit/s"), ("messages_s", "messages per second"), ("cpu_s_per_gb", "CPU s/GB"), ("p50_us", "latency, us"))


class Sizes(Bench):
    """Rows are named by series and size."""

    def write(self, pair, name, size, remap):
        output, _, everything = self.perftest(pair, ["ib_write_bw", "-R", "-F", "-s", str(size), "-D", str(self.seconds), "-f", "0",
                                                     "--report_gbits"], remap)
        found = BANDWIDTH.search(output)
        if not found:
            raise LabError(f"ib_write_bw printed no result:\n{output}")
        messages = int(found.group(1))
        self.add(name, gbit_s=float(found.group(3)), messages_s=float(found.group(3)) * 1e9 / 8 / size,
                 cpu_s_per_gb=everything / (messages * size / 1e9))

    def write_latency(self, pair, name, size, remap):
        output, _, _ = self.perftest(pair, ["ib_write_lat", "-R", "-F", "-s", str(size), "-n", "1000"], remap)
        found = LATENCY.search(output)
        if not found:
            raise LabError(f"ib_write_lat printed no result:\n{output}")
        self.add(name, average_us=float(found.group(4)), p50_us=float(found.group(3)), p99_us=float(found.group(6)),
                 p999_us=float(found.group(7)))

    def tcp(self, pair, name, size, offloads):
        state = "on" if offloads else "off"
        self.set_offloads(pair, state)
        port = self.next_port()
        server = self.lab.start(["iperf3", "-s", "-1", "-p", port], namespace=pair[1].namespace)
        server.expect("Server listening", 20)
        output = run(["iperf3", "-c", pair[1].address4, "-p", port, "-t", str(self.seconds), "-l", str(min(size, 1 << 20)), "-J"],
                     namespace=pair[0].namespace, timeout=self.seconds + 30)
        server.wait(20)
        end = json.loads(output)["end"]
        received = end["sum_received"]
        percent = end["cpu_utilization_percent"]
        cpu = (percent["host_total"] + percent["remote_total"]) / 100 * end["sum_sent"]["seconds"]
        self.add(name, gbit_s=received["bits_per_second"] / 1e9, messages_s=received["bits_per_second"] / 8 / size,
                 cpu_s_per_gb=cpu / (received["bytes"] / 1e9))
        self.set_offloads(pair, "on")

    def tcp_latency(self, pair, name, size, offloads):
        self.set_offloads(pair, "on" if offloads else "off")
        port = self.next_port()
        server = self.lab.start(["qperf", "-lp", port], namespace=pair[1].namespace)
        try:
            output = run(["qperf", "-lp", port, "-t", "1", "-m", str(size), "--wait_server", "10", pair[1].address4, "tcp_lat"],
                         namespace=pair[0].namespace, timeout=60)
        finally:
            server.stop()
            self.set_offloads(pair, "on")
        found = TCP_LATENCY.search(output)
        if not found:
            raise LabError(f"qperf printed no result:\n{output}")
        self.add(name, average_us=float(found.group(1)) * MICROSECONDS[found.group(2)],
                 p50_us=float(found.group(1)) * MICROSECONDS[found.group(2)])

    @staticmethod
    def set_offloads(pair, state):
        for host in pair:
            run(["ethtool", "-K", host.interface, "tso", state, "gso", state, "gro", state], namespace=host.namespace)

    def size_round(self, pair, mode, sizes):
        for size in sizes:
            series = (("", True), (", no offloads", False))
            for suffix, offloads in series:
                self.measure(self.tcp, pair, f"TCP{suffix} {size}", size, offloads)
                if size <= LARGEST_LATENCY:
                    self.measure(self.tcp_latency, pair, f"TCP{suffix} {size}", size, offloads)
            start_gateways(pair, mode)
            for suffix, remap in (("", "never"), (", moved", "always")):
                self.measure(self.write, pair, f"{mode}{suffix} {size}", size, remap)
                if size <= LARGEST_LATENCY:
                    self.measure(self.write_latency, pair, f"{mode}{suffix} {size}", size, remap)
            stop_gateways(pair)
            print(f"{size} bytes done", flush=True)


def table(rows):
    keys = ("gbit_s", "messages_s", "cpu_s_per_gb", "average_us", "p50_us", "p99_us", "p999_us")
    print(f"{'median of rounds':28}" + "".join(f"{key:>14}" for key in keys))
    for name, row in rows.items():
        cells = (f"{statistics.median(row[key]):14.2f}" if key in row else " " * 14 for key in keys)
        print(f"{name:28}" + "".join(cells).rstrip())


def draw(rows, folder):
    """One SVG for each quantity, with a curve for each series."""
    for key, title in CHARTS:
        curves = {}
        for name, row in rows.items():
            series, _, size = name.rpartition(" ")
            if key in row:
                curves.setdefault(series, []).append((int(size), statistics.median(row[key])))
        with open(os.path.join(folder, f"sizes_{key}.svg"), "w", encoding="utf-8") as file:
            file.write(plot([Curve(series, sorted(points)) for series, points in curves.items()], "bytes per message", title))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(e2e.ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="of each bandwidth measurement")
    parser.add_argument("--mode", choices=("udp", "af_packet", "af_xdp", e2e.IN_PROCESS), default="udp")
    parser.add_argument("--size", action="append", type=int, help="only these")
    parser.add_argument("--plots", metavar="DIR")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    arguments.binaries = os.path.abspath(arguments.binaries)
    print(machine())
    with Lab() as lab:
        bench = Sizes(lab, arguments)
        pair = gateway_pair_in(lab, arguments.binaries, arguments.mode)
        for _ in range(arguments.rounds):
            bench.size_round(pair, arguments.mode, arguments.size or SIZES)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    table(bench.rows)
    if arguments.plots:
        os.makedirs(arguments.plots, exist_ok=True)
        draw(bench.rows, arguments.plots)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": bench.rows, "failures": bench.failures}, file, indent=1)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
