# SPDX-License-Identifier: Apache-2.0
"""The window of a flag day: flags of a Ceph cluster that every node of the migration sets and the last one removes, except those
that the site had set. What the nodes have to agree about is in the cluster's own store."""

import json

from .protocol import inconclusive

WINDOW_FLAGS = ("noout", "norebalance", "noscrub", "nodeep-scrub", "nodown", "pause")
PAUSED = {"pauserd", "pausewr"}  # the names under which the map shows "pause"


def _names(flag):
    return PAUSED if flag == "pause" else {flag}


class KeptNames:
    """Sets of names in the cluster's store. `ceph`: a CephCluster."""

    def __init__(self, ceph):
        self.ceph = ceph

    def read(self, key):
        """Returns None where there is no such key. Every node of the migration finds the same names."""
        kept = self.ceph.ask("config-key", "dump", key)
        if key not in kept:
            return None
        names = json.loads(kept[key])
        if not isinstance(names, list):
            raise inconclusive(f"{key} is no list")
        return set(names)

    def write(self, key, names):
        self.ceph.command("config-key", "set", key, json.dumps(sorted(names)))

    def remove(self, key):
        self.ceph.command("config-key", "rm", key)


class Window:
    """The window of one migration, as one of its nodes sees it."""

    def __init__(self, ceph, cluster, node):
        self.ceph = ceph
        self.kept = KeptNames(ceph)
        self.key = f"rocegw/migration/{cluster}/flags"
        self.closing_key = f"rocegw/migration/{cluster}/closing/{node}"

    def flags_before(self):
        """Flags that the cluster had before the window, or None where no window is open."""
        return self.kept.read(self.key)

    def open(self):
        before = self.flags_before()
        if before is None:
            # Flags that are read without a key before and after are those of the site: a node that opens a window writes the
            # key first, and one that closes it removes the key last.
            flags = self.ceph.flags()
            before = self.flags_before()
            if before is None:
                before = flags
                self.kept.write(self.key, before)
        flags = self.ceph.flags()
        for flag in WINDOW_FLAGS:
            if not _names(flag) <= flags:
                self.ceph.command("osd", "set", flag)
        # Another node may have closed the window meanwhile. One that closes it after this look finds the flags.
        if self.flags_before() is None:
            self.kept.write(self.key, before)

    def unset(self, before, *flags):
        for flag in flags:
            if not _names(flag) <= before:
                self.ceph.command("osd", "unset", flag)

    def close(self, before):
        """Removes the flags that the site had not set. A second key tells this node, if it is killed in between, that the flags
        may be those of a node that opened the window at the same time."""
        self.kept.write(self.closing_key, before)
        self.unset(before, *WINDOW_FLAGS)
        self.kept.remove(self.key)
        self.finish_closing()

    def finish_closing(self):
        """Gives the window back to a node that opened it while this one closed it: flags without a key would be taken for those of
        the site, and stay for ever. Returns whether it did."""
        before = self.kept.read(self.closing_key)
        if before is None:
            return False
        flags = self.ceph.flags()
        set_again = any(_names(flag) <= flags and not _names(flag) <= before for flag in WINDOW_FLAGS)
        gives_back = set_again and self.flags_before() is None
        if gives_back:
            self.kept.write(self.key, before)
        self.kept.remove(self.closing_key)
        return gives_back
