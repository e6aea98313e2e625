#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an idle host costs: a controller, and two hosts that have joined with an agent and a gateway each, a pool on both and
nothing that uses it. CPU time of each process, and how often its threads woke up, over --seconds. Needs root.

Reported: the controller with one gateway and its agent (the aim is below 2 % of a core together), and the second pair beside
them, which shows what a further host adds. Ends with an error when the aim is missed."""

import argparse
import json
import os
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fleet import Agent, Controller  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402

POOL = """\
name: tenants/idle
---
name: tenants/idle/pools/p
spec: {gateways: {all: true}, slots: 4, quota: {peak: {qps: 100}}}
"""
AIM_PERCENT = 2.0


def cpu_seconds(pid):
    """Of all threads, in nanoseconds: /proc/PID/stat counts ticks, which whoever runs shorter than one escapes."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def wake_ups(pid):
    """How often each thread gave up the processor by itself, by the thread's number and name."""
    counts = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
            fields = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        counts[task, fields["Name"].strip()] = int(fields["voluntary_ctxt_switches"])
    return counts


def sample(processes):
    return {name: (cpu_seconds(pid), wake_ups(pid)) for name, pid in processes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=5, help="seconds before the measurement begins")
    parser.add_argument("--threads", action="store_true", help="show what each thread did")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        controller = Controller(lab, hosts[0], os.path.abspath(arguments.binaries)).start()
        agents = []
        for host in hosts:
            host.start_gateway()
            agents.append(Agent(lab, host, os.path.abspath(arguments.binaries)).join(
                controller.join_file(host.name)).start())
        controller.ctl("apply", "-f", "-", "--wait", stdin=POOL)
        controller.ctl("status", "--wait", "--timeout", "30")
        processes = {"controller": controller.daemon.pid}
        for host, agent in zip(hosts, agents):
            processes[f"gateway {host.name}"] = host.daemon.pid
            processes[f"agent {host.name}"] = agent.daemon.pid
        time.sleep(arguments.settle)
        before = sample(processes)
        began = time.monotonic()
        time.sleep(arguments.seconds)
        after = sample(processes)
        seconds = time.monotonic() - began
    percent = {}
    print(f"{'over %.0f s' % seconds:16} {'% of a core':>12} {'wake-ups/s':>11}")
    for name in processes:
        percent[name] = 100 * (after[name][0] - before[name][0]) / seconds
        woken = {key: (count - before[name][1].get(key, 0)) / seconds for key, count in after[name][1].items()}
        print(f"{name:16} {percent[name]:12.3f} {sum(woken.values()):11.1f}")
        if arguments.threads:
            for (task, thread), rate in sorted(woken.items(), key=lambda item: -item[1]):
                if rate > 0.01:
                    print(f"  {thread:22} {task:>8} {rate:11.2f}")
    one = percent["controller"] + percent[f"gateway {hosts[0].name}"] + percent[f"agent {hosts[0].name}"]
    met = one < AIM_PERCENT
    print(f"{'met' if met else 'missed':7} controller, one gateway and its agent {one:.2f} % of a core (aim: below {AIM_PERCENT:.0f})")
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump({"seconds": seconds, "percent": percent, "one_host": one}, file)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
