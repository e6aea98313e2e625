# SPDX-License-Identifier: Apache-2.0
"""Backup of a node's configuration: files and marks below one folder, each replaced in one step."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import struct
import sys
import tempfile

from .protocol import failed

FS_IOC_GETFLAGS, FS_IMMUTABLE, FS_APPEND = 0x80086601, 0x10, 0x20  # linux/fs.h
ACCESS_LIST = "system.posix_acl_access"
NO_ATTRIBUTE = (errno.ENODATA, errno.ENOTSUP)  # the file, or its file system, has none


def expect_no_link(path):
    """Fails for a symbolic link: replacing it would leave the file that it names as it was."""
    if os.path.islink(path):
        raise failed(f"{path} is a symbolic link: name the file itself")


def _folder_of(path):
    """The nearest folder that is there, in which a file and its missing folders will be made."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def expect_replaceable(path):
    """Fails where replace() could not put a file in the place of this one, or remove it, although its folder may be written."""
    expect_no_link(path)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        # proc(5): the fifth field is the mount point, with blanks as octal numbers.
        points = {re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), line.split()[4]) for line in mounts}
    if os.path.realpath(path) in points:
        raise failed(f"{path} is a mount point: it cannot be replaced")
    flags = bytearray(struct.calcsize("l"))
    try:
        with open(path, "rb") as file:
            fcntl.ioctl(file, FS_IOC_GETFLAGS, flags)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    if int.from_bytes(flags[:4], sys.byteorder) & (FS_IMMUTABLE | FS_APPEND):
        raise failed(f"{path} has the attribute immutable or append-only (chattr): it cannot be replaced")


def rehearse_replace(path):
    """Writes the content, the owner, the mode and the access list of a file where replace() will write them, into a file without a
    name: no other program finds it, and nothing is left. Returns its descriptor, or None where the file system has no such files."""
    try:
        descriptor = os.open(_folder_of(path), os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR):
            return None
        raise failed(f"{path} could not be restored: {error.strerror}") from error
    try:
        if os.path.exists(path):
            with open(path, "rb") as source:
                with open(descriptor, "wb", closefd=False) as file:
                    shutil.copyfileobj(source, file)
                _give(descriptor, source.fileno())
    except OSError as error:
        os.close(descriptor)
        raise failed(f"{path} could not be restored: {error.strerror}") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sync_folder(path):
    """Makes what was created, renamed or removed in a folder outlive a loss of power."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def access_list(file):
    """Access list of a file beyond its mode, or None."""
    try:
        return os.getxattr(file, ACCESS_LIST)
    except OSError as error:
        if error.errno not in NO_ATTRIBUTE:
            raise
        return None


def _attributes(file):
    try:
        return os.listxattr(file)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []


def _give(target, source):
    """Gives an open file the owner, the mode and the further attributes (access lists) of another one. The filter of the agent's
    unit ends a process that changes an owner, hence only where the owners differ."""
    own, found = os.fstat(target), os.fstat(source)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(target, found.st_uid, found.st_gid)
    names = _attributes(source)
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            # Others are such as those of a security module, which has its own for new files.
            if name == ACCESS_LIST:
                raise failed(f"the access list of a file cannot be kept: {error.strerror}") from error
    # A folder may give new files an access list.
    if ACCESS_LIST not in names and access_list(target) is not None:
        os.removexattr(target, ACCESS_LIST)
    os.fchmod(target, stat.S_IMODE(found.st_mode))


def _prefix(path):
    """Names of fresh files begin with a dot: programs that read all files of a folder do not read them."""
    return f".rocegw-{os.path.basename(path)}-"


def rehearsal_of(path):
    """Name of the file that a backup is restored to on trial."""
    return os.path.join(os.path.dirname(path), _prefix(path) + "rehearse")


def remove_leftovers(path):
    """Removes fresh files of an adapter that was killed before they replaced the file."""
    folder = os.path.dirname(path)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for name in names:
        if re.fullmatch(re.escape(_prefix(path)) + "[a-z0-9_]{8}", name):
            with contextlib.suppress(OSError):
                os.remove(os.path.join(folder, name))


def replace(path, like, content=None):
    """Replaces a file, so that a reader sees the old content or the new one. `like`: a file whose owner and mode it gets, and
    whose content where no other is given. The fresh file is one that did not exist before, so that nobody who may write to the
    folder leads the write to another file."""
    expect_no_link(path)
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with open(like, "rb") as source:
        descriptor, fresh = tempfile.mkstemp(prefix=_prefix(path), dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(source.read() if content is None else content)
                file.flush()
                _give(file.fileno(), source.fileno())
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(fresh)
            raise
    sync_folder(folder)


def place(source, path):
    """Replaces a file by a copy of another one; without a source it is removed. The owner and the mode are those of the source: a
    daemon that gave up root still reads its configuration."""
    if source is not None and os.path.exists(source):
        replace(path, source)
    elif os.path.lexists(path):
        expect_no_link(path)
        os.remove(path)
        sync_folder(os.path.dirname(path))


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
        sync_folder(os.path.dirname(self.folder))
        return True

    def write(self, name, text):
        fresh = self.path(name + ".new")
        with open(fresh, "w", encoding="utf-8") as mark:
            mark.write(text + "\n")
            mark.flush()
            os.fsync(mark.fileno())
        os.replace(fresh, self.path(name))
        sync_folder(self.folder)

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
            sync_folder(self.folder)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
