# SPDX-License-Identifier: Apache-2.0
"""Configuration files of a node: one hash over all of them, and their backup."""

import hashlib
import os

from .backup import place
from .protocol import failed


def state_of(path):
    """Content, mode and owner of a file, or None."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            return file.read(), found.st_mode, found.st_uid, found.st_gid
    except FileNotFoundError:
        return None


class ConfigFiles:
    def __init__(self, paths, backup):
        self.paths = paths
        self.backup = backup

    def hash(self):
        """Over paths, modes and contents, in their order."""
        total = hashlib.sha256()
        for path in self.paths:
            total.update(path.encode() + b"\0")
            if os.path.exists(path):
                with open(path, "rb") as content:
                    total.update(f"{os.stat(path).st_mode:o}".encode() + b"\0" + content.read())
            total.update(b"\0")
        return "sha256:" + total.hexdigest()

    def save(self):
        """Takes the backup, unless the files were changed since there is one. Returns the hash of what is saved."""
        if self.backup.begin():
            for number, path in enumerate(self.paths):
                place(path, self.backup.path(str(number)))
                self._rehearse(number, path)
            self.backup.complete(self.hash())
        return self.backup.config_hash()

    def _rehearse(self, number, path):
        """Restores the backup of one file beside it, where nothing reads it, and compares."""
        scratch = self.backup.path("rehearsal")
        place(self.backup.path(str(number)), scratch)
        if state_of(scratch) != state_of(path):
            raise failed(f"{path}: what its backup restores differs from it")
        place(None, scratch)

    def restore(self):
        self.backup.config_hash()
        for number, path in enumerate(self.paths):
            place(self.backup.path(str(number)), path)
        self.backup.forget_change()
        return self.hash()
