# SPDX-License-Identifier: Apache-2.0
"""What Ceph's tools say about a cluster and its daemons, of release 16 and later. An answer without a field that is read here,
or with another kind of value, raises an exception, which makes the step inconclusive."""

import errno
import json
import socket

from .addresses import canonical
from .protocol import failed, inconclusive, not_yet

CONNECT_SECONDS = 20
NO_COMMAND = "invalid command"  # what ceph prints last for a command that the daemon does not have
REFUSALS = (errno.EBUSY, errno.EAGAIN)  # exit statuses of ok-to-stop: not now, and not known yet
ANSWER_SECONDS = 5
POSIX, RDMA = "async+posix", "async+rdma"


def as_number(value, what):
    if isinstance(value, bool) or not isinstance(value, int):
        raise inconclusive(f"{what} is no number: {value!r:.40}")
    return value


def endpoints(addresses):
    """(address, port) of each address of a daemon."""
    found = set()
    for entry in addresses["addrvec"]:
        host, _, port = entry["addr"].rpartition(":")
        found.add((canonical(host.strip("[]")), port))
    return found


class CephCluster:
    """`call` runs the programs. `tool`: words before each `ceph`; `conf`: the configuration file."""

    def __init__(self, call, tool, conf):
        self.call = call
        seconds = max(1, min(CONNECT_SECONDS, call.deadline - 2))
        self.words = [*tool, "ceph", "-c", conf, "--connect-timeout", str(seconds)]

    def command(self, *words):
        return self.call.must([*self.words, *words], " ".join(("ceph", *words)))

    def ask(self, *words):
        return self.call.must_json([*self.words, *words, "-f", "json"], " ".join(("ceph", *words)))

    def osds(self):
        """Number of each object store to its line of the map."""
        return {as_number(osd["osd"], "the number of an object store"): osd for osd in self.ask("osd", "dump")["osds"]}

    def flags(self):
        return set(self.ask("osd", "dump")["flags_set"])

    def groups_without(self, state):
        """Text about the placement groups that lack the state, empty if all have it."""
        lacking = total = 0
        names = set()
        for found in self.ask("pg", "stat")["pg_summary"]["num_pg_by_state"]:
            number = as_number(found["num"], "the number of placement groups")
            total += number
            if state not in found["name"].split("+"):
                lacking += number
                names.add(found["name"])
        if total == 0:
            raise inconclusive("the cluster has no placement groups")
        return f"{lacking} of {total} placement groups are not {state}: {', '.join(sorted(names))}" if lacking else ""

    def problem(self):
        """What is missing: every monitor in quorum, every object store up and in, every placement group active and clean."""
        quorum = self.ask("quorum_status")
        absent = {monitor["name"] for monitor in quorum["monmap"]["mons"]} - set(quorum["quorum_names"])
        if absent:
            return "not in quorum: " + ", ".join(sorted(absent))
        for number, osd in sorted(self.osds().items()):
            if as_number(osd["up"], "up") != 1 or as_number(osd["in"], "in") != 1:
                return f"osd.{number} is not up and in"
        return self.groups_without("active") or self.groups_without("clean")

    def expect_quorum(self):
        """Monitors that just started may not have found each other: a cluster that gives no answer gives one later."""
        status, _, error = self.call.run([*self.words, "quorum_status", "-f", "json"])
        if status != 0:
            raise not_yet(f"the cluster does not answer: {error}")

    def expect_active(self):
        self._expect_groups("active")

    def expect_clean(self):
        self._expect_groups("clean")

    def _expect_groups(self, state):
        lacking = self.groups_without(state)
        if lacking:
            raise not_yet(lacking)

    def expect_ok_to_stop(self, kind, *names):
        """kind: osd, whose answer is JSON too, or mon. A daemon that may not stop now may do so later."""
        what = f"ceph {kind} ok-to-stop"
        status, output, error = self.call.run([*self.words, kind, "ok-to-stop", *names, "-f", "json"])
        if status in REFUSALS:
            raise not_yet(f"{what} says no: {error}")
        if status != 0:
            raise failed(f"{what}: exit status {status} {error}")
        if kind == "osd":
            try:
                allowed = json.loads(output)["ok_to_stop"]
            except ValueError as problem:
                raise inconclusive(f"{what}: its output is not understood: {problem}") from problem
            if allowed is not True:
                raise not_yet(f"{what} says no")

    def expect_no_messenger_options(self):
        """Options of the messenger in the configuration database would fight with those of the file."""
        for option in self.ask("config", "dump"):
            if option["name"] in ("ms_type", "ms_cluster_type", "ms_public_type") or option["name"].startswith("ms_async_rdma_"):
                raise failed(f"the configuration database sets {option['name']} for {option['section']}: remove it there")


class CephDaemon:
    """One daemon of this host, by its admin socket."""

    def __init__(self, call, name, socket_path):
        self.call = call
        self.name = name
        self.socket_path = socket_path

    def run(self, *words):
        return self.call.run(["ceph", "--admin-daemon", self.socket_path, *words])

    def ask(self, *words):
        return self.call.must_json(["ceph", "--admin-daemon", self.socket_path, *words], f"{self.name}: {' '.join(words)}")

    def listens(self):
        """A daemon that ended in order removed its socket; one that was killed left a socket that refuses. Anything else, such as
        a socket that this adapter may not use, does not say that the daemon ended."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_SECONDS)
            try:
                connection.connect(self.socket_path)
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except (BlockingIOError, TimeoutError):  # more connections wait than the daemon takes: it is there
                return True
            except OSError as error:
                raise inconclusive(f"{self.name}: {self.socket_path}: {error.strerror or error}") from error
        return True

    def expect_answer(self):
        """Fails before anything is changed where the adapter cannot ask the daemon."""
        if not self.listens():
            raise failed(f"{self.name} does not listen at {self.socket_path}")
        self.call.must(["ceph", "--admin-daemon", self.socket_path, "version"], f"{self.name}: version")

    def is_serving(self, *words):
        """Returns False while the daemon listens and does not know its own commands yet: it begins, and serves nobody."""
        status, _, error = self.run(*words)
        return status == 0 or NO_COMMAND not in error

    def is_member(self):
        if not self.listens():
            return False
        if self.name.startswith("osd."):
            return self.is_serving("status") and self.ask("status")["state"] == "active"
        if self.name.startswith("mon."):
            return self.is_serving("mon_status") and self.ask("mon_status")["state"] in ("leader", "peon")
        return True

    def operations(self):
        if not self.is_serving("dump_ops_in_flight"):
            return 0
        return as_number(self.ask("dump_ops_in_flight")["num_ops"], "num_ops")

    def messenger(self, option):
        """The messenger's type that the daemon runs with, and its RDMA device. A daemon whose configuration and whose
        messenger's counters contradict each other fails the step."""
        options = self.ask("config", "show")
        stated = options[option] or options["ms_type"]
        if stated not in (POSIX, RDMA):
            raise inconclusive(f"{self.name}: unknown messenger {stated}")
        counters = [name for name in self.ask("perf", "dump") if name.startswith("AsyncMessenger::")]
        if not counters:
            raise inconclusive(f"{self.name}: no counters of a messenger")
        dispatches = "AsyncMessenger::RDMADispatcher" in counters
        if dispatches != (stated == RDMA):
            raise failed(f"{self.name} is configured with {stated}, but runs {'with' if dispatches else 'without'} RDMA")
        return stated, options["ms_async_rdma_device_name"]
