#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The part of scripts/demo that runs once everything is built. Usage: demo BIN_FOLDER

Prints what it runs, so that a reader can do the same by hand."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError  # noqa: E402
from netlab.lab import Lab  # noqa: E402

PORT = 18600
POOL = """\
name: tenants/demo
---
name: tenants/demo/pools/fast
spec:
  gateways: {all: true}
  slots: 1
  quota: {peak: {qps: 16, registered_bytes: 1GiB}}
"""
# Rows of perftest's table start with the message size; the line above names the columns.
TABLE = re.compile(r"^ ?#bytes.*$|^ ?\d+ +\d+ +[\d.]+.*$", re.MULTILINE)

BOLD, DIM, OFF = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


def say(text):
    print(f"\n{BOLD}{text}{OFF}", flush=True)


def shown(host, command):
    print(f"{DIM}{host.name}${OFF} rocegw-run -- {' '.join(command)}", flush=True)
    return command


def socket_of(host):
    found = glob.glob(os.path.join(host.directory, "a", "*", "0", "attach.sock"))
    return found[0] if found else None


def control(controller, *words, stdin=None):
    """Runs rocegwctl as an operator does and shows what it prints."""
    print(f"{DIM}left${OFF} rocegwctl {' '.join(words)}", flush=True)
    text = controller.ctl(*words, stdin=stdin)
    # Without the line that shows progress on a terminal.
    print("".join(f"  {line}\n" for line in text.splitlines() if line and "\033[K" not in line), end="", flush=True)


def perftest(server, client, port, words):
    """Runs a perftest program between the hosts and prints the client's table."""
    common = words + ["-p", str(port), "-F"]
    waiting = server.start(shown(server, common))
    waiting.expect("Waiting for client", 30)
    # rdma_cm's listener comes up a moment after that line; a client that is earlier is refused and tries again.
    for _ in range(20):
        job = client.start(common + [server.address4])
        if job.wait(120) == 0 or not waiting.running:
            break
    shown(client, common + [server.address4])
    if job.returncode != 0 or waiting.wait(30) != 0:
        raise LabError(f"{words[0]} failed:\n{job.output}\n{waiting.output}")
    print("\n".join(line.rstrip() for line in TABLE.findall(job.output)), flush=True)


def rping(server, client, port):
    common = ["-p", str(port), "-a", server.address4, "-C", "5", "-V", "-v"]
    waiting = server.start(shown(server, ["rping", "-s", "-d", *common]))
    waiting.expect("rdma_listen", 30)
    print("\n".join(f"  {line[:72]}" for line in
                    client.run(shown(client, ["rping", "-c", *common])).splitlines() if line.startswith("ping")))
    if waiting.wait(30) != 0:
        raise LabError(f"rping failed:\n{waiting.output}")


def tour(binaries):
    with Lab() as lab:
        say("Two hosts: network namespaces, joined by a veth pair of MTU 4200. Neither has RDMA hardware or drivers.")
        left, right = gateway_pair(lab, binaries)
        for host in (left, right):
            print(f"  {host.name:5}  namespace {host.namespace}, interface {host.interface}, {host.address4}, "
                  f"{host.address6}")
        say("A controller on one of them. It needs no configuration but where others reach it, and makes everything else itself.")
        controller = Controller(lab, left, binaries)
        print(f"{DIM}left${OFF} rocegw-controller --config {controller.config} &", flush=True)
        controller.start()

        say("On each host a gateway, and an agent that joins the fleet and keeps the gateway as the controller wants it.")
        for host in (left, right):
            agent = Agent(lab, host, binaries)
            print(f"{DIM}{host.name}${OFF} rocegwd --config {host.config} &\n"
                  f"{DIM}{host.name}${OFF} rocegw-agent --config {agent.config} --join {host.name}.yaml  "
                  f"# from: rocegw-controller join-token --gateway {host.name}\n"
                  f"{DIM}{host.name}${OFF} rocegw-agent --config {agent.config} &", flush=True)
            host.start_gateway()
            agent.join(controller.join_file(host.name)).start()
        control(controller, "status", "--wait")

        say("A tenant, and a pool on every gateway. Programs attach to a socket of the pool.")
        print("".join(f"  {line}\n" for line in POOL.splitlines()), end="")
        control(controller, "apply", "-f", "-", "--wait", stdin=POOL)
        for host in (left, right):
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: socket_of(h))
        control(controller, "get", "pools")
        control(controller, "get", "gateways")

        say("The device that programs see.")
        text = left.run(shown(left, ["ibv_devinfo", "-v"]))
        for line in text.splitlines():
            if re.search(r"hca_id|transport|state:|active_mtu|link_layer|max_qp:|GID\[", line):
                print(f"  {line.strip()}")

        say("Unmodified programs from Debian's packages: WRITE and SEND bandwidth, READ latency, through rdma_cm.")
        perftest(left, right, PORT, ["ib_write_bw", "-R", "-s", "65536", "-n", "5000", "--report_gbits"])
        perftest(left, right, PORT + 1, ["ib_send_bw", "-R", "-s", "65536", "-n", "5000", "--report_gbits"])
        perftest(left, right, PORT + 2, ["ib_read_lat", "-R", "-s", "64", "-n", "2000"])
        say("rping, which compares what comes back.")
        rping(left, right, PORT + 3)

        say("What the gateways counted.")
        counters = [host.counters() for host in (left, right)]
        names = [name for name in counters[0] if name.endswith("_total") and any(c.get(name) for c in counters)]
        print(f"  {'counter':44} {'left':>16} {'right':>16}")
        for name in names:
            print(f"  {name:44} {counters[0].get(name, 0):16,.0f} {counters[1].get(name, 0):16,.0f}")
        control(controller, "status", "right")

        say("A smaller quota holds at once: the next program gets no second queue pair.")
        control(controller, "update", "pool", "demo/fast", "quota.peak.qps=1", "--wait")
        words = ["ib_write_bw", "-R", "-q", "2", "-F", "-p", str(PORT + 4)]
        waiting = right.start(shown(right, words))
        waiting.expect("Waiting for client", 30)
        refused = left.start(shown(left, [*words, right.address4]))
        refused.wait(60)
        print("".join(f"  {line}\n" for line in refused.output.splitlines() if "QP" in line or "qp" in line), end="")
        waiting.signal(9)

        say("Drain: nothing new begins there; done when it is empty.")
        control(controller, "drain", "right", "--wait")
        control(controller, "undrain", "right")

        say("Who asked for what.")
        control(controller, "audit", "list", "-o", "wide")
    say("Done; namespaces and daemons are gone again. Where to go next:")
    print("  README.md                            what rocegw is and how it is built\n"
          "  docs/operate/                        fleet, operations: controller, agents, rocegwctl\n"
          "  docs/develop/life_of_a_work_request.md\n"
          "                                       the path of one ibv_post_send through the tree\n"
          "  build/release/bin/rocegwd --print-default-config\n"
          "                                       every key of the configuration, explained\n"
          "  scripts/test                         all tests, among them Linux's soft-RoCE as a peer\n"
          "  scripts/bench                        benchmarks beside their floors and kernel TCP")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        tour(os.path.abspath(sys.argv[1]))
    except KeyboardInterrupt:
        print("\ndemo: interrupted; everything is cleaned up", file=sys.stderr)
        return 130
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
