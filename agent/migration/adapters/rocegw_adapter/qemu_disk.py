# SPDX-License-Identifier: Apache-2.0
"""A disk of QEMU whose initiator is libiscsi: a node of format raw above a node of driver iscsi. QEMU exchanges the lower node
while the machine runs (blockdev-reopen): it drains the old one first."""

import json
import re
import socket
import time

from .addresses import canonical
from .protocol import failed, inconclusive

SECONDS = 30
BUSY_SECONDS = 5
LONGEST_LINE = 1 << 20


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
        self.reader = self.socket.makefile("rb")
        try:
            self.socket.connect(path)
            greeting = self.reader.readline(LONGEST_LINE)
            if greeting and "QMP" not in json.loads(greeting):
                raise inconclusive("the monitor does not speak QMP")
            self.execute("qmp_capabilities")
        except (BrokenPipeError, ConnectionResetError):
            return False
        except OSError as error:
            self.close()
            raise failed(f"{path}: {error}") from error
        return True

    def close(self):
        self.reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _line(self):
        line = self.reader.readline(LONGEST_LINE)
        if not line:
            raise ConnectionResetError("the monitor ended the connection")
        if not line.endswith(b"\n"):
            raise inconclusive("the monitor's answer is cut")
        return json.loads(line)

    def execute(self, name, arguments=None):
        self.socket.sendall((json.dumps({"execute": name, "arguments": arguments or {}}) + "\n").encode())
        while True:
            answer = self._line()
            if "event" in answer:
                continue
            if "error" in answer:
                raise failed(f"QEMU: {name}: {answer['error']['desc']}")
            return answer["return"]


def address_of(file_name):
    """(transport, portal, target) of a node of driver iscsi, or of one above it: QEMU names it as options or as a URL."""
    if file_name.startswith("json:"):
        options = json.loads(file_name[5:])
        while "portal" not in options:
            options = options["file"]
        transport, portal, target = options["transport"], options["portal"], options["target"]
    else:
        found = re.fullmatch(r"(iscsi|iser)://(?:[^@/]*@)?([^/]+)/([^/]+)/\d+", file_name)
        if not found:
            raise inconclusive(f"QEMU: not understood: {file_name[:80]}")
        transport, portal, target = "tcp" if found.group(1) == "iscsi" else "iser", found.group(2), found.group(3)
    host, _, port = portal.rpartition(":") if re.search(r":\d+$", portal) else (portal, "", "3260")
    return transport, canonical(host.strip("[]")), port, target


class QemuDisk:
    """The disk of one host of the description: name, qmp, node, initiator."""

    def __init__(self, host, lun):
        self.host = host
        self.name = host["name"]
        self.node = host["node"]
        self.lun = lun

    def monitor(self):
        return Monitor(self.host["qmp"])

    @staticmethod
    def wanted(path):
        return "tcp" if path["transport"] == "tcp" else "iser", path["traddr"], path["trsvcid"], path["iqn"]

    def _nodes(self, monitor):
        return {node["node-name"]: node for node in monitor.execute("query-named-block-nodes", {"flat": True})}

    def leads_to(self, path):
        """Returns True if the disk's I/O goes over the path."""
        with self.monitor() as monitor:
            nodes = self._nodes(monitor)
        if self.node not in nodes:
            raise failed(f"{self.name}: there is no node {self.node}")
        if nodes[self.node]["drv"] != "raw":
            raise failed(f"{self.name}: the node {self.node} has the format {nodes[self.node]['drv']}, not raw")
        return address_of(nodes[self.node]["file"]) == self.wanted(path)

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
                    "driver": "iscsi", "node-name": f"{self.node}-{path['transport']}"[:31], "lun": self.lun, "portal": f"{host}:{path['trsvcid']}",
                    "transport": self.wanted(path)[0], "target": path["iqn"], "initiator-name": self.host["initiator"],
                    "cache": {"direct": True}})

    def use(self, path):
        with self.monitor() as monitor:
            name = self._of_path(monitor, path)
            if name is None:
                raise failed(f"{self.name} is not connected over {path['transport']}")
            monitor.execute("blockdev-reopen", {"options": [{"driver": "raw", "node-name": self.node, "file": name}]})

    def disconnect(self, path):
        with self.monitor() as monitor:
            name = self._of_path(monitor, path)
            if name is not None:
                monitor.execute("blockdev-del", {"node-name": name})
