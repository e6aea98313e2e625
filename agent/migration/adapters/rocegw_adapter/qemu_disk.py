# SPDX-License-Identifier: Apache-2.0
"""A disk of QEMU whose initiator is libiscsi: a node of format raw above a node of driver iscsi. QEMU exchanges the lower node
while the machine runs (blockdev-reopen): it drains the old one first."""

import json
import os
import re
import socket
import struct
import time

from .addresses import canonical
from .protocol import failed, inconclusive

SECONDS = 30
BUSY_SECONDS = 5
LONGEST_LINE = 1 << 20
LONGEST_NODE_NAME = 31
# Of a request to the storage, and of the connection: blockdev-add waits for it in QEMU's main loop, where the machine stands
# still. QEMU tries a request that timed out again, 30 times.
PATH_SECONDS = 10
PROC = "/proc"
ELSEWHERE = "See that QEMU runs with MALLOC_PERTURB_=255, then give the host \"elsewhere\": true"


class Monitor:
    """A connection to a socket of QMP, which serves one client at a time: one that comes while another leaves is cut off, and
    tries again."""

    def __init__(self, path):
        deadline = time.monotonic() + BUSY_SECONDS
        while not self._begin(path):
            self.close()
            if time.monotonic() > deadline:
                raise failed(f"{path}: the monitor is used by another program")
            time.sleep(0.05)

    def _begin(self, path):
        """Returns False if another client is served."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.received = bytearray()
        try:
            self.socket.connect(path)
            if "QMP" not in self._line(time.monotonic() + SECONDS):
                raise inconclusive("the monitor does not speak QMP")
            self.execute("qmp_capabilities")
        except (BrokenPipeError, ConnectionResetError):
            return False
        except OSError as error:
            self.close()
            raise failed(f"{path}: {error}") from error
        return True

    def close(self):
        self.socket.close()

    def process(self):
        """PID of the process that made the monitor's socket: QEMU, or the one that forwards it."""
        found = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", found)[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _line(self, deadline):
        while b"\n" not in self.received:
            if len(self.received) > LONGEST_LINE:
                raise inconclusive("the monitor's answer is too long")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the monitor does not answer in time")
            self.socket.settimeout(left)
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionResetError("the monitor ended the connection")
            self.received += piece
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def execute(self, name, arguments=None):
        """One deadline for the answer, however many events come before it."""
        deadline = time.monotonic() + SECONDS
        self.socket.settimeout(SECONDS)
        self.socket.sendall((json.dumps({"execute": name, "arguments": arguments or {}}) + "\n").encode())
        while True:
            answer = self._line(deadline)
            if "event" in answer:
                continue
            if "error" in answer:
                raise failed(f"QEMU: {name}: {answer['error']['desc']}")
            return answer["return"]


def address_of(file_name):
    """(transport, address, port, target, unit) of a node of driver iscsi, or of one above it: QEMU names it as options or as a URL."""
    if file_name.startswith("json:"):
        options = json.loads(file_name[5:])
        while "portal" not in options:
            options = options["file"]
        transport, portal, target, lun = options["transport"], options["portal"], options["target"], options.get("lun", 0)
    else:
        found = re.fullmatch(r"(iscsi|iser)://(?:[^@/]*@)?([^/]+)/([^/]+)/(\d+)", file_name)
        if not found:
            # A URL may have a password before its "@", which belongs into no message.
            raise inconclusive(f"QEMU: not understood: {file_name.rpartition('@')[2][:80]}")
        transport, portal, target, lun = "tcp" if found.group(1) == "iscsi" else "iser", found.group(2), found.group(3), found.group(4)
    host, _, port = portal.rpartition(":") if re.search(r":\d+$", portal) else (portal, "", "3260")
    return transport, canonical(host.strip("[]")), port, target, int(lun)


class QemuDisk:
    """The disk of one host of the description: name, qmp, node, initiator."""

    def __init__(self, host, lun):
        self.host = host
        self.name = host["name"]
        self.node = host["node"]
        self.lun = lun

    def monitor(self):
        return Monitor(self.host["qmp"])

    def wanted(self, path):
        return "tcp" if path["transport"] == "tcp" else "iser", path["traddr"], path["trsvcid"], path["iqn"], self.lun

    def node_name(self, path):
        return f"{self.node}-{path['transport']}"

    def _nodes(self, monitor):
        return {node["node-name"]: node for node in monitor.execute("query-named-block-nodes", {"flat": True})}

    def _disk(self, monitor):
        nodes = self._nodes(monitor)
        if self.node not in nodes:
            raise failed(f"{self.name}: there is no node {self.node}")
        if nodes[self.node]["drv"] != "raw":
            raise failed(f"{self.name}: the node {self.node} has the format {nodes[self.node]['drv']}, not raw")
        return nodes[self.node]

    def leads_to(self, path):
        """Returns True if the disk's I/O goes over the path."""
        with self.monitor() as monitor:
            return address_of(self._disk(monitor)["file"]) == self.wanted(path)

    def expect_exchangeable(self, *paths):
        """Fails for a disk that the exchange of its paths would change: blockdev-reopen sets options that are not given to
        their defaults, and QEMU deletes a lower node without a name of its own when nothing is above it."""
        for path in paths:
            if len(self.node_name(path)) > LONGEST_NODE_NAME:
                raise failed(f"{self.name}: QEMU allows no node name as long as {self.node_name(path)}")
        with self.monitor() as monitor:
            file_name = self._disk(monitor)["file"]
            options = sorted(set(json.loads(file_name[5:])) - {"driver", "file"}) if file_name.startswith("json:") else []
            if options:
                raise failed(f"{self.name}: the node {self.node} has options that would be lost: {', '.join(options)}")
            for path in paths:
                name = self._of_path(monitor, path)
                if name is not None and name.startswith("#"):
                    raise failed(f"{self.name}: the iSCSI node below {self.node} needs a node-name of its own")

    def expect_zeroed_memory(self):
        """Fails for a QEMU that a connection over iSER could end: libiscsi 1.19 reads a field of it before anything is written
        there, which is harmless where memory is zero. Where the site says that QEMU is elsewhere it looked itself."""
        elsewhere = self.host.get("elsewhere", False)
        if not isinstance(elsewhere, bool):
            raise failed(f"{self.name}: elsewhere is neither true nor false")
        if elsewhere:
            return
        with self.monitor() as monitor:
            process = monitor.process()
        folder = os.path.join(PROC, str(process))
        try:
            # The kernel says 0 for a process of a namespace that this one does not see.
            program = os.path.basename(os.readlink(os.path.join(folder, "exe"))) if process != 0 else ""
            if not program:
                raise failed(f"{self.name}: the process of QEMU is not seen: it may be in a container. {ELSEWHERE}")
            if not program.startswith("qemu-"):
                raise failed(f"{self.name}: {program} made the monitor's socket, not QEMU. {ELSEWHERE}")
            with open(os.path.join(folder, "environ"), "rb") as file:
                environment = file.read().split(b"\0")
        except PermissionError as error:
            raise failed(f"{self.name}: the environment of QEMU cannot be read, which needs CAP_SYS_PTRACE") from error
        if b"MALLOC_PERTURB_=255" not in environment:
            raise failed(f"{self.name}: QEMU runs without MALLOC_PERTURB_=255 in its environment, and iSER would end it")

    def _of_path(self, monitor, path):
        """Name of the node that is connected over the path, or None."""
        for name, node in self._nodes(monitor).items():
            if node["drv"] == "iscsi" and address_of(node["file"]) == self.wanted(path):
                return name
        return None

    def is_connected(self, path):
        with self.monitor() as monitor:
            return self._of_path(monitor, path) is not None

    def connect(self, path):
        host = path["traddr"] if path["adrfam"] == "ipv4" else f"[{path['traddr']}]"
        with self.monitor() as monitor:
            if self._of_path(monitor, path) is None:
                monitor.execute("blockdev-add", {
                    "driver": "iscsi", "node-name": self.node_name(path), "lun": self.lun, "portal": f"{host}:{path['trsvcid']}",
                    "transport": self.wanted(path)[0], "target": path["iqn"], "initiator-name": self.host["initiator"],
                    "timeout": PATH_SECONDS, "cache": {"direct": True}})

    def use(self, path):
        with self.monitor() as monitor:
            name = self._of_path(monitor, path)
            if name is None:
                raise failed(f"{self.name} is not connected over {path['transport']}")
            found = self._disk(monitor)
            # QEMU allows the detection of zeroes with "unmap" only together with this value of discard. It tells discard to
            # nobody, hence the key in the description.
            discard = "unmap" if found["detect_zeroes"] == "unmap" else self.host.get("discard", "ignore")
            monitor.execute("blockdev-reopen", {"options": [{
                "driver": "raw", "node-name": self.node, "file": name, "read-only": found["ro"], "discard": discard,
                "detect-zeroes": found["detect_zeroes"],
                "cache": {"direct": found["cache"]["direct"], "no-flush": found["cache"]["no-flush"]}}]})

    def disconnect(self, path):
        with self.monitor() as monitor:
            name = self._of_path(monitor, path)
            if name is not None:
                monitor.execute("blockdev-del", {"node-name": name})
