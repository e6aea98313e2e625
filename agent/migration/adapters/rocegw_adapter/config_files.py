# SPDX-License-Identifier: Apache-2.0
"""Configuration files of a node: one hash over all of them, and their backup."""

import hashlib
import os

from .backup import access_list, expect_no_link, expect_replaceable, place, rehearsal_of, rehearse_replace, remove_leftovers
from .protocol import failed


def _state_of_open(file):
    found = os.fstat(file.fileno())
    return file.read(), found.st_mode, found.st_uid, found.st_gid, access_list(file.fileno())


def state_of(path):
    """Content, mode, owner and access list of a file, or None."""
    try:
        with open(path, "rb") as file:
            return _state_of_open(file)
    except FileNotFoundError:
        return None


class ConfigFiles:
    def __init__(self, paths, backup):
        self.paths = paths
        self.backup = backup

    def hash(self):
        """Over paths, modes, owners, access lists and contents, in their order."""
        total = hashlib.sha256()
        for path in self.paths:
            total.update(path.encode() + b"\0")
            state = state_of(path)
            if state is not None:
                content, mode, user, group, access = state
                total.update(f"{mode:o} {user} {group}".encode() + b"\0" + content)
                total.update(b"" if access is None else b"\0" + access)
            total.update(b"\0")
        return "sha256:" + total.hexdigest()

    def expect_no_links(self):
        for path in self.paths:
            expect_no_link(path)

    def expect_restorable(self):
        """Rehearses the backup and the restore before anything is changed, for health: leaves nothing, and no program sees it. Where
        a file system has no files without a name, backup rehearses alone."""
        descriptor = rehearse_replace(self.backup.path("rehearsal"))
        if descriptor is not None:
            os.close(descriptor)
        for path in self.paths:
            expect_replaceable(path)
            descriptor = rehearse_replace(path)
            if descriptor is not None:
                with open(descriptor, "rb") as file:
                    file.seek(0)
                    if os.path.exists(path) and _state_of_open(file) != state_of(path):
                        raise failed(f"{path}: what a restore would write differs from it")

    def save(self):
        """Takes the backup, unless the files were changed since there is one. Returns the hash of what is saved."""
        self.expect_no_links()
        self._remove_leftovers()
        if self.backup.begin():
            for number, path in enumerate(self.paths):
                place(path, self.backup.path(str(number)))
                self._rehearse(number, path)
            self.backup.complete(self.hash())
        return self.backup.config_hash()

    def _rehearse(self, number, path):
        """Restores the backup of one file beside it, in the folder that restore will write to, and compares."""
        scratch = rehearsal_of(path)
        place(self.backup.path(str(number)), scratch)
        restored = state_of(scratch)
        place(None, scratch)
        if restored != state_of(path):
            raise failed(f"{path}: what its backup restores differs from it")

    def _remove_leftovers(self):
        for path in self.paths:
            remove_leftovers(path)
            remove_leftovers(rehearsal_of(path))

    def restore(self):
        self.backup.config_hash()
        self._remove_leftovers()
        for number, path in enumerate(self.paths):
            place(self.backup.path(str(number)), path)
        self.backup.forget_change()
        return self.hash()
