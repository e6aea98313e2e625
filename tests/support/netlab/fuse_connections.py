# SPDX-License-Identifier: Apache-2.0
"""The kernel's FUSE file systems (fuse(4), Documentation/filesystems/fuse.rst)."""

import os

from .job import run

_CONNECTIONS = "/sys/fs/fuse/connections"


def end_file_systems(uid):
    """Ends FUSE file systems that the user has mounted, as an operator can: a process that has open files of its own file
    system cannot end by itself, since the kernel waits for its answer to the close of each."""
    if not os.path.exists(_CONNECTIONS):
        return
    if not os.path.ismount(_CONNECTIONS):
        run(["mount", "-t", "fusectl", "none", _CONNECTIONS])
    for connection in os.scandir(_CONNECTIONS):
        if connection.stat().st_uid == uid:
            with open(os.path.join(connection.path, "abort"), "w", encoding="ascii") as abort:
                abort.write("1")
