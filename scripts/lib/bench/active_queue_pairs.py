#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rate of WRITEs of one program over 64 to 16,384 of its connected queue pairs, between two hosts on one veth, port mode udp,
with and without channels. The program posts round-robin, so that each message finds the state of its queue pair as cold as
their number makes it; the numbers take turns within a round. Fails when 16,384 queue pairs have less than 80 % of the rate
of 64 in the same round. Needs root."""

import argparse
import json
import os
import statistics
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402

LEAST = 0.8
GATED = 16384
PORT = 19100
SETTINGS = "gateways: {{channels: {channels}}}\ndefault_pool: {{limits: {{qps: {qps}}}}}\n"


def measure(lab, arguments, channels, size):
    """Rates by number of queue pairs and round."""
    most = max(arguments.queue_pairs)
    settings = SETTINGS.format(channels="enabled" if channels else "disabled", qps=most + 64)
    hosts = gateway_pair(lab, os.path.abspath(arguments.binaries), settings=settings, name=f"{'channel' if channels else 'native'}{size}")
    for host in hosts:
        host.start_gateway()
    program = [hosts[0].program("queue_pair_load")]
    common = [str(PORT), str(most), str(size)]
    server = hosts[1].start([*program, "serve", *common])
    server.expect("serving", 300)
    client = hosts[0].start([*program, "write", *common, hosts[1].address4, str(arguments.window), str(arguments.seconds),
                             str(arguments.rounds), *map(str, arguments.queue_pairs)])
    limit = 300 + 3 * arguments.seconds * arguments.rounds * len(arguments.queue_pairs)
    if client.wait(limit) != 0 or server.wait(60) != 0:
        raise LabError(f"queue_pair_load:\n{client.output}\n{server.output}")
    for host in hosts:
        host.stop_gateway()
    return json.loads(client.output.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--window", type=int, default=64, help="messages in flight")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 4096], help="bytes of a message")
    parser.add_argument("--queue-pairs", type=int, nargs="+", default=[64, 1024, 16384])
    arguments = parser.parse_args()
    rows = []
    kept = True
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; WRITEs, {arguments.window} in flight, "
          f"{arguments.rounds} rounds of {arguments.seconds} s")
    print(f"{'':8} {'bytes':>6} {'queue pairs':>12} {'M/s':>8} {'of the first':>12}")
    try:
        with Lab() as lab:
            for channels in (False, True):
                for size in arguments.sizes:
                    rates = measure(lab, arguments, channels, size)
                    for number, of_number in zip(arguments.queue_pairs, rates):
                        share = statistics.median(rate / first for rate, first in zip(of_number, rates[0]))
                        missed = number <= GATED and share < LEAST
                        kept &= not missed
                        print(f"{'channel' if channels else 'native':8} {size:6} {number:12} {statistics.median(of_number) / 1e6:8.3f} "
                              f"{share:12.2f}{'  MISSED' if missed else ''}", flush=True)
                        rows.append({"channels": channels, "bytes": size, "queue_pairs": number, "rates": of_number, "share": share})
    except (LabError, KeyboardInterrupt) as error:
        print(f"bench active_queue_pairs: {error or 'interrupted'}", file=sys.stderr)
        return 1
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
