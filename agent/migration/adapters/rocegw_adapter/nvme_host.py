# SPDX-License-Identifier: Apache-2.0
"""A host that uses the storage: Linux with native multipath, asked by nvme-cli and sysfs. Words that name devices come from
the host and are checked before they are used."""

import re

from .addresses import canonical, text_of
from .protocol import inconclusive, not_yet

_CONTROLLER = re.compile(r"nvme(\d{1,5})")
_SUBSYSTEM = re.compile(r"nvme-subsys(\d{1,5})")
_HEAD = re.compile(r"nvme\d{1,5}n(\d{1,9})")


class Path:
    """One controller of the host: a path to the subsystem."""

    def __init__(self, listed, subsystem):
        name = _CONTROLLER.fullmatch(listed["Name"])
        if not name:
            raise inconclusive("nvme list-subsys: the name of a path is not understood")
        self.controller = listed["Name"]
        self.number = name.group(1)
        self.subsystem = subsystem
        self.transport = listed["Transport"]
        self.state = listed["State"]
        self.address = dict(part.split("=", 1) for part in listed["Address"].split(",") if "=" in part)
        self.ana = set()

    def leads_to(self, address):
        return (self.transport, canonical(self.address.get("traddr", "")), self.address.get("trsvcid")) == \
            (address["trtype"], address["traddr"], address["trsvcid"])

    @property
    def ana_state(self):
        return next(iter(self.ana)) if len(self.ana) == 1 else "mixed" if self.ana else "unknown"


class NvmeHost:
    """`description`: name, nqn (of the host, or none), and run, the words before each command, such as ssh and a name."""

    def __init__(self, call, nqn, description):
        self.call = call
        self.nqn = nqn
        self.name = description["name"]
        self.prefix = description.get("run", [])
        self.host_nqn = description.get("nqn")
        self.options = description.get("connect", [])

    def _must(self, *words):
        return self.call.must([*self.prefix, *words], f"{self.name}: {words[0]}")

    def _subsystem(self, *device):
        """The subsystem as nvme-cli 2 lists it, or None."""
        listed = self.call.must_json([*self.prefix, "nvme", "list-subsys", *device, "-o", "json"], f"{self.name}: nvme list-subsys")
        if not isinstance(listed, list):
            raise inconclusive(f"{self.name}: this nvme-cli is not understood: version 2 is needed")
        for host in listed:
            for subsystem in host["Subsystems"]:
                if subsystem["NQN"] == self.nqn:
                    return subsystem
        return None

    def _heads(self, subsystem):
        """Numbers of the multipath devices."""
        names = self._must("ls", f"/sys/class/nvme-subsystem/{subsystem}").split()
        return [found.group(1) for found in map(_HEAD.fullmatch, names) if found]

    def paths(self):
        """All paths to the subsystem, with their ANA states."""
        subsystem = self._subsystem()
        if subsystem is None:
            return []
        number = _SUBSYSTEM.fullmatch(subsystem["Name"])
        if not number:
            raise inconclusive(f"{self.name}: the name of the subsystem is not understood")
        paths = {}
        for head in self._heads(subsystem["Name"]):
            for listed in (self._subsystem(f"/dev/nvme{number.group(1)}n{head}") or {}).get("Paths", []):
                path = paths.setdefault(listed["Name"], Path(listed, number.group(1)))
                path.ana.add(listed.get("ANAState", "unknown"))
        # A path that is connecting is missing where nvme-cli lists the paths of a device.
        for listed in subsystem["Paths"]:
            paths.setdefault(listed["Name"], Path(listed, number.group(1)))
        return list(paths.values())

    def path_to(self, address):
        """The path to a port of the target; None when there is none."""
        return next((path for path in self.paths() if path.leads_to(address)), None)

    def connect(self, address):
        """Connects unless there is a path. The path never expires: a device must not vanish while its target restarts."""
        if self.path_to(address) is not None:
            return
        host_nqn = ["-q", self.host_nqn] if self.host_nqn else []
        self._must("nvme", "connect", "-t", address["trtype"], "-a", address["traddr"], "-s", address["trsvcid"], "-n", self.nqn,
                   *host_nqn, "--ctrl-loss-tmo=-1", *self.options)

    def disconnect(self, address):
        path = self.path_to(address)
        if path is not None:
            self._must("nvme", "disconnect", "-d", path.controller)

    def inflight(self, address):
        """I/Os that the path has not answered."""
        path = self.path_to(address)
        if path is None:
            return 0
        total = 0
        for head in self._heads(f"nvme-subsys{path.subsystem}"):
            numbers = self._must("cat", f"/sys/block/nvme{path.subsystem}c{path.number}n{head}/inflight").split()
            total += sum(int(number) for number in numbers)
        return total

    def expect_unused(self, address):
        """The host sends no I/O over the path: it has none, or the path does not work, or the host knows it inaccessible."""
        path = self.path_to(address)
        if path is not None and path.state == "live" and path.ana_state != "inaccessible":
            raise not_yet(f"{self.name}: the path to {text_of(address)} is {path.ana_state}, not inaccessible")

    def expect(self, *wanted):
        """The host has seen the ANA states of these paths, pairs of address and state, and the paths work."""
        paths = self.paths()
        for address, ana in wanted:
            path = next((each for each in paths if each.leads_to(address)), None)
            if path is None:
                raise not_yet(f"{self.name} has no path to {text_of(address)}")
            if path.state != "live":
                raise not_yet(f"{self.name}: the path to {text_of(address)} is {path.state}")
            if path.ana_state != ana:
                raise not_yet(f"{self.name}: the path to {text_of(address)} is {path.ana_state}, not {ana}")
