# SPDX-License-Identifier: Apache-2.0
"""A network namespace with a gateway daemon, where unmodified programs run under rocegw-run."""

import contextlib
import ctypes
import os
import re
import socket
import threading

from .daemon import start_daemon
from .host import Host
from .job import LabError, LocalJob, run

_METRICS_PORT = 7474
_CLONE_NEWNET = 0x40000000
# Gauges that are zero when no program is attached.
_OF_PROGRAMS = ("rocegw_sessions", "rocegw_queue_pairs", "rocegw_completion_queues", "rocegw_memory_regions",
                "rocegw_protection_domains", "rocegw_cm_ids", "rocegw_registered_bytes")
_SAMPLE = re.compile(r"^(rocegw_\w+?)(\{[^}]*\})? ([-+0-9.eE]+)$", re.MULTILINE)


class GatewayHost(Host):
    """binaries: the bin folder of a build. mode: port mode. settings: more lines for the configuration file. metrics: address
    that serves them."""

    is_gateway = True

    def __init__(self, lab, name, namespace, interface, addresses, binaries, mode="udp", workers=1, settings="",
                 metrics="127.0.0.1"):
        super().__init__(name, addresses, device="rocegw0")
        self.lab = lab
        self.namespace = namespace
        self.interface = interface
        self.binaries = binaries
        self.directory = lab.path(name)
        os.mkdir(self.directory, 0o755)
        self.attach_socket = os.path.join(self.directory, "attach.sock")
        self.grpc_socket = os.path.join(self.directory, "grpc.sock")
        self.config = os.path.join(self.directory, "rocegwd.yaml")
        self.daemon = None
        self.daemon_program = ["rocegwd"]  # behind words VARIABLE=VALUE for its environment
        self.daemon_options = []  # words of the daemon's command besides its configuration
        self.launcher = [os.path.join(binaries, "rocegw-run"), "--"]  # words before those of a verbs program
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"name: {name}\n"
                       f"runtime_dir: {self.directory}\n"
                       f"workers: {workers}\n"
                       f"ports:\n"
                       f"  - {{name: port0, mode: {mode}, interface: {interface}}}\n"
                       f"attach_socket: {{path: {self.attach_socket}, mode: 0666}}\n"
                       f"grpc_socket: {{path: {self.grpc_socket}}}\n"
                       f"metrics: {{address: \"{metrics}:{_METRICS_PORT}\"}}\n"
                       # Tests and demo run without reserving memory of the machine.
                       f"dpdk: {{huge_pages: off}}\n" + settings)

    # The daemon -----------------------------------------------------------------------------------------------------

    def start_gateway(self, timeout=60):
        """Starts the daemon and returns when it says that it is ready (sd_notify)."""
        words = [*self._daemon_words(), *self.daemon_options]
        self.daemon = start_daemon(self.lab, words, self.directory, f"rocegwd of {self.name}", self.namespace, timeout)
        return self

    def take_over(self, timeout=60):
        """A new daemon takes the place of the running one, which ends."""
        old = self.daemon
        self.daemon = start_daemon(self.lab, self._take_over_words(), self.directory, f"rocegwd of {self.name}", self.namespace, timeout)
        status = old.wait(20)
        if status != 0:
            raise LabError(f"{self.name}: the old daemon ended with {status}:\n{old.output}")

    def begin_take_over(self):
        """A new daemon that asks to take the place of the running one; the caller names the one that is left as self.daemon."""
        return self.lab.start(self._take_over_words(), title=f"rocegwd of {self.name}", namespace=self.namespace)

    def _take_over_words(self):
        return [*self._daemon_words(), "--take-over"]

    def _daemon_words(self):
        *environment, program = self.daemon_program
        return ["env", *environment, os.path.join(self.binaries, program), "--config", self.config]

    def stop_gateway(self):
        """Ends the daemon as systemd would; returns its exit status."""
        return self.daemon.stop(timeout=20)

    @contextlib.contextmanager
    def changed_config(self, old, new):
        """The daemon runs with `old` replaced by `new` in its configuration meanwhile; as it is where there is no `old`."""
        with open(self.config, encoding="utf-8") as file:
            original = file.read()
        if old not in original:
            yield
            return
        try:
            self._restart_with(original.replace(old, new))
            yield
        finally:
            self._restart_with(original)

    def _restart_with(self, text):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        self.stop_gateway()
        self.start_gateway()

    def revive(self):
        if self.daemon is None or self.daemon.running:
            return ""
        story = f"{self.name}: the daemon ended with {self.daemon.returncode}; last of its log:\n{self.log()[-3000:]}"
        self.start_gateway()
        return story

    def log(self):
        return self.daemon.output if self.daemon else ""

    def control_words(self, *words):
        return [os.path.join(self.binaries, "rocegwctl"), "--socket", self.grpc_socket, *words]

    def control(self, *words):
        """Output of rocegwctl."""
        return run(self.control_words(*words))

    # Host -----------------------------------------------------------------------------------------------------------

    def start(self, command, user=None):
        if isinstance(command, str):
            command = ["sh", "-c", command]
        return LocalJob([*self.launcher, *command], title=f"{self.name}: {' '.join(command)}", namespace=self.namespace,
                        user=user, environment={"ROCEGW_SOCKET": self.attach_socket})

    def bring_gateways_along(self, run_in_poll):
        """From now on each verbs program has its gateway inside, which needs the daemon's address; run_in_poll: the gateway's work is
        done on the threads that poll."""
        options = ["--run-in-poll"] if run_in_poll else []
        self.launcher = [self.program("rocegw-run"), "--in-process", "--address", self.address4, *options, "--"]

    def start_plain(self, command):
        if isinstance(command, str):
            command = ["sh", "-c", command]
        return LocalJob(command, title=f"{self.name}: {' '.join(command)}", namespace=self.namespace)

    def program(self, name):
        """Path of a program of this project."""
        return os.path.join(self.binaries, name)

    def metrics(self):
        """Every sample of /metrics: (name, labels as text) to number."""
        text = http_get(self.namespace, _METRICS_PORT, "/metrics")
        return {(name, labels): float(value) for name, labels, value in _SAMPLE.findall(text)}

    def counters(self):
        """Sums over all labels."""
        totals = {}
        for (name, _), value in self.metrics().items():
            totals[name] = totals.get(name, 0) + value
        return totals

    def memory_mib(self):
        """Of the daemon: VmRSS, and RssShmem of it."""
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as file:
            return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in file if line.startswith(("VmRSS", "RssShmem"))}

    def remapped_regions(self):
        """Mappings of moved memory in the daemon."""
        with open(f"/proc/{self.daemon.pid}/maps", encoding="utf-8") as file:
            return sum("memfd:rocegw-region" in line for line in file)

    def huge_page_bytes(self):
        """That the daemon holds."""
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("HugetlbPages"))

    def moved(self, before, after):
        return (after["rocegw_tx_packets_total"] - before["rocegw_tx_packets_total"],
                after["rocegw_rx_packets_total"] - before["rocegw_rx_packets_total"])

    def expect_idle(self, attempts=200):
        """Programs that have ended take all they had with them, a moment later."""
        for _ in range(attempts):
            counters = self.counters()
            left = {name: counters[name] for name in _OF_PROGRAMS if counters[name]}
            if not left:
                return
        raise LabError(f"{self.name} still has {left} after all programs ended")

    def set_mtu(self, mtu):
        run(["ip", "link", "set", self.interface, "mtu", str(mtu)], namespace=self.namespace)


def gateway_pair(lab, binaries, mode="udp", workers=1, mtu=4200, settings="", name=""):
    """Two hosts with a gateway each, joined by a veth; the gateways are not started yet. name tells pairs apart."""
    sides = [name + side for side in ("left", "right")]
    namespaces = [lab.namespace(side) for side in sides]
    lab.veth(namespaces[0], "link0", namespaces[1], "link0", mtu)
    hosts = []
    for number, (side, namespace) in enumerate(zip(sides, namespaces), start=1):
        addresses = (f"10.77.0.{number}", f"fd77::{number}")
        lab.address(namespace, "link0", f"{addresses[0]}/24", f"{addresses[1]}/64")
        hosts.append(GatewayHost(lab, side, namespace, "link0", addresses, binaries, mode, workers, settings))
    return hosts


def _unchunk(body):
    text = []
    while body:
        size, _, body = body.partition("\r\n")
        length = int(size, 16)
        text.append(body[:length])
        body = body[length + 2:]
        if length == 0:
            break
    return "".join(text)


def enter_namespace(namespace):
    """Moves the calling thread into the namespace for the rest of its life. OSError when the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}", encoding="ascii") as handle:
        if libc.setns(handle.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def inside_of(namespace, function):
    """What the function returns, called inside of a namespace. A thread enters it and ends; sockets and descriptors stay what
    they are."""
    result = []

    def work():
        try:
            enter_namespace(namespace)
            result.append(function())
        except OSError as error:
            result.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(result[0], OSError):
        raise LabError(f"in {namespace}: {result[0]}")
    return result[0]


def connect_in(namespace, address, port, timeout=10):
    """A TCP connection made inside a namespace."""
    try:
        return inside_of(namespace, lambda: socket.create_connection((address, port), timeout))
    except LabError as error:
        raise LabError(f"no answer from {address} port {port} {error}") from error


def http_get(namespace, port, path, timeout=10):
    """The page that somebody serves on the loopback of a namespace."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    with connect_in(namespace, "127.0.0.1", port, timeout) as connection:
        try:
            connection.sendall(request)
            reply = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError as error:
            raise LabError(f"{path} on port {port}: {error}") from error
    head, _, body = reply.partition("\r\n\r\n")
    if not head.startswith("HTTP/1.1 200"):
        raise LabError(f"{path} answered {head.splitlines()[0] if head else 'nothing'}: {body[:500]}")
    return _unchunk(body) if "chunked" in head.lower() else body
