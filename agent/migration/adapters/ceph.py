#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Adapter "ceph": Ceph's messenger from async+posix to async+rdma and back. A node is a host with its daemons.

Daemons with different messengers do not understand each other: this is a flag day, in a window that the flags of the cluster
make (pause, nodown, noout, norebalance, noscrub, nodeep-scrub). Between gateways and RNICs nodes restart one by one. The
cluster is described in CLUSTER.json below /etc/rocegw/migration, or below ROCEGW_CEPH_DIR
(docs/operate/migration_adapters.md)."""

import os
import re
import subprocess
import sys

from rocegw_adapter.backup import Backup, place, replace
from rocegw_adapter.byte_counters import roce_bytes
from rocegw_adapter.ceph_cluster import POSIX, RDMA, CephCluster, CephDaemon, endpoints
from rocegw_adapter.ceph_window import KeptNames, Window
from rocegw_adapter.config_files import ConfigFiles
from rocegw_adapter.addresses import host_and_port
from rocegw_adapter.preload_reach import expect_reach
from rocegw_adapter.protocol import RESTART_CALLS, Call, Description, Problem, failed, inconclusive, not_yet, serve

DESCRIPTIONS = os.environ.get("ROCEGW_CEPH_DIR", "/etc/rocegw/migration")
STATE = os.environ.get("ROCEGW_CEPH_STATE", "/var/lib/rocegw/migration")
KEYS = {"scope", "conf", "admin_socket", "options", "nodes", "clients", "files", "tool", "metrics", "commands", "questions"}
NODE_KEYS = {"name", "transport", "domains", "gateway", "rnic", "daemons", "rdma"}
QUESTIONS = {"bytes", "exercise", "journal"}
# The option of the messenger that changes: the one of object stores among each other, or the one of all daemons and clients.
OPTIONS = {"cluster": "ms_cluster_type", "all": "ms_type"}
BEGIN, END = "# Begin of what rocegw's adapter wrote.", "# End of what rocegw's adapter wrote."


class Cluster(Description):
    def __init__(self, name):
        super().__init__(DESCRIPTIONS, name, KEYS, QUESTIONS, RESTART_CALLS)
        self.scope = self.text.get("scope")
        if self.scope not in OPTIONS:
            raise failed(f"{self.path}: scope is neither cluster nor all")
        for node in self.text["nodes"]:
            if set(node) - NODE_KEYS:
                raise failed(f"{self.path}: not understood: {', '.join(sorted(set(node) - NODE_KEYS))}")
            for daemon in node["daemons"]:
                if not re.fullmatch(r"(osd\.[0-9]+)|((mon|mgr|mds)\.[A-Za-z0-9._-]+)", daemon):
                    raise failed(f"{self.path}: {node.get('name')}: {daemon!r} is no daemon")

    def moved(self, node):
        """Daemons of the node whose messenger changes."""
        return [daemon for daemon in node["daemons"] if self.scope == "all" or daemon.startswith("osd.")]

    def inventory(self):
        """Monitors keep their votes, and clients their messenger, where only the object stores' own network changes."""
        whole = self.scope == "all"
        nodes = [{**{key: value for key, value in node.items() if key != "rdma"}, "daemons": self.moved(node),
                  "quorum": whole and any(daemon.startswith("mon.") for daemon in node["daemons"])} for node in self.text["nodes"]]
        return {"cluster": self.name, "adapter": "ceph", "class": "flag-day", "nodes": nodes,
                "clients": self.text.get("clients", []) if whole else []}

    def carry_out(self, request):
        return Step(self, request).carry_out()


class Step(Call):
    """One call for one node. Each call is a method of its name."""

    def __init__(self, cluster, request):
        super().__init__(cluster, request)
        text = cluster.text
        self.conf = text.get("conf", "/etc/ceph/ceph.conf").replace("{node}", self.node)
        self.backup_files = Backup(os.path.join(STATE, cluster.name, self.node), f"{self.before} {self.after}")
        self.drop_ins = [{key: value.replace("{node}", self.node) for key, value in file.items()} for file in text.get("files", [])]
        self.config = ConfigFiles([self.conf, *(file["path"] for file in self.drop_ins)], self.backup_files)
        self.daemons = [CephDaemon(self, name, self._socket(name)) for name in cluster.moved(self.description)]
        self.osds = [daemon for daemon in self.daemons if daemon.name.startswith("osd.")]
        self.option = OPTIONS[cluster.scope]
        # Neither side of a change between TCP and RDMA understands the other one.
        self.flag_day = "tcp" in (self.before, self.after)
        self.ceph = CephCluster(self, text.get("tool", {}).get(self._written(), []), self.conf)
        self.window = Window(self.ceph, cluster.name, self.node)
        self.kept = KeptNames(self.ceph)
        self.noout_key = f"rocegw/migration/{cluster.name}/noout/{self.node}"

    def _socket(self, name):
        return self.cluster.text.get("admin_socket", "/var/run/ceph/ceph-{daemon}.asok") \
            .replace("{daemon}", name).replace("{node}", self.node)

    def carry_out(self):
        method = getattr(self, self.name.replace("-", "_"))
        own = self.own_command()
        return method() if self.name not in ("start", "stop") else method(own)

    # Configuration ----------------------------------------------------------------------------------------------------

    def rdma(self, transport):
        """Device and GID of the node with a transport."""
        found = self.description.get("rdma", {}).get(transport)
        if not found or not found.get("device") or not found.get("gid"):
            raise failed(f"{self.node} has no device and gid for {transport} in the description")
        return found

    def _text(self):
        with open(self.conf, encoding="utf-8") as file:
            return file.read()

    def _written(self):
        """Transport that the configuration file names, by the block of this adapter."""
        found = re.search(re.escape(BEGIN) + r" (\w+)$", self._text(), re.MULTILINE)
        return found.group(1) if found else "tcp"

    def write_conf(self, transport):
        """One block at the end, which is all that the adapter changes in the file."""
        text = re.sub(re.escape(BEGIN) + r".*?" + re.escape(END) + r"\n", "", self._text(), flags=re.DOTALL)
        if transport != "tcp":
            # ceph.conf(5): a section may come again, and a later line wins. Ceph ends unless the queue is shorter than
            # the pool of buffers.
            options = {"ms_async_rdma_device_name": self.rdma(transport)["device"], "ms_async_rdma_local_gid": self.rdma(transport)["gid"],
                       "ms_async_rdma_receive_queue_len": "1024", "ms_async_rdma_receive_buffers": "2048",
                       **self.cluster.text.get("options", {}), self.option: RDMA}
            lines = [f"{name} = {value}" for name, value in options.items()]
            text = "\n".join([text.rstrip("\n"), f"{BEGIN} {transport}", "[global]", *lines, END, ""])
        replace(self.conf, self.conf, text.encode())

    def units(self):
        return [f"ceph-{daemon.name.replace('.', '@', 1)}.service" for daemon in self.daemons]

    # The window -------------------------------------------------------------------------------------------------------

    def pause_clients(self):
        """Opens the window; returns whether the cluster answered. A way back goes on without an answer: monitors that do not
        find each other over the new transport serve no client that could be paused."""
        try:
            self.window.open()
        except (Problem, subprocess.TimeoutExpired) as problem:
            if not self.has_switched() or (isinstance(problem, Problem) and problem.outcome != "failed"):
                raise
            return False
        return True

    def resume_clients(self):
        """Lets I/O go on when the object stores found each other. A node that does not come back is noticed by then: nodown
        ends first."""
        before = self.window.flags_before() if self.flag_day else None
        if before is not None:
            self.window.unset(before, "nodown")
            self.ceph.expect_active()
            self.window.unset(before, "pause")

    # One node that leaves and comes back, between gateways and RNICs ---------------------------------------------------

    def keep_data(self):
        """Object stores get noout, except those that have it from the site. Their names are stored first: a call that comes
        again, after an adapter that was killed, takes none of them for one of the site."""
        if self.kept.read(self.noout_key) is None:
            known = self.ceph.osds()
            self.kept.write(self.noout_key, [osd.name for osd in self.osds if "noout" not in known[int(osd.name[4:])]["state"]])
        names = self.kept.read(self.noout_key)
        if names:
            self.ceph.command("osd", "set-group", "noout", *sorted(names))

    def release_data(self):
        names = self.kept.read(self.noout_key)
        if names:
            self.ceph.command("osd", "unset-group", "noout", *sorted(names))
        if names is not None:
            self.kept.remove(self.noout_key)

    def let_up(self, osds):
        """Ends what drain did: the object stores may be marked up."""
        if osds:
            self.ceph.command("osd", "unset-group", "noup", *(osd.name for osd in osds))

    def expect_members(self):
        for daemon in self.daemons:
            if not daemon.is_member():
                raise not_yet(f"{daemon.name} is no member yet")

    # Calls ------------------------------------------------------------------------------------------------------------

    def health(self):
        if self.after != "tcp":
            self.rdma(self.after)
        if self.after == "gateway" and not self.cluster.text.get("commands", {}).get("start"):
            expect_reach(self, self.units(), {file["path"]: file.get(self.after) for file in self.drop_ins})
        self.config.expect_restorable()
        self.ceph.expect_no_messenger_options()
        unknown = {f"osd.{number}" for number in self.ceph.osds()} - \
            {daemon for node in self.cluster.text["nodes"] for daemon in node["daemons"]}
        if unknown:
            raise failed(f"on no node of the description: {', '.join(sorted(unknown))}")
        problem = self.ceph.problem()
        if problem:
            raise failed(problem)
        for daemon in self.daemons:
            daemon.expect_answer()
        return {}

    def has_switched(self):
        """Returns True from the switch until the way back restored the configuration."""
        return self.backup_files.read("switched") == self.backup_files.change

    def ok_to_stop(self):
        """On a flag day all nodes stop: what counts is that nothing was degraded when the window opened. The way back may be
        what mends a degraded cluster, and does not ask."""
        if self.flag_day:
            problem = self.ceph.problem() if not self.has_switched() and self.window.flags_before() is None else ""
            if problem:
                raise not_yet(problem)
            return {}
        if self.osds:
            self.ceph.expect_ok_to_stop("osd", *(osd.name for osd in self.osds))
        for daemon in self.daemons:
            if daemon.name.startswith("mon."):
                self.ceph.expect_ok_to_stop("mon", daemon.name[4:])
        return {}

    def backup(self):
        return {"config_hash": self.config.save()}

    def cordon(self):
        if self.flag_day:
            self.pause_clients()
        elif self.osds:
            self.keep_data()
        return {}

    def drain(self):
        """Clients are paused on a flag day, also on a way back from where they were resumed. Otherwise they go to other object
        stores: this node's are marked down first."""
        running = [osd for osd in self.osds if osd.listens()]
        if self.flag_day:
            # Operations that wait for what cannot be reached do not end. Clients send them again when the stores are back.
            if not self.pause_clients():
                return {"outstanding": 0}
        elif running:
            names = [osd.name for osd in running]
            self.ceph.command("osd", "set-group", "noup", *names)
            self.ceph.command("osd", "down", *names)
        return {"outstanding": sum(osd.operations() for osd in running)}

    def stop(self, own):
        if not own:
            self.must(["systemctl", "stop", *self.units()], "systemctl stop")
        for daemon in self.daemons:
            if daemon.listens():
                raise not_yet(f"{daemon.name} answers still")
        return {}

    def switch(self):
        for file in self.drop_ins:
            if self.after not in file:
                raise failed(f"{file['path']} has no content for {self.after}")
        self.backup_files.mark_changed()
        self.write_conf(self.after)
        for file in self.drop_ins:
            place(file[self.after], file["path"])
        return {"config_hash": self.config.hash()}

    def restore(self):
        return {"config_hash": self.config.restore()}

    def start(self, own):
        if not own:
            self.must(["systemctl", "daemon-reload"], "systemctl daemon-reload")
            # Ceph's units may start three times in half an hour, which there and back together reach. A unit that systemd has
            # not loaded has no count, and makes this command fail.
            self.run(["systemctl", "reset-failed", *self.units()])
            self.must(["systemctl", "start", *self.units()], "systemctl start")
        return {}

    def rejoin(self):
        # A store that does not come back keeps no other one of the node down.
        if not self.flag_day:
            self.let_up([osd for osd in self.osds if osd.listens()])
        self.expect_members()
        # A node without monitors and object stores is here before the monitors of others have found each other.
        self.ceph.expect_quorum()
        self.resume_clients()
        self.ceph.expect_active()
        return {}

    def verify(self):
        if not self.is_question:
            self.resume_clients()
        return {"config_hash": self.config.hash(), "stated": self.stated(), **self.counted(self.read_bytes), **self.journal()}

    def verify_old(self):
        """The way back from drain begins here: its object stores run, but were marked down."""
        if not self.flag_day and not self.is_question:
            self.let_up(self.osds)
            self.expect_members()
        return self.verify()

    def uncordon(self):
        """The last node closes the window. Where a node is lost, noout stays: a person decides about its data."""
        if not self.flag_day:
            self.let_up(self.osds)
            self.expect_members()
            # The next node leaves only when this one's data are whole again. The way back from here begins with ok-to-stop: data
            # that take too long to become whole take no store out that serves them. A way back does not wait for that.
            if self.has_switched():
                self.ceph.expect_clean()
            self.release_data()
            return {"config_hash": self.config.hash()}
        # A call that was killed while it closed the window may owe it to another node.
        before = None if self.window.finish_closing() else self.window.flags_before()
        if before is not None and all(osd["up"] == 1 for osd in self.ceph.osds().values()):
            self.resume_clients()
            self.window.close(before)
        return {"config_hash": self.config.hash()}

    def remove_old(self):
        """A daemon or client of the old kind cannot be connected any more, so that nothing is counted."""
        stated = self.stated()
        if stated != self.after:
            raise failed(f"daemons of this node run over {stated}, not over {self.after}")
        self.backup_files.remove()
        return {"clients_on_old": 0}

    # Witnesses --------------------------------------------------------------------------------------------------------

    def stated(self):
        """Transport that every daemon of the node runs with."""
        found = {daemon.messenger(self.option) for daemon in self.daemons}
        if len(found) != 1:
            raise failed("daemons of this node run with different messengers")
        messenger, device = found.pop()
        for transport in (self.after, self.before):
            if messenger == (POSIX if transport == "tcp" else RDMA) and (transport == "tcp" or device == self.rdma(transport)["device"]):
                return transport
        raise failed(f"the messenger is {messenger} with device {device or 'unset'}")

    def read_bytes(self):
        """Bytes over RoCE and over TCP at this node. Ceph's RDMA connections begin with 200 bytes over TCP, on the same port."""
        if self.question("bytes"):
            return self.site_bytes()
        return roce_bytes(self), self.tcp_bytes()

    def tcp_bytes(self):
        ports = set()
        for osd in self.ceph.osds().values():
            ports |= endpoints(osd["cluster_addrs"])
            if self.cluster.scope == "all":
                ports |= endpoints(osd["public_addrs"])
        connections, counts = 0, []
        for line in self.must(["ss", "-HtinO", "state", "established"], "ss").splitlines():
            words = line.split()
            if {host_and_port(words[2]), host_and_port(words[3])} & ports:
                connections += 1
                counts += map(int, re.findall(r"bytes_(?:sent|received):(\d+)", line))
        # A connection that was just made has no bytes, and ss then names none.
        if connections and not counts:
            raise inconclusive("ss does not report the bytes of connections: is the module tcp_diag loaded?")
        return sum(counts)


if __name__ == "__main__":
    sys.exit(serve("ceph", RESTART_CALLS, Cluster))
