# SPDX-License-Identifier: Apache-2.0
"""A case, the pair of hosts it runs on, and what every case asserts about counters."""

import collections
import contextlib
import os

# run(pair) returns a note for the report, or raises LabError or CaseFailure. mtu: of the link. needs: "gateway" (at the
# left), "workers" (several), "dpdk", "xdp" or "kernel_sockets" (as its port), "channels" (between both ends), "gpu"
# (scripts/check-gpu) or "in_process" (daemons of the default kind beside it), for cases that make no sense otherwise.
Case = collections.namedtuple("Case", "id mtu run needs", defaults=(None,))


class CaseFailure(Exception):
    """The case ran, and something was not as it must be."""


def expect(condition, text):
    if not condition:
        raise CaseFailure(text)


class Pair:
    """left: the host under test. right: its peer. link: (namespace, interface) where both sides' frames pass.
    set_link_mtu(mtu): changes the link between them. channels: their queue pairs are to share channels."""

    def __init__(self, lab, left, right, link, set_link_mtu, channels=False):
        self.left = left
        self.right = right
        self.mtu = None
        self.channels = channels
        self._lab = lab
        self._link = link
        self._set_link_mtu = set_link_mtu

    def use_mtu(self, mtu):
        if self.mtu != mtu:
            self._set_link_mtu(mtu)
            self.mtu = mtu

    def roles(self, left_is_active):
        """(active host, passive host)"""
        return (self.left, self.right) if left_is_active else (self.right, self.left)

    @contextlib.contextmanager
    def counted(self, at_least):
        """Both hosts' own counters must move by so many packets in each direction."""
        before = [host.counters() for host in (self.left, self.right)]
        yield
        for host, old in zip((self.left, self.right), before):
            sent, received = host.moved(old, host.counters())
            expect(sent >= at_least and received >= at_least,
                   f"{host.name} counted {sent} packets sent and {received} received, at least {at_least} were due")

    @contextlib.contextmanager
    def counted_one_way(self, left_is_active, at_least):
        """The active host sends so many packets that nobody answers, and the passive one gets them."""
        hosts = self.roles(left_is_active)
        before = [host.counters() for host in hosts]
        yield
        (sent, _), (_, received) = [host.moved(old, host.counters()) for host, old in zip(hosts, before)]
        expect(sent >= at_least and received >= at_least,
               f"{sent} packets were sent and {received} received, at least {at_least} were due")

    @contextlib.contextmanager
    def recorded(self):
        """Records what passes on the link; yields the file, complete when the block is left."""
        path = self._lab.path("link.pcap")
        namespace, interface = self._link
        job = self._lab.start(["tcpdump", "-i", interface, "-s", "0", "-U", "-B", "65536", "-Z", "root", "-w", path,
                               "udp", "port", "4791"], namespace=namespace)
        job.expect("listening on", 20)
        yield path
        expect(job.stop() == 0, f"tcpdump failed:\n{job.output}")
        if not os.path.getsize(path):
            raise CaseFailure("nothing was recorded")
