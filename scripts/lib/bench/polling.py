#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How workers and polling programs wait: the modes that RDMAbox (section IV-B) compares, in alternating rounds. Each mode has a
pair of gateways with waiting.mode of that name, and programs with ROCEGW_POLL of that name. Measured are ib_write_lat (both ends
spin on their memory), ib_send_lat (both ends poll) and storage_io with 32 requests of 4 KiB. CPU is of both gateways and both
programs. Needs root and perftest."""

import argparse
import json
import os
import re
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402

LATENCY = re.compile(r"^\s*8\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+(?:[\d.]+|-?nan)\s+([\d.]+)", re.MULTILINE)
REQUESTS = re.compile(r"^requests (\d+) per_second (\d+) mean_us [\d.]+ p50_us (\d+) p99_us (\d+) abandoned 0", re.MULTILINE)
# Name: configuration of the gateways, environment of the programs.
MODES = {
    "busy": ("{mode: busy}", "ROCEGW_POLL=busy"),
    "event": ("{mode: event}", "ROCEGW_POLL=event"),
    "event batch": ("{mode: event_batch}", "ROCEGW_POLL=event"),
    "hybrid": ("{mode: hybrid}", "ROCEGW_POLL=hybrid"),
    "adaptive": ("{mode: adaptive}", "ROCEGW_POLL=adaptive"),
    "adaptive, slice of 0.1 ms": ("{mode: adaptive, slice_us: 100}", "ROCEGW_POLL=adaptive"),
    "adaptive, awake": ("{mode: adaptive, keep_processors_awake: true}", "ROCEGW_POLL=adaptive"),
    "adaptive, real-time": ("{mode: adaptive, realtime_priority: 1}", "ROCEGW_POLL=adaptive"),
    "adaptive, real-time, awake": ("{mode: adaptive, realtime_priority: 1, keep_processors_awake: true}",
                                   "ROCEGW_POLL=adaptive"),
}
STORAGE = "storage_io"
PROGRAMS = ("ib_write_lat", "ib_send_lat", STORAGE)
TICKS = os.sysconf("SC_CLK_TCK")
CLIENT_SECONDS = 60


def daemons_cpu(pair):
    """User and system seconds of both gateways."""
    ticks = 0
    for host in pair:
        with open(f"/proc/{host.daemon.pid}/stat", encoding="ascii") as file:
            ticks += sum(int(value) for value in file.read().rpartition(")")[2].split()[11:13])
    return ticks / TICKS


def children_cpu():
    times = os.times()
    return times.children_user + times.children_system


def run_pair(pair, server_words, ready, client_words, ends_itself):
    """Output of the client, whose server says when it is ready."""
    server = pair[1].start(server_words)
    try:
        server.expect(ready, 30)
        client = pair[0].start(client_words)
        try:
            if client.wait(CLIENT_SECONDS) != 0 or (ends_itself and server.wait(30) != 0):
                raise LabError(f"{' '.join(client_words)}:\n{client.output}\n{server.output}")
            return client.output
        finally:
            if client.running:
                client.stop()
    finally:
        if server.running:
            server.stop()


def run_program(pair, program, environment, arguments):
    """(operations, seconds or None, p50, p99)"""
    address, port = pair[1].address4, str(pair[1].fresh_port())
    if program == STORAGE:
        words = ["env", environment, os.path.join(arguments.binaries, STORAGE)]
        options = ["--port", port, "--depth", "32"]
        output = run_pair(pair, [*words, "target", address, *options], "^listening",
                          [*words, "initiator", address, *options, "--writes", "0",
                           "--milliseconds", str(arguments.milliseconds)], False)
        found = REQUESTS.search(output)
        if not found:
            raise LabError(output)
        return int(found.group(1)), int(found.group(2)), float(found.group(3)), float(found.group(4))
    words = ["env", environment, program, "-R", "-F", "-s", "8", "-n", str(arguments.messages), "-p", port]
    output = run_pair(pair, words, "Waiting for client", [*words, address], True)
    found = LATENCY.search(output)
    if not found:
        raise LabError(output)
    return 2 * arguments.messages, None, float(found.group(1)), float(found.group(2))


def measure(pair, program, environment, arguments):
    """perftest connects twice, and its server says that it waits before it listens: a client that is early is rejected."""
    for attempt in range(10):
        before = daemons_cpu(pair) + children_cpu()
        try:
            operations, rate, p50, p99 = run_program(pair, program, environment, arguments)
            cpu = daemons_cpu(pair) + children_cpu() - before
            return {"per_second": rate, "p50_us": p50, "p99_us": p99, "cpu_us": cpu * 1e6 / operations}
        except LabError:
            if attempt == 9:
                raise


def table(results):
    print(f"{'':<14}{'mode':<32}{'per s':>10}{'p50 us':>9}{'p99 us':>9}{'CPU us per operation':>22}")
    for (program, mode), rows in results.items():
        cells = {key: statistics.median(row[key] for row in rows) for key in rows[0] if rows[0][key] is not None}
        rate = f"{cells['per_second']:.0f}" if "per_second" in cells else ""
        print(f"{program:<14}{mode:<32}{rate:>10}{cells['p50_us']:>9.0f}{cells['p99_us']:>9.0f}{cells['cpu_us']:>22.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000, help="of perftest's programs")
    parser.add_argument("--milliseconds", type=int, default=1000, help="of storage_io")
    parser.add_argument("--mode", action="append", choices=MODES, help="default: all")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.binaries = os.path.abspath(arguments.binaries)
    modes = arguments.mode or list(MODES)
    results = {(program, mode): [] for program in PROGRAMS for mode in modes}
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {arguments.rounds} rounds", flush=True)
    with Lab() as lab:
        for number in range(arguments.rounds):
            for mode in modes:
                # Gateways that poll all the time would slow the others down, so one pair runs at a time.
                settings, environment = MODES[mode]
                pair = gateway_pair(lab, arguments.binaries, settings=f"waiting: {settings}\n",
                                    name=f"r{number}m{modes.index(mode)}")
                for host in pair:
                    host.start_gateway()
                for program in PROGRAMS:
                    results[program, mode].append(measure(pair, program, environment, arguments))
                for host in pair:
                    host.stop_gateway()
    table(results)
    print(f"load afterwards {os.getloadavg()[0]:.1f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump([{"program": program, "mode": mode, "rounds": rows} for (program, mode), rows in results.items()], file)


if __name__ == "__main__":
    main()
