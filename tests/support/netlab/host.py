# SPDX-License-Identifier: Apache-2.0
"""What every kind of host offers to a case."""

import re
import signal

from .job import LabError


class Host:
    """name: for messages. addresses: (IPv4, IPv6). device: verbs device name that programs see there."""

    is_gateway = False  # programs run on a gateway there

    def __init__(self, name, addresses, device):
        self.name = name
        self.address4, self.address6 = addresses
        self.device = device
        self._gids = None
        self._next_port = 20000

    # Each kind of host ----------------------------------------------------------------------------------------------

    def start(self, command, user=None):
        """Starts a verbs program (list of words, or text for the shell) and returns its Job."""
        raise NotImplementedError

    def start_plain(self, command):
        """Starts a program that has nothing to do with verbs."""
        raise NotImplementedError

    def counters(self):
        """The host's own counters: name to number."""
        raise NotImplementedError

    def moved(self, before, after):
        """(packets sent, packets received) between two readings, as this host counts them."""
        raise NotImplementedError

    def set_mtu(self, mtu):
        raise NotImplementedError

    def expect_idle(self):
        """LabError unless everything that programs had here is gone."""

    def revive(self):
        """Returns "" when the host works; else brings it up again and returns what happened to it."""
        raise NotImplementedError

    def link_fault(self):
        """"" unless the host's link is dead through no fault of what is tested; else what is to be seen of that. The host is
        new afterwards."""
        return ""

    # All of them ----------------------------------------------------------------------------------------------------

    def run(self, command, timeout=60):
        """Runs a verbs program to its end and returns its output; LabError when it fails."""
        return self._finish(self.start(command), timeout)

    def run_plain(self, command, timeout=60):
        return self._finish(self.start_plain(command), timeout)

    @staticmethod
    def _finish(job, timeout):
        try:
            status = job.wait(timeout)
        except LabError:
            job.signal(signal.SIGKILL)
            raise
        if status != 0:
            raise LabError(f"{job.title}: exit status {status}\n{job.output}")
        return job.output

    def fresh_port(self):
        """A TCP or rdma_cm port that no earlier program of this run has used here."""
        self._next_port += 1
        return self._next_port

    def wait_listening(self, port, job, timeout=30, kind="tcp"):
        """Waits until something listens on a TCP port, or has a UDP port; LabError when the job that should has ended."""
        pattern = {"tcp": ":%04X .* 0A ", "udp": ":%04X .*:0000 07 "}[kind] % port
        looker = self.start_plain(["sh", "-c", f"until grep -Eq '{pattern}' /proc/net/{kind} /proc/net/{kind}6; "
                                               "do sleep 0.02; done"])
        try:
            looker.wait(timeout)
        except LabError as error:
            looker.signal(signal.SIGKILL)
            raise LabError(f"{job.title} does not listen on port {port}; output:\n{job.output}") from error

    def forget_gids(self):
        """Programs may see other addresses from now on."""
        self._gids = None

    def gids(self):
        """[(index, text)] of the device's RoCEv2 GIDs, as ibv_devinfo shows them."""
        if self._gids is None:
            text = self.run(["ibv_devinfo", "-v", "-d", self.device])
            self._gids = [(int(index), gid.strip()) for index, gid in
                          re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), RoCE v2", text)]
        return self._gids

    def gid_index(self, address):
        """Index in the device's GID table of the GID of an address."""
        wanted = f"::ffff:{address}" if "." in address else address
        for index, gid in self.gids():
            if gid == wanted:
                return index
        raise LabError(f"{self.name}: no RoCEv2 GID for {address} among {self.gids()}")
