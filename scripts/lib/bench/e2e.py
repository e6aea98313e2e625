#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end benchmark: two hosts on one veth, real processes. perftest over the gateways (port modes udp and af_packet)
in alternating rounds with kernel TCP (iperf3, reno in both namespaces, offloads on and off) and with the floor (kernel UDP
with segmentation offload, ICRC and a copy at both ends; of latency a small datagram there and back). The modes in_process
and run_in_poll have no daemons: the gateways are inside of the programs (docs/user/in_process.md). Rounds alternate so that a slow minute of the machine hits all.

CPU seconds per GB count the processes of both sides; for the gateways the daemons alone are shown beside daemons and
programs, since perftest polls all the time. A measurement that fails is reported and the others go on."""

import argparse
import json
import os
import platform
import re
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
REJECTED = re.compile(r"RDMA_CM_EVENT_REJECTED|Unexpected CM event")
KEY_VALUE = re.compile(r"(\w+)=(\S+)")
# Some programs print a standard deviation of "-nan".
LATENCY = re.compile(r"^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+|-?nan)\s+([\d.]+)\s+([\d.]+)",
                     re.MULTILINE)
BANDWIDTH = re.compile(r"^\s*\d+\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", re.MULTILINE)


def cpu_of(pid):
    """User and system seconds of a process and the children it has waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(value) for value in fields[11:15]) / TICKS


def daemons_cpu(pair):
    return sum(cpu_of(host.daemon.pid) for host in pair if host.daemon)


FLOOR = "floor: UDP + ICRC + cross-process copy"
FLOOR_REMAPPED = "floor: UDP + ICRC + memcpy"
FLOOR_IN_PLACE = "floor: UDP + ICRC, memcpy at the receiver alone"
FLOOR_LATENCY = "floor: 8 B over UDP + ICRC, there and back"


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return f"{os.cpu_count()} x {model}, {platform.system()} {platform.release()}, load {load}"


class Bench:
    def __init__(self, lab, arguments):
        self.lab = lab
        self.binaries = arguments.binaries
        self.seconds = arguments.seconds
        self.port = 19000
        self.rows = {}
        self.hosts = {}
        self.failures = []

    def measure(self, method, pair, name, *arguments):
        """Runs one measurement; what goes wrong is noted, and the daemons begin anew behind it."""
        try:
            method(pair, name, *arguments)
        except LabError as error:
            text = str(error)
            self.failures.append(f"{name}: {text}")
            print(f"FAILED {name}: {text[:200]}", flush=True)
            for host in pair:
                if host.daemon is not None:
                    host.stop_gateway()
                    host.start_gateway()

    def add(self, name, **values):
        row = self.rows.setdefault(name, {})
        for key, value in values.items():
            row.setdefault(key, []).append(value)

    def next_port(self):
        self.port += 1
        return str(self.port)

    # Kernel TCP -----------------------------------------------------------------------------------------------------

    def iperf(self, pair, name, offloads):
        for host in pair:
            state = "on" if offloads else "off"
            run(["ethtool", "-K", host.interface, "tso", state, "gso", state, "gro", state], namespace=host.namespace)
        port = self.next_port()
        server = self.lab.start(["iperf3", "-s", "-1", "-p", port], namespace=pair[1].namespace)
        server.expect("Server listening", 20)
        output = run(["iperf3", "-c", pair[1].address4, "-p", port, "-t", str(self.seconds), "-J"],
                     namespace=pair[0].namespace, timeout=self.seconds + 30)
        server.wait(20)
        end = json.loads(output)["end"]
        gigabytes = end["sum_received"]["bytes"] / 1e9
        percent = end["cpu_utilization_percent"]
        cpu = (percent["host_total"] + percent["remote_total"]) / 100 * end["sum_sent"]["seconds"]
        self.add(name, gbit_s=end["sum_received"]["bits_per_second"] / 1e9, cpu_s_per_gb=cpu / gigabytes)
        for host in pair:
            run(["ethtool", "-K", host.interface, "tso", "on", "gso", "on", "gro", "on"], namespace=host.namespace)

    # The floor ------------------------------------------------------------------------------------------------------

    def floor(self, pair, name, *extra):
        program = os.path.join(self.binaries, "udp_floor")
        receiver = self.lab.start([program, "receive", pair[1].address4, *extra], namespace=pair[1].namespace)
        receiver.expect("receiving", 20)
        sent = dict(KEY_VALUE.findall(run([program, "send", pair[1].address4, pair[0].address4, str(self.seconds), *extra],
                                          namespace=pair[0].namespace, timeout=self.seconds + 30)))
        if receiver.wait(20) != 0:
            raise LabError(f"udp_floor: {receiver.output}")
        received = dict(KEY_VALUE.findall(receiver.output))
        gigabytes = int(sent["bytes"]) / 1e9
        self.add(name, gbit_s=float(sent["gbit_s"]),
                 cpu_s_per_gb=(float(sent["cpu_s"]) + float(received["cpu_s"])) / gigabytes)

    def floor_latency(self, pair, name):
        program = os.path.join(self.binaries, "udp_floor")
        pong = self.lab.start([program, "pong", pair[1].address4], namespace=pair[1].namespace)
        pong.expect("receiving", 20)
        got = dict(KEY_VALUE.findall(run([program, "ping", pair[1].address4, pair[0].address4, "5000"],
                                         namespace=pair[0].namespace, timeout=60)))
        if pong.wait(20) != 0:
            raise LabError(f"udp_floor: {pong.output}")
        self.add(name, p50_us=float(got["p50_us"]), p99_us=float(got["p99_us"]))

    # perftest over the gateways -------------------------------------------------------------------------------------

    def perftest(self, pair, words, remap):
        """Runs a program between the hosts; returns its output, CPU seconds of the daemons and of all."""
        words = ["env", f"ROCEGW_REMAP={remap}", *words]
        # perftest connects twice, and its server says that it waits before it listens: a client that is early for either
        # is rejected. The server may then take the next client for the rest of this one, so both begin anew.
        for attempt in range(10):
            port = self.next_port()
            jobs = [pair[1].start([*words, "-p", port])]
            try:
                jobs[0].expect("Waiting for client", 30)
                daemons = daemons_cpu(pair)
                children = os.times()
                jobs.append(pair[0].start([*words, "-p", port, pair[1].address4]))
                if jobs[1].wait(self.seconds + 30) == 0 and jobs[0].wait(30) == 0:
                    break
                if attempt == 9 or not REJECTED.search(jobs[1].output):
                    raise LabError(f"{' '.join(words)}:\n{jobs[1].output}\n{jobs[0].output}")
            finally:
                for job in jobs:
                    if job.running:
                        job.stop()
        ended = os.times()
        daemons = daemons_cpu(pair) - daemons
        programs = (ended.children_user + ended.children_system) - (children.children_user + children.children_system)
        return jobs[1].output, daemons, daemons + programs

    def bandwidth(self, pair, name, program, size, remap="never"):
        output, daemons, everything = self.perftest(
            pair, [program, "-R", "-F", "-s", str(size), "-D", str(self.seconds), "-f", "0", "--report_gbits"], remap)
        found = BANDWIDTH.search(output)
        if not found:
            raise LabError(f"{program} printed no result:\n{output}")
        gbit_s = float(found.group(3))
        gigabytes = int(found.group(1)) * size / 1e9
        # -f 0: all of the run counts. The daemons also connected, so this errs upwards.
        self.add(name, gbit_s=gbit_s, cpu_s_per_gb=everything / gigabytes, daemon_cpu_s_per_gb=daemons / gigabytes)

    def latency(self, pair, name, program, size):
        output, _, _ = self.perftest(pair, [program, "-R", "-F", "-s", str(size), "-n", "1000"], "never")
        found = LATENCY.search(output)
        if not found:
            raise LabError(f"{program} printed no result:\n{output}")
        self.add(name, p50_us=float(found.group(3)), p99_us=float(found.group(6)))

    # ----------------------------------------------------------------------------------------------------------------

    def latency_round(self, modes):
        """Of every mode once, close to each other, each beside the floor."""
        for mode in modes:
            pair = self.hosts[mode]
            self.measure(self.floor_latency, pair, FLOOR_LATENCY)
            start_gateways(pair, mode)
            for program in LATENCIES:
                self.measure(self.latency, pair, f"{mode}: {program} 8 B", program, 8)
            stop_gateways(pair)

    def round(self, modes, latency_only):
        for mode in modes:
            self.hosts[mode] = self.hosts.get(mode) or gateway_pair_in(self.lab, self.binaries, mode)
        if latency_only:
            return self.latency_round(modes)
        plain = self.hosts[modes[0]]
        self.measure(self.iperf, plain, "TCP reno, offloads on", True)
        self.measure(self.iperf, plain, "TCP reno, offloads off", False)
        self.measure(self.floor, plain, FLOOR)
        self.measure(self.floor, plain, FLOOR_REMAPPED, "--remapped")
        self.measure(self.floor, plain, FLOOR_IN_PLACE, "--in-place")
        self.measure(self.floor_latency, plain, FLOOR_LATENCY)
        for mode in modes:
            pair = self.hosts[mode]
            start_gateways(pair, mode)
            for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
                self.measure(self.bandwidth, pair, f"{mode}: {program} 1 MiB", program, 1 << 20)
            if mode not in (IN_PROCESS, RUN_IN_POLL):
                self.measure(self.bandwidth, pair, f"{mode}: ib_write_bw 1 MiB, remapped", "ib_write_bw", 1 << 20, "always")
            self.measure(self.bandwidth, pair, f"{mode}: ib_write_bw 4 KiB", "ib_write_bw", 4096)
            for program in LATENCIES:
                self.measure(self.latency, pair, f"{mode}: {program} 8 B", program, 8)
            stop_gateways(pair)


IN_PROCESS = "in_process"
RUN_IN_POLL = "run_in_poll"
LATENCIES = ("ib_write_lat", "ib_read_lat", "ib_send_lat")


def start_gateways(pair, mode):
    for host in pair if mode not in (IN_PROCESS, RUN_IN_POLL) else ():
        host.start_gateway()


def stop_gateways(pair):
    for host in pair:
        if host.daemon:
            host.stop_gateway()
            host.daemon = None


def gateway_pair_in(lab, binaries, mode):
    """A pair of hosts of its own for each port mode; TCP measures the first one's."""
    inside = mode in (IN_PROCESS, RUN_IN_POLL)
    pair = gateway_pair(lab, binaries, "udp" if inside else mode, name=mode.replace("_", ""))
    for host in pair if inside else ():
        host.bring_gateways_along(run_in_poll=mode == RUN_IN_POLL)
    for host in pair:
        run(["sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno"], namespace=host.namespace)
    return pair


def table(rows):
    columns = ["gbit_s", "cpu_s_per_gb", "daemon_cpu_s_per_gb", "p50_us", "p99_us"]
    titles = {"gbit_s": "Gbit/s", "cpu_s_per_gb": "CPU s/GB", "daemon_cpu_s_per_gb": "daemons s/GB", "p50_us": "p50 us",
              "p99_us": "p99 us"}
    print(f"{'median of rounds':44}" + "".join(f"{titles[column]:>14}" for column in columns))
    for name, row in rows.items():
        cells = []
        for column in columns:
            cells.append(f"{statistics.median(row[column]):14.2f}" if column in row else f"{'':14}")
        print(f"{name:44}" + "".join(cells).rstrip())


def ratios(rows, modes):
    """Each mode's WRITE bandwidth beside the floor of the same rounds, and beside TCP without offloads."""
    def median(name):
        return statistics.median(rows[name]["gbit_s"]) if name in rows else None
    for mode in modes:
        for suffix, floor in (("", FLOOR), (", remapped", FLOOR_REMAPPED), (", remapped", FLOOR_IN_PLACE)):
            name = f"{mode}: ib_write_bw 1 MiB{suffix}"
            ours, least, tcp = median(name), median(floor), median("TCP reno, offloads off")
            if ours and least and tcp:
                print(f"{name}: {ours / least:.2f} of \"{floor}\", {ours / tcp:.2f} of TCP without offloads")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each bandwidth measurement")
    parser.add_argument("--mode", action="append", choices=("udp", "af_packet", IN_PROCESS, RUN_IN_POLL))
    parser.add_argument("--latency", action="store_true", help="latency alone, the modes in turns")
    arguments = parser.parse_args()
    arguments.binaries = os.path.abspath(arguments.binaries)
    modes = arguments.mode or ["udp", "af_packet"]
    try:
        with Lab() as lab:
            bench = Bench(lab, arguments)
            print(machine())
            print("two namespaces, veth of MTU 4200, path MTU 4096, 1 worker per gateway, 1 queue pair, TCP congestion "
                  f"control reno; {arguments.rounds} rounds, {arguments.seconds} s each; memory is reached cross-process "
                  "unless the row says remapped")
            try:
                for number in range(arguments.rounds):
                    print(f"round {number + 1} of {arguments.rounds}", flush=True)
                    bench.round(modes, arguments.latency)
            finally:
                print()
                table(bench.rows)
                ratios(bench.rows, modes if not arguments.latency else ())
                print(f"afterwards: {machine()}", flush=True)
            if arguments.json:
                with open(arguments.json, "w", encoding="utf-8") as file:
                    json.dump({"machine": machine(), "mtu": 4200, "workers": 1, "tcp": "reno",
                               "seconds": arguments.seconds, "rows": bench.rows, "failures": bench.failures}, file,
                              indent=1)
                print(f"raw figures: {arguments.json}")
    except (LabError, KeyboardInterrupt) as error:
        print(f"bench e2e: {error or 'interrupted'}", file=sys.stderr)
        return 1
    if bench.failures:
        print(f"bench e2e: {len(bench.failures)} measurements failed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
