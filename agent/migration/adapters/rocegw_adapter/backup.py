# SPDX-License-Identifier: Apache-2.0
"""Backup of a node's configuration: files and marks below one folder, each replaced in one step."""

import contextlib
import os
import shutil
import stat

from .protocol import failed


def give(path, found):
    """Gives a file the owner and the mode that another one has. The filter of the agent's unit ends a process that changes
    an owner, hence only where the owners differ."""
    own = os.stat(path)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        os.chown(path, found.st_uid, found.st_gid)
    os.chmod(path, stat.S_IMODE(found.st_mode))


def place(source, path):
    """Replaces a file, so that a reader sees the old content or the new one; without a source it is removed. The owner and the
    mode are those of the source: a daemon that gave up root still reads its configuration."""
    if source is None or not os.path.exists(source):
        if os.path.exists(path):
            os.remove(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fresh = path + ".rocegw-new"
    shutil.copy2(source, fresh)
    give(fresh, os.stat(source))
    with open(fresh, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(fresh, path)


class Backup:
    """A backup that was taken before a change stays until that change was brought back; one of an earlier migration is
    replaced. `change`: what the marks say, "tcp gateway"."""

    def __init__(self, folder, change):
        self.folder = folder
        self.change = change

    def path(self, name):
        return os.path.join(self.folder, name)

    def begin(self):
        """Empties the folder. Returns False if the configuration was changed since the backup: that backup stays."""
        if self.read("switched") == self.change:
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, mode=0o700)
        return True

    def write(self, name, text):
        fresh = self.path(name + ".new")
        with open(fresh, "w", encoding="utf-8") as mark:
            mark.write(text + "\n")
            mark.flush()
            os.fsync(mark.fileno())
        os.replace(fresh, self.path(name))

    def read(self, name):
        """Text of a mark, or None."""
        try:
            with open(self.path(name), encoding="utf-8") as mark:
                return mark.read().rstrip("\n")
        except OSError:
            return None

    def complete(self, config_hash):
        self.write("complete", config_hash)

    def config_hash(self):
        text = self.read("complete")
        if text is None:
            raise failed("there is no backup")
        return text

    def mark_changed(self):
        self.config_hash()
        self.write("switched", self.change)

    def forget_change(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path("switched"))

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
