#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rate of small messages between two hosts on one veth, real processes, port mode udp: ib_write_bw and ib_send_bw with
messages of 64 bytes. --before names the bin folder of another build, which is measured in turns with this one, so that a
slow minute of the machine hits both. --pin gives each host one core: the first host's gateway and program run on CPU 0,
the second one's on CPU 1.

CPU is that of a gateway, its empty polls included, divided by the messages. Datagrams are what a gateway sends to the
other, divided by the messages. Needs root."""

import argparse
import json
import os
import re
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
RATE = re.compile(r"^\s*\d+\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)", re.MULTILINE)
PROGRAMS = ("ib_write_bw", "ib_send_bw")


def cpu_of(pid):
    """User and system seconds of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(value) for value in fields[11:13]) / TICKS


def state_of(pair):
    return [(cpu_of(host.daemon.pid), host.counters()) for host in pair]


class Bench:
    def __init__(self, lab, arguments):
        self.lab = lab
        self.arguments = arguments
        self.port = 19000
        self.pairs = {}
        self.rows = {}

    def start(self, pair, pin):
        for number, host in enumerate(pair):
            host.start_gateway()
            if pin:
                run(["taskset", "-acp", str(number), str(host.daemon.pid)])

    def measure(self, pair, program, queue_pairs):
        """Messages per second, and of each gateway CPU in us and datagrams, both of a message."""
        self.port += 1
        words = ["env", f"ROCEGW_REMAP={self.arguments.remap}", program, "-R", "-F", "-s", str(self.arguments.size), "-D",
                 str(self.arguments.seconds), "-f", "0", "--report_gbits", "-q", str(queue_pairs), "-p", str(self.port)]
        commands = [(["taskset", "-c", str(number)] if self.arguments.pin else []) + words for number in range(2)]
        before = state_of(pair)
        server = pair[1].start(commands[1])
        server.expect("Waiting for client", 30)
        client = pair[0].start([*commands[0], pair[1].address4])
        if client.wait(self.arguments.seconds + 60) != 0 or server.wait(30) != 0:
            raise LabError(f"{program}:\n{client.output}\n{server.output}")
        found = RATE.search(client.output)
        if not found:
            raise LabError(f"{program} printed no result:\n{client.output}")
        values = {"rate": float(found.group(1))}
        messages = 0
        for (cpu, old), (cpu_now, now), side in zip(before, state_of(pair), ("sender", "receiver")):
            name = "rocegw_wqe_send_requests_total"
            messages = messages or now[name] - old[name]
            values[f"{side} us"] = (cpu_now - cpu) / messages * 1e6
            name = "rocegw_tx_packets_total"
            values[f"{side} datagrams"] = (now[name] - old[name]) / messages
        return values

    def round(self, number):
        for build, binaries in self.arguments.builds.items():
            pair = gateway_pair(self.lab, binaries, "udp", name=f"{build}{number}")
            self.start(pair, self.arguments.pin)
            for program in PROGRAMS:
                for queue_pairs in self.arguments.queue_pairs:
                    values = self.measure(pair, program, queue_pairs)
                    row = self.rows.setdefault((program, queue_pairs, build), {})
                    for name, value in values.items():
                        row.setdefault(name, []).append(value)
            for host in pair:
                host.stop_gateway()


def table(rows, builds):
    columns = ("sender us", "receiver us", "sender datagrams", "receiver datagrams")
    print(f"{'median of rounds':36}{'M/s':>8}{'least':>8}{'most':>8}" + "".join(f"{name:>20}" for name in columns))
    for (program, queue_pairs, build), row in rows.items():
        rates = row["rate"]
        print(f"{f'{program}, {queue_pairs} QPs, {build}':36}{statistics.median(rates):8.3f}{min(rates):8.3f}{max(rates):8.3f}"
              + "".join(f"{statistics.median(row[name]):20.3f}" for name in columns))
    if len(builds) < 2:
        return
    for program, queue_pairs, build in rows:
        if build == "before":
            old, new = (statistics.median(rows[program, queue_pairs, name]["rate"]) for name in ("before", "now"))
            print(f"{program}, {queue_pairs} QPs: {new / old:.2f} times the rate before (gate 2, aim 3)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--before", metavar="DIR", help="bin folder of another build")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--size", type=int, default=64, help="bytes of a message")
    parser.add_argument("--queue-pairs", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--remap", choices=("never", "always"), default="never")
    parser.add_argument("--pin", action="store_true", help="one core for each host")
    arguments = parser.parse_args()
    arguments.builds = {"before": os.path.abspath(arguments.before)} if arguments.before else {}
    arguments.builds["now"] = os.path.abspath(arguments.binaries)
    try:
        with Lab() as lab:
            bench = Bench(lab, arguments)
            print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; veth of MTU 4200, messages of {arguments.size} "
                  f"bytes, {arguments.rounds} rounds, {arguments.seconds} s each", flush=True)
            for number in range(arguments.rounds):
                bench.round(number)
            table(bench.rows, arguments.builds)
            print(f"load afterwards {os.getloadavg()[0]:.1f}")
    except (LabError, KeyboardInterrupt) as error:
        print(f"bench messages: {error or 'interrupted'}", file=sys.stderr)
        return 1
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump([{"program": program, "queue_pairs": queue_pairs, "build": build, **row}
                       for (program, queue_pairs, build), row in bench.rows.items()], file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
