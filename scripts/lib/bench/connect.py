#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Connections by librdmacm between two hosts with a gateway each: how many per second come about and are taken down, and what
processor time the gateways spend on each. cmtime has one thread that does step after step for all of them; connect_storm has 8
on each side, every one of the client's connecting to every listener of the server's (BURST, appendix A.2). Nothing may be lost:
a connection that does not come about fails the run, and the gateways have nothing left afterwards. A second table has the
milliseconds that cmtime takes for one queue pair of 500, 1,000 and 2,000. `--against DIR` measures another build's gateways and
library in turns with it. Needs root."""

import argparse
import json
import os
import re
import signal
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

AIM = 5000
QUEUE_PAIRS = (500, 1000, 2000)  # BURST, section 5.4
STEP = re.compile(r"^(create id|resolve addr|resolve route|create qp|connect|disconnect|destroy) *: +([\d.]+)", re.MULTILINE)
STORM = re.compile(r"connections (\d+), per second (\d+), taken down per second (\d+)")


def cpu_seconds(host):
    with open(f"/proc/{host.daemon.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cmtime(hosts, connections):
    """(connections, up per second, down per second)"""
    server = hosts[1].start(["cmtime", "-c", str(connections), "-b", hosts[1].address4])
    while not hosts[1].counters()["rocegw_cm_ids"]:  # it says nothing when it listens
        if not server.running:
            raise SystemExit(f"cmtime failed:\n{server.output}")
    client = hosts[0].start(["cmtime", "-c", str(connections), "-s", hosts[1].address4, "-t", "20000"])
    if client.wait(300) != 0:
        raise SystemExit(f"cmtime failed:\n{client.output}")
    server.stop()
    ms = {name: float(value) for name, value in STEP.findall(client.output)}
    up = sum(ms[step] for step in ("create id", "resolve addr", "resolve route", "create qp", "connect"))
    return connections, 1000 * connections / up, 1000 * connections / (ms["disconnect"] + ms["destroy"])


def storm(hosts, program, instances):
    words = [program, hosts[1].address4, "8", str(instances)]
    server = hosts[1].start([words[0], "server", *words[1:]])
    server.expect("listening", 60)
    client = hosts[0].start([words[0], "client", *words[1:]])
    if client.wait(300) != 0:
        raise SystemExit(f"connect_storm failed:\n{client.output}\nserver:\n{server.output}")
    server.stop()
    return tuple(int(number) for number in STORM.search(client.output).groups())


def round_of(programs, runs):
    """Results of all runs with gateways of their own."""
    results = {}
    with Lab() as lab:
        hosts = gateway_pair(lab, programs)
        for host in hosts:
            host.start_gateway()
        for name, run in runs.items():
            before = [cpu_seconds(host) for host in hosts]
            result = run(hosts)
            cpu = [1e6 * (cpu_seconds(host) - spent) / result[0] for host, spent in zip(hosts, before)]
            results[name] = (*result, *cpu)
            for host in hosts:
                host.expect_idle()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a closed laboratory ignores it
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=20000, help="of cmtime")
    parser.add_argument("--instances", type=int, default=125, help="of connect_storm: listeners of each server thread")
    parser.add_argument("--against", metavar="DIR", help="programs of another build")
    parser.add_argument("--only", action="append", help="names of runs")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.binaries)
    runs = {"cmtime": lambda hosts: cmtime(hosts, arguments.connections),
            "connect_storm": lambda hosts: storm(hosts, os.path.join(binaries, "connect_storm"), arguments.instances)}
    runs |= {f"cmtime {count}": lambda hosts, count=count: cmtime(hosts, count) for count in QUEUE_PAIRS}
    runs = {name: run for name, run in runs.items() if arguments.only is None or name in arguments.only}
    builds = {"": binaries} | ({"against": os.path.abspath(arguments.against)} if arguments.against else {})
    results = {(build, name): [] for build in builds for name in runs}
    for _ in range(arguments.rounds):
        for build, programs in builds.items():
            for name, result in round_of(programs, runs).items():
                results[build, name].append(result)
    print(f"{'':24} {'connections':>11} {'up/s':>8} {'spread':>16} {'ms each':>8} {'down/s':>8} {'CPU us, client side':>20} "
          f"{'server side':>12}")
    for (build, name), rows in results.items():
        median = [statistics.median(column) for column in zip(*rows)]
        rates = [row[1] for row in rows]
        print(f"{f'{build} {name}':24} {median[0]:11.0f} {median[1]:8.0f} {f'{min(rates):.0f} to {max(rates):.0f}':>16} "
              f"{1000 / median[1]:8.3f} {median[2]:8.0f} {median[3]:20.0f} {median[4]:12.0f}")
    for name in runs if arguments.against else ():
        ratios = [new[1] / old[1] for new, old in zip(results["", name], results["against", name])]
        print(f"{name}: {statistics.median(ratios):.2f} times the other build's ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"aim: {AIM} connections per second")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({f"{build} {name}".strip(): rows for (build, name), rows in results.items()}, file)


if __name__ == "__main__":
    main()
