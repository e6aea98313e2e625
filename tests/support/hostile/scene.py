# SPDX-License-Identifier: Apache-2.0
"""Two gateways, a controller and a stranger on one switch; the left gateway or the controller is attacked. Both gateways' hosts
have the egress and the ingress guard."""

import fcntl
import os
import signal

from netlab.daemon import start_daemon, start_gateway_daemon
from netlab.fleet import Controller
from netlab.footprint import Footprint, GrowthPoller, LivenessPoller
from netlab.fuse_connections import end_file_systems
from netlab.gateway_host import GatewayHost
from netlab.job import LabError, LocalJob, run
from netlab.neighbours import POOLS, Program, pool_socket

from .catalogue import CONNECTION, LISTENER, LOCAL, OWN_CHANNELS, PEER, POOL
from .observer import Observer

USER = 65534  # nobody
# The noise's pool may have as much queue memory as growth_mib of catalogue.py says. The victim's pool has few ids, so that a
# stranger who could use them up would do so within a short trial.
_POOLS = POOLS.replace("slots: 1, memory", "slots: 1, quota: {peak: {sessions: 32, segment_bytes: 536870912}}, memory").replace(
    "quota:\n          committed", "quota:\n          peak: {cm_ids: 256}\n          committed")
_CONNECTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "connections.py")
_GUARDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "packaging", "nftables")
_MTU = 4200
_STRANGER = "10.77.0.3"
# Open files of a gateway, few enough that a hoard reaches the limit within a short trial.
_DESCRIPTORS = 8192
# Of a controller: few, so that connections use them up.
_CONTROLLER_DESCRIPTORS = 256
_GATEWAY_PORT, _CONTROLLER_PORT, _CONTROLLER_METRICS = 7474, 7471, 7472


class Scene:
    """binaries: the bin folder of a build. guard: whether other programs than the gateway are kept from sending RoCEv2."""

    def __init__(self, lab, binaries, guard=True):
        self.lab = lab
        self.binaries = binaries
        switch = lab.namespace("switch")
        sides = ("left", "right", "stranger")
        self.namespaces = {side: lab.namespace(side) for side in sides}
        for number, side in enumerate(sides, start=1):
            lab.veth(switch, f"port{number}", self.namespaces[side], "link0", _MTU)
            lab.address(self.namespaces[side], "link0", f"10.77.0.{number}/24", f"fd77::{number}/64")
        lab.bridge(switch, "bridge0", [f"port{number}" for number in (1, 2, 3)], _MTU)
        self.left, self.right = (
            GatewayHost(lab, side, self.namespaces[side], "link0", (f"10.77.0.{number}", f"fd77::{number}"), binaries,
                        settings=_POOLS)
            for number, side in enumerate(sides[:2], start=1))
        self.controller = Controller(lab, self.right, binaries)
        self._log = None
        for side in sides[:2] if guard else ():
            for guard, definition in (("egress", "gateway=0"), ("ingress", "uplinks={ link0 }")):
                run(["nft", "--define", definition, "-f", os.path.join(_GUARDS, f"rocegw-{guard}.nft")],
                    namespace=self.namespaces[side])

    def begin(self, attack):
        """Starts whatever does not run, or not as the attack needs it."""
        if (self._log is not None) != attack.unread_log:
            self.end_gateway(self.left)
        for host in (self.left, self.right):
            if host.daemon is None or not host.daemon.running:
                self._start(host, attack.unread_log and host is self.left)
        if attack.target == "controller" and (self.controller.daemon is None or not self.controller.daemon.running):
            command = f'ulimit -n {_CONTROLLER_DESCRIPTORS}; exec "$0" "$@"'
            self.controller.daemon = start_daemon(self.lab, ["sh", "-c", command, *self.controller.command()],
                                                  self.controller.directory, "rocegw-controller", self.right.namespace)

    def certificate(self):
        """Key and certificate of a person without a role, readable by all: the words of connections.py."""
        directory = os.path.join(self.controller.directory, "person")
        if not os.path.exists(directory):
            run(self.controller.command("user-certificate", "mallory", "--out", directory), namespace=self.right.namespace)
            os.chmod(directory, 0o755)
            os.chmod(os.path.join(directory, "mallory.key"), 0o644)
        return [os.path.join(directory, f"mallory.{ending}") for ending in ("crt", "key")]

    def _start(self, host, unread_log):
        redirection = ""
        if unread_log:
            path = self.lab.path("unread.log")
            os.mkfifo(path)
            self._log = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            fcntl.fcntl(self._log, fcntl.F_SETPIPE_SZ, 4096)
            redirection = f" 2>{path}"
        command = f"ulimit -n {_DESCRIPTORS}; exec {host.binaries}/rocegwd --config {host.config}{redirection}"
        host.daemon = start_gateway_daemon(self.lab, ["sh", "-c", command], host.directory, f"rocegwd of {host.name}",
                                           host.namespace)
        # What a gateway keeps once it has had programs of both pools is no leak.
        if host is self.left and self.right.daemon is not None and self.right.daemon.running:
            self._warm_up()
        elif host is self.right:
            self._warm_up()

    def _warm_up(self):
        for pool in "ab":
            program = Program(self.left, self.right, pool, "victim")
            program.job.expect("set_up_us", 30)
            program.end(15)

    def renew_peer(self):
        """Starts the right gateway anew: the left one has to get to know it, and to open channels with it."""
        self.end_gateway(self.right)
        self.right.start_gateway()

    def end_gateway(self, host):
        if host.daemon is not None and host.daemon.running:
            host.daemon.signal(9)
            host.daemon.wait(30)
        host.daemon = None
        if host is self.left and self._log is not None:
            os.close(self._log)
            os.unlink(self.lab.path("unread.log"))
            self._log = None

    def restart_target(self, attack):
        """Kills the attacked daemon; begin() starts it anew."""
        if attack.target == "controller":
            if self.controller.daemon is not None:
                self.controller.daemon.signal(9)
                self.controller.daemon.wait(30)
        else:
            self.end_gateway(self.left)

    def attacked(self, attack):
        """The job of the attacked daemon."""
        return self.controller.daemon if attack.target == "controller" else self.left.daemon

    def footprint(self, attack):
        job = self.attacked(attack)
        return Footprint.of(job.pid) if job.running else Footprint(float("inf"), 0, 0)

    def liveness(self, attack):
        if attack.target == "controller":
            return LivenessPoller(self.right.namespace, _CONTROLLER_METRICS)
        return LivenessPoller(self.left.namespace, _GATEWAY_PORT)

    def growth(self, attack):
        return GrowthPoller(self.attacked(attack).pid)

    def observed(self, attack):
        """A running victim whose numbers the attacker knows, with them."""
        if attack.knows == LISTENER:
            return _Stopped(self)
        return _Connected(self) if attack.knows == CONNECTION else _Streaming(self, attack.knows == OWN_CHANNELS)

    def start(self, attack, known):
        """The running attacker, which knows these numbers; call kill() on it."""
        if attack.program == "neighbour":
            return Program(self.left, self.right, "b", attack.name, None if attack.own_user else USER)
        namespace = self.namespaces["left" if attack.where in (POOL, LOCAL) else "right" if attack.where == PEER else "stranger"]
        if attack.program == "connections":
            where = ("10.77.0.2", _CONTROLLER_PORT) if attack.target == "controller" else ("127.0.0.1", _GATEWAY_PORT)
            person = self.certificate() if attack.arguments[0].startswith("member") else []
            words = ["/usr/bin/python3", _CONNECTIONS, *attack.arguments, *map(str, where), *person]
        else:
            words = [os.path.join(self.binaries, "hostile"), attack.word or attack.name]
            if attack.where == POOL:
                words.append(pool_socket(self.left, "b"))
            else:
                own = attack.forges or (self.right.address4 if attack.where == PEER else _STRANGER)
                words += [own, self.left.address4, *map(str, known)]
        # Root of another host forges addresses; every other attacker has no rights.
        return _Attacker(words, namespace, None if attack.forges else USER)

    def start_flood_elsewhere(self, attack):
        """The load of an attack by packets, to a port of the gateway's host that nobody has open; call kill() on it."""
        words = [os.path.join(self.binaries, "hostile"), "flood_elsewhere", attack.forges or _STRANGER, self.left.address4]
        return _Attacker(words, self.namespaces["stranger"], None if attack.forges else USER)


class _Streaming:
    """Two programs that stream, and the numbers of the channels between their gateways: those of the left, or of the right one."""

    def __init__(self, scene, of_left):
        self._program = Program(scene.left, scene.right, "a", "victim")
        self._program.job.expect("set_up_us", 30)
        host, sender = (scene.left, scene.right) if of_left else (scene.right, scene.left)
        with Observer(host.namespace, "link0", sender.address4) as observer:
            self.known = observer.wait("channels")

    def end(self):
        """LabError when the programs were disturbed."""
        try:
            self._program.end(15)
            self._program.figures()
        finally:
            self._program.kill()


class _Connected:
    """A server and a client that are connected by rdma_cm, the server at the left gateway; the client host's GUID, and the numbers of
    the client's queue pairs."""

    port = 7700

    def __init__(self, scene):
        _Connected.port += 1
        port = str(_Connected.port)
        for host in (scene.left, scene.right):
            host.attach_socket = pool_socket(host, "a")
        self._jobs = [scene.left.start(["rping", "-s", "-d", "-a", scene.left.address4, "-p", port])]
        self._jobs[0].expect("rdma_listen", 30)
        with Observer(scene.left.namespace, "link0", scene.right.address4) as observer:
            self._jobs.append(scene.right.start(["rping", "-c", "-a", scene.left.address4, "-p", port]))
            queue_pairs = observer.wait("queue_pairs")
            self.known = [observer.guid, *queue_pairs]

    def end(self):
        """LabError when the connection has ended."""
        alive = all(job.running for job in self._jobs)
        for job in self._jobs:
            job.signal(9)
            job.wait(30)
        if not alive:
            raise LabError("a connection of rdma_cm ended")


class _Stopped:
    """A server of the victim's pool that is stopped before it has a client; its port."""

    def __init__(self, scene):
        self._scene = scene
        self._server, port = self._serve()
        self._server.signal(signal.SIGSTOP)
        self.known = [port]

    def _serve(self):
        _Connected.port += 1
        port = str(_Connected.port)
        for host in (self._scene.left, self._scene.right):
            host.attach_socket = pool_socket(host, "a")
        server = self._scene.left.start(["rping", "-s", "-d", "-a", self._scene.left.address4, "-p", port])
        server.expect("rdma_listen", 30)
        return server, port

    def end(self):
        """LabError when another server of the pool gets no connection."""
        server, port = self._serve()
        client = self._scene.right.start(["rping", "-c", "-C", "1", "-a", self._scene.left.address4, "-p", port])
        try:
            if (status := client.wait(30)) != 0:
                raise LabError(f"a client of another server ended with {status}: {client.output[-300:]}")
        finally:
            for job in (client, server, self._server):
                job.signal(signal.SIGKILL)
                job.wait(30)


class _Attacker:
    def __init__(self, words, namespace, user):
        self.job = LocalJob(words, namespace=namespace, user=user)
        self.job.expect("attacking", 30)

    def kill(self):
        self.job.signal(9)
        end_file_systems(USER)
        try:
            self.job.wait(30)
        except LabError as error:
            raise LabError(f"the attacker survives SIGKILL: {error}") from error
