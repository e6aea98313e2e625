#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The images, without a container engine: their root directories as packaging/images/make_root.py makes them, run by runc. A
controller, gateways and their agents come up in them, a pool of a tenant is made, rping in the client's root talks through it to
another host, a second container of a gateway takes over from the first, and a gateway ends as its pod would. Once with an image
for each daemon, once with the one that has them all, which the chart runs. Needs root.

  tests/e2e/images/run.py --binaries build/dev/bin
"""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.fleet import Agent, Controller, eventually  # noqa: E402
from netlab.debian_base import lay_over_debian  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402

import yaml  # noqa: E402

POOL = """\
name: tenants/red
---
name: tenants/red/pools/train
spec: {gateways: {all: true}, slots: 1}
"""
PORT = 18515
CHART = os.path.join(ROOT, "tests/helm/golden/sqlite.yaml")
# What each program's image is.
OF_EACH = {"rocegwd": "gateway", "rocegw-agent": "agent", "rocegw-controller": "controller", "rocegwctl": "controller",
           "rocegw-run": "client"}
OF_ALL = {**{program: "daemons" for program in OF_EACH}, "rocegw-run": "client"}


def make_roots(lab, binaries, images):
    """Roots of the images, and a bin folder whose programs run in them."""
    for folder in ("made", "roots", "bundles", "bin"):
        os.mkdir(lab.path(folder))
    build = os.path.dirname(binaries)
    for image in sorted(set(images.values())):
        root = lab.path("roots", image)
        made = lab.path("made", image)
        run([os.path.join(ROOT, "packaging/images/make_root.py"), image, build, made,
             *(["rping", "ibv_devinfo"] if image == "client" else [])])
        lay_over_debian(made, root)
        # The root is read-only: what is mounted there must be.
        for folder in ("proc", "dev", "sys", "tmp", lab.directory.lstrip("/")):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
    for name in images:
        os.symlink(os.path.join(HERE, "in_root.py"), lab.path("bin", name))
    with open(lab.path("images.json"), "w", encoding="utf-8") as file:
        json.dump(images, file)
    os.environ.update(ROCEGW_TEST_LAB=lab.directory, ROCEGW_TEST_MOUNTS_OF=str(os.getpid()))
    return lab.path("bin")


def end_containers(lab):
    state = lab.path("runc")
    for name in os.listdir(state) if os.path.isdir(state) else ():
        subprocess.run(["runc", "--root", state, "delete", "--force", name], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def socket_of(host):
    found = glob.glob(os.path.join(host.directory, "a", "*", "0", "attach.sock"))
    return found[0] if found else None


def run_in_container_of(lab, daemon, *command):
    """(exit status, output) of a command in a running daemon's container, as that daemon's user."""
    name = next(name for name in os.listdir(lab.path("runc"))
                if json.loads(run(["runc", "--root", lab.path("runc"), "state", name]))["pid"] in descendants(daemon.pid))
    done = subprocess.run(["runc", "--root", lab.path("runc"), "exec", name, *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
    return done.returncode, done.stdout


def descendants(pid):
    found = [pid]
    for one in found:
        for children in glob.glob(f"/proc/{one}/task/*/children"):
            with open(children, encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def container_of_the_chart():
    """The gateway's container as the chart has it."""
    with open(CHART, encoding="utf-8") as file:
        (gateway,) = [one for one in yaml.safe_load_all(file) if one and one["metadata"]["name"] == "rocegw-gateway"
                      and one["kind"] == "DaemonSet"]
    return gateway["spec"]["template"]["spec"]["containers"][0]


def of_this(command, host, seconds):
    """A command of the chart's container, for this gateway and with this time limit."""
    command = list(command)
    for option, value in (("--socket", host.grpc_socket), ("--timeout", f"{seconds}s")):
        command[command.index(option) + 1] = value
    return command


def pre_stop(host, seconds):
    """What the chart has a pod do before its end."""
    return of_this(container_of_the_chart()["lifecycle"]["preStop"]["exec"]["command"], host, seconds)


def is_ready(lab, host, daemon):
    """What the readiness probe of the chart says in this daemon's container."""
    command = of_this(container_of_the_chart()["readinessProbe"]["exec"]["command"], host, 5)
    status, text = run_in_container_of(lab, daemon, *command)
    if (status, text) not in ((0, "ready\n"), (10, "rocegwctl: the gateway of this node is in another container\n")):
        raise LabError(f"readiness: exit status {status}: {text}")
    return status == 0


def roll(lab, left, right):
    """A changed pod takes over from the running one of its node under traffic. Only the pod with the gateway is ready and drains;
    the other idles until its end. A pod that does not fit is refused and changes nothing."""
    server = right.start(["rping", "-s", "-d", "-a", right.address4, "-p", str(PORT)])
    server.expect("rdma_listen", 30)
    client = left.start(["rping", "-c", "-v", "-a", right.address4, "-p", str(PORT)])
    client.expect("ping data", 30)
    for _ in range(3):
        old = left.daemon
        if not is_ready(lab, left, old):
            raise LabError("the pod with the gateway is not ready")
        left.start_gateway()
        ready = [is_ready(lab, left, daemon) for daemon in (old, left.daemon)]
        status, text = run_in_container_of(lab, old, *pre_stop(left, 30))
        if ready != [False, True] or (status, text) != (0, "the gateway of this node is in another container\n"):
            raise LabError(f"after the take-over: ready {ready}, preStop of the old pod: exit status {status}: {text}")
        goes_on(client)
        if old.stop(timeout=20) != 0:
            raise LabError(f"the old pod did not end well:\n{old.output[-1000:]}")
        goes_on(client)
    with open(left.config, encoding="utf-8") as file:
        text = file.read()
    other = os.path.join(left.directory, "other.yaml")
    with open(other, "w", encoding="utf-8") as file:
        file.write(text.replace("workers: 1", "workers: 2"))
    refused = lab.start([os.path.join(left.binaries, "rocegwd"), "--config", other, *left.daemon_options], title="another rocegwd",
                        namespace=left.namespace)
    if refused.wait(30) != 3 or not is_ready(lab, left, left.daemon):
        raise LabError(f"a pod with other workers: exit status {refused.returncode}:\n{refused.output[-1000:]}")
    goes_on(client)
    status, text = run_in_container_of(lab, left.daemon, "rocegwctl", "--socket", left.grpc_socket, "status")
    if status != 0 or "\ntake-overs 3, " not in text or not client.running:
        raise LabError(f"exit status {status}: {text}\n{client.output[-1000:]}")
    client.signal(signal.SIGKILL)
    client.wait(20)
    server.wait(30)
    print("a pod takes over from the running one of its node, three times", flush=True)


def goes_on(client):
    seen = client.output.count("ping data")
    eventually("pings going on", lambda: client.output.count("ping data") > seen + 10)


def end_of_a_pod(lab, left, right):
    """Drain for a time, then the end; with a program that does not end by itself, and without any."""
    server = right.start(["ib_write_bw", "-d", "rocegw0", "-D", "60", "-p", str(PORT)])
    right.wait_listening(PORT, server)
    client = right.start(["ib_write_bw", "-d", "rocegw0", "-D", "60", "-p", str(PORT), right.address4])
    client.expect("remote address", 60)
    status, text = run_in_container_of(lab, right.daemon, *pre_stop(right, 1))
    if status == 0 or "not empty in time" not in text or "2 queue pairs left" not in text:
        raise LabError(f"drain with a program: exit status {status}: {text}")
    if right.start(["ibv_rc_pingpong", "-d", "rocegw0"]).wait(30) == 0:
        raise LabError("a draining gateway lets a program in")
    if not client.running:
        raise LabError(f"the drain ended a program: {client.output[-1000:]}")
    if right.stop_gateway() != 0:
        raise LabError(f"the gateway did not end well:\n{right.log()[-1000:]}")
    client.wait(30)
    status, text = run_in_container_of(lab, left.daemon, *pre_stop(left, 30))
    if (status, text.splitlines()[-1:]) != (0, ["drained"]):
        raise LabError(f"drain without a program: exit status {status}: {text}")
    if left.stop_gateway() != 0:
        raise LabError(f"the gateway did not end well:\n{left.log()[-1000:]}")
    print("gateways drain as the chart has it, and end", flush=True)


def tour(lab, binaries, images):
    in_roots = make_roots(lab, binaries, images)
    left, right = gateway_pair(lab, in_roots)
    # Its programs are this machine's.
    right.launcher = [os.path.join(binaries, "rocegw-run"), "--"]
    controller = Controller(lab, left, in_roots)
    os.chown(controller.directory, 65532, 65532)
    controller.start()
    for host in (left, right):
        host.daemon_options = container_of_the_chart()["args"][2:]
        host.start_gateway()
        Agent(lab, host, in_roots).join(controller.join_file(host.name)).start()
    controller.ctl("apply", "-f", "-", "--wait", stdin=POOL)
    for host in (left, right):
        host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: socket_of(h))
    print("controller, gateway and agents run from their images' roots", flush=True)

    text = controller.ctl("connectivity", "test", "--all", "--pool", "red/train")
    if "2 ok, 0 failed" not in text:
        raise LabError(f"connectivity:\n{text}")
    print("agents' probes in their root reach each other", flush=True)

    common = ["-a", right.address4, "-p", str(PORT), "-C", "20", "-S", "3000", "-V"]
    for way in ([], ["--drop-in"]):
        left.launcher = [os.path.join(in_roots, "rocegw-run"), *way, "--"]
        server = right.start(["rping", "-s", "-d", *common])
        server.expect("rdma_listen", 30)
        client = left.start(["rping", "-c", "-v", *common])
        client.wait(60)
        text = client.output
        if client.returncode != 0 or text.count("ping data: ") != 20 or server.wait(30) != 0:
            raise LabError(f"rping:\n{text[-1000:]}\n{server.output[-1000:]}")
        print(f"rping in the client's root {' '.join(way) or 'preloaded'}: 20 pings compared", flush=True)
    roll(lab, left, right)
    end_of_a_pod(lab, left, right)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build/dev/bin"), help="bin folder of the build to test")
    arguments = parser.parse_args()
    try:
        for images in (OF_EACH, OF_ALL):
            print("images: " + ", ".join(sorted(set(images.values()))), flush=True)
            with Lab() as lab:
                lab.on_close(lambda lab=lab: end_containers(lab))
                tour(lab, os.path.abspath(arguments.binaries), images)
    except (LabError, KeyboardInterrupt) as error:
        print(f"images: {error or 'interrupted'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
