# SPDX-License-Identifier: Apache-2.0
"""A case, the pair of hosts it runs on, and what every case asserts about counters."""

import collections
import contextlib

# run(pair) raises LabError or CaseFailure. mtu: of the link. tags: what the case needs ("gateway" host at the left) or is.
Case = collections.namedtuple("Case", "id mtu run tags", defaults=((),))


class CaseFailure(Exception):
    """The case ran, and something was not as it must be."""


def expect(condition, text):
    if not condition:
        raise CaseFailure(text)


class Pair:
    """left: the host under test. right: its peer. set_link_mtu(mtu): changes the link between them."""

    def __init__(self, left, right, set_link_mtu):
        self.left = left
        self.right = right
        self.mtu = None
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
