# SPDX-License-Identifier: Apache-2.0
"""Linux's NVMe-oF target (nvmet), as configfs shows it. A node of the cluster is a host whose kernel is the target; a path of
the node is a port, which has an ANA state for each ANA group."""

import os
import re

from . import configfs
from .addresses import canonical, host_and_port, is_endpoint, text_of
from .configfs import children, make, read
from .protocol import failed, inconclusive

CONFIGFS = os.environ.get("ROCEGW_NVMET", "/sys/kernel/config/nvmet")
ATTRIBUTES = ("addr_trtype", "addr_adrfam", "addr_traddr", "addr_trsvcid")
MOST_PORTS = 1024


class NvmetTarget:
    """The target of this host. An address is a dictionary of trtype, adrfam, traddr and trsvcid."""

    def __init__(self, call, backup, nqn):
        if "gateway" in (call.before, call.after):
            raise failed("the kernel's target needs an RNIC: programs use gateways, the kernel does not")
        self.call = call
        self.backup = backup
        self.nqn = nqn
        self.subsystem = os.path.join(CONFIGFS, "subsystems", nqn)

    def check_healthy(self):
        namespaces = os.path.join(self.subsystem, "namespaces")
        if not os.path.isdir(namespaces):
            raise failed(f"the target has no subsystem {self.nqn}")
        names = children(namespaces)
        disabled = [name for name in names if read(namespaces, name, "enable") != "1"]
        if disabled or not names:
            raise failed(f"namespaces that are not enabled: {', '.join(disabled) or 'there is none'}")

    # Ports ------------------------------------------------------------------------------------------------------------

    def _find(self, address):
        """Folder of the port with this address, linked or not; None when there is none."""
        ports = os.path.join(CONFIGFS, "ports")
        wanted = [address["trtype"], address["adrfam"], address["traddr"], address["trsvcid"]]
        for name in children(ports):
            if [canonical(read(ports, name, attribute)) for attribute in ATTRIBUTES] == wanted:
                return os.path.join(ports, name)
        return None

    def _link(self, port):
        return os.path.join(port, "subsystems", self.nqn)

    def ana(self, address):
        """ANA state of the port for this subsystem; None when hosts do not reach the subsystem through it."""
        port = self._find(address)
        if port is None or not os.path.islink(self._link(port)):
            return None
        groups = os.path.join(port, "ana_groups")
        states = {read(groups, group, "ana_state") for group in os.listdir(groups)}
        return states.pop() if len(states) == 1 else "mixed"

    def set_ana(self, address, state):
        port = self._find(address)
        if port is None:
            raise failed(f"the target has no port {text_of(address)}")
        groups = os.path.join(port, "ana_groups")
        for group in children(groups):
            if read(groups, group, "ana_state") != state:
                configfs.write(state, groups, group, "ana_state")

    def add(self, address):
        """Makes the port; hosts see it only when it is inaccessible already."""
        port = self._find(address)
        if port is None:
            port = self._make_port()
            # A new port has group 1; the namespaces' other groups exist on all ports or on none.
            configfs.write("inaccessible", port, "ana_groups", "1", "ana_state")
            for attribute, value in (("addr_adrfam", "adrfam"), ("addr_trtype", "trtype"), ("addr_trsvcid", "trsvcid"),
                                     ("addr_traddr", "traddr")):
                configfs.write(address[value], port, attribute)
        if not os.path.islink(self._link(port)):
            if set(os.listdir(os.path.join(port, "subsystems"))) - {self.nqn}:
                raise failed(f"port {text_of(address)} serves other subsystems, whose ANA state would change: "
                             "give this one a trsvcid of its own")
            self._copy_groups(port)
            self.set_ana(address, "inaccessible")
            os.symlink(self.subsystem, self._link(port))

    def _make_port(self):
        """Makes a port without an address, or takes the one that a killed adapter left."""
        unfinished = self._unfinished()
        if unfinished is not None:
            if read(unfinished, "addr_traddr"):
                raise inconclusive(f"port {os.path.basename(unfinished)} of the target was made by somebody else meanwhile")
            return unfinished
        for number in range(1, MOST_PORTS):
            port = os.path.join(CONFIGFS, "ports", str(number))
            try:
                os.mkdir(port)
            except FileExistsError:  # maybe just now, by the adapter of another cluster
                continue
            self.backup.write("port", str(number))
            return port
        raise failed("the target has no number of a port left")

    def _unfinished(self):
        """Folder of the port that this migration made; None when it made none, or it is gone."""
        number = self.backup.read("port")
        port = os.path.join(CONFIGFS, "ports", number) if number and number.isdecimal() else None
        return port if port and os.path.isdir(port) else None

    def _copy_groups(self, port):
        """The new port needs an entry for each ANA group that any port of the subsystem has."""
        ports = os.path.join(CONFIGFS, "ports")
        for other in children(ports):
            if not os.path.islink(self._link(os.path.join(ports, other))):
                continue
            for group in children(ports, other, "ana_groups"):
                make(port, "ana_groups", group)

    def remove(self, address):
        """Unlinks the subsystem, and removes the port if no other subsystem uses it; also a port that never got its address."""
        unfinished = self._unfinished()
        if unfinished is not None and not read(unfinished, "addr_traddr"):
            self._remove_port(unfinished)
        port = self._find(address)
        if port is not None:
            self._remove_port(port)

    def _remove_port(self, port):
        if os.path.islink(self._link(port)):
            os.unlink(self._link(port))
        if not os.listdir(os.path.join(port, "subsystems")):
            for group in children(port, "ana_groups"):
                if group != "1":
                    configfs.remove(port, "ana_groups", group)
            configfs.remove(port)

    # Connections ------------------------------------------------------------------------------------------------------

    def connected(self, address):
        """Number of hosts with a connection to the port."""
        if address["trtype"] == "tcp":
            return tcp_peers(self.call, address)
        peers = set()
        for entry in self.call.must_json(["rdma", "-j", "resource", "show", "cm_id"], "rdma"):
            if entry.get("state") == "CONNECT" and is_endpoint(entry["src-addr"], address):
                peers.add(host_and_port(entry["dst-addr"])[0])
        return len(peers)


def connections(call, options, address):
    """Established TCP connections to the address as ss prints them, a list of words for each."""
    output = call.must(["ss", options, "state", "established", "sport", "=", ":" + address["trsvcid"]], "ss")
    lines = [line.split() for line in output.splitlines()]
    if any(len(words) < 4 for words in lines):
        raise inconclusive("ss: its output is not understood")
    return [words for words in lines if is_endpoint(words[2], address)]


def tcp_peers(call, address):
    """Number of hosts with an established TCP connection to the address."""
    return len({host_and_port(words[3])[0] for words in connections(call, "-Htn", address)})


def tcp_bytes(call, address):
    """Bytes of established TCP connections to the address, sent and received."""
    lines = connections(call, "-HtinO", address)
    found = [int(number) for words in lines for number in re.findall(r"bytes_(?:sent|received):(\d+)", " ".join(words))]
    if lines and not found:
        raise inconclusive("ss does not report the bytes of connections: is the module tcp_diag loaded?")
    return sum(found)
