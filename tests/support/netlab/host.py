# SPDX-License-Identifier: Apache-2.0
"""What every kind of host offers to a case."""

import re

from .job import LabError


class Host:
    """name: for messages. addresses: (IPv4, IPv6). device: verbs device name that programs see there."""

    def __init__(self, name, addresses, device):
        self.name = name
        self.address4, self.address6 = addresses
        self.device = device
        self._gids = None

    def start(self, command, user=None):
        """Starts a verbs program (list of words) and returns its Job."""
        raise NotImplementedError

    def counters(self):
        """The host's own counters: name to number."""
        raise NotImplementedError

    def moved(self, before, after):
        """(packets sent, packets received) between two readings, as this host counts them."""
        raise NotImplementedError

    def run(self, command, timeout=60):
        """Runs a verbs program to its end and returns its output; LabError when it fails."""
        job = self.start(command)
        try:
            status = job.wait(timeout)
        except LabError:
            job.signal(9)
            raise
        if status != 0:
            raise LabError(f"{job.title}: exit status {status}\n{job.output}")
        return job.output

    def gid_index(self, address):
        """Index in the device's GID table of the RoCEv2 GID of an address, as ibv_devinfo shows it."""
        if self._gids is None:
            text = self.run(["ibv_devinfo", "-v", "-d", self.device])
            self._gids = [(int(index), gid.strip()) for index, gid in
                          re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), RoCE v2", text)]
        wanted = f"::ffff:{address}" if "." in address else address
        for index, gid in self._gids:
            if gid == wanted:
                return index
        raise LabError(f"{self.name}: no RoCEv2 GID for {address} among {self._gids}")
