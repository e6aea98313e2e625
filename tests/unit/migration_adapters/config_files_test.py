#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Backup of configuration files: what it restores, and its rehearsal."""

import errno
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import backup, config_files  # noqa: E402
from rocegw_adapter.backup import Backup, place  # noqa: E402
from rocegw_adapter.config_files import ConfigFiles  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402

OTHER_GROUP = 1  # daemon
# linux/posix_acl_xattr.h: version 2, then tag, permissions and id of the owner, one more user, the group, the mask, and others.
ACCESS_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry) for entry in ((1, 6, 0xffffffff), (2, 4, 1), (4, 4, 0xffffffff), (16, 4, 0xffffffff), (32, 0, 0xffffffff)))


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-config-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.there, self.absent = self.path("there.conf"), self.path("absent.conf")
        self.write(self.there, "before\n")
        os.chmod(self.there, 0o640)
        if os.geteuid() == 0:
            os.chown(self.there, 0, OTHER_GROUP)
        self.backup = Backup(self.path("state"), "tcp gateway")
        self.files = ConfigFiles([self.there, self.absent], self.backup)

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_restore_brings_back_content_mode_and_owner(self):
        saved = self.files.save()
        before = config_files.state_of(self.there)
        self.backup.mark_changed()
        self.write(self.path("new"), "after\n")
        for path in (self.there, self.absent):
            place(self.path("new"), path)
        self.assertNotEqual(self.files.hash(), saved)
        self.assertEqual(self.files.restore(), saved)
        self.assertEqual(config_files.state_of(self.there), before)
        self.assertFalse(os.path.exists(self.absent))

    def test_a_group_that_reads_a_file_still_reads_it(self):
        """ceph.conf with root:ceph and 0640, for one: the daemon would not start again."""
        place(self.there, self.path("copy"))
        found = os.stat(self.path("copy"))
        self.assertEqual((stat.S_IMODE(found.st_mode), found.st_gid), (0o640, os.stat(self.there).st_gid))

    def test_health_rehearses_and_leaves_nothing(self):
        before = config_files.state_of(self.there), sorted(os.listdir(self.folder)), os.stat(self.folder).st_mtime_ns
        self.files.expect_restorable()
        self.assertEqual((config_files.state_of(self.there), sorted(os.listdir(self.folder)), os.stat(self.folder).st_mtime_ns), before)

    def test_what_a_restore_could_not_write_is_found_by_health(self):
        """A read-only file system, one that is full, an owner that may not be given."""
        for patched, number in (("open", errno.EROFS), ("fchmod", errno.EPERM)):
            with self.subTest(patched), mock.patch.object(backup.os, patched, side_effect=OSError(number, os.strerror(number))), \
                    self.assertRaisesRegex(Problem, "could not be restored: " + os.strerror(number)):
                self.files.expect_restorable()

    def test_what_a_restore_writes_wrongly_is_found_by_health(self):
        with mock.patch.object(backup.os, "fchmod", lambda *_: None), self.assertRaisesRegex(Problem, "differs from it"):
            self.files.expect_restorable()

    def test_a_file_system_without_nameless_files_leaves_the_rehearsal_to_backup(self):
        with mock.patch.object(backup.os, "open", side_effect=OSError(errno.EOPNOTSUPP, "")):
            self.files.expect_restorable()

    def test_a_mount_point_cannot_be_replaced(self):
        """A file of a container that is bound to one of the host: rename(2) says EBUSY, and the folder may be written."""
        if os.geteuid() != 0:  # mounts need root
            return
        self.write(self.path("other file"), "text")
        os.rename(self.there, self.path("there file"))
        files = ConfigFiles([self.path("there file")], self.backup)
        files.expect_restorable()
        subprocess.run(["mount", "--bind", self.path("other file"), self.path("there file")], check=True)
        try:
            with self.assertRaisesRegex(Problem, "is a mount point"):
                files.expect_restorable()
            with self.assertRaises(OSError):
                place(self.path("other file"), self.path("there file"))
        finally:
            subprocess.run(["umount", self.path("there file")], check=True)

    def test_an_immutable_file_cannot_be_replaced(self):
        def immutable(_, request, flags):
            self.assertEqual(request, backup.FS_IOC_GETFLAGS)
            flags[0] = backup.FS_IMMUTABLE

        with mock.patch.object(backup.fcntl, "ioctl", immutable), self.assertRaisesRegex(Problem, "immutable"):
            self.files.expect_restorable()

    def test_the_rehearsal_is_where_restore_will_write_and_leaves_nothing(self):
        written = []

        def watched(source, path):
            place(source, path)
            written.append(path)

        with mock.patch.object(config_files, "place", watched):
            self.files.save()
        self.assertIn(self.folder, {os.path.dirname(path) for path in written})
        self.assertEqual(sorted(os.listdir(self.path("state"))), ["0", "complete"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["state", "there.conf"])

    def test_a_symbolic_link_is_refused_and_stays(self):
        """/etc/ceph/ceph.conf of some distributions: the replaced link would leave the file of the cluster as it was."""
        other = self.path("elsewhere.conf")
        os.rename(self.there, other)
        os.symlink(other, self.there)
        for change in (self.files.expect_no_links, self.files.save, lambda: place(other, self.there), lambda: place(None, self.there)):
            with self.assertRaisesRegex(Problem, "is a symbolic link"):
                change()
        self.assertTrue(os.path.islink(self.there))

    def test_a_link_in_the_place_of_the_fresh_file_leads_nowhere(self):
        """Whoever may write to the folder knows the names that were used before."""
        victim = self.path("victim")
        self.write(victim, "untouched\n")
        for ending in (".rocegw-new", ".rocegw-source"):
            os.symlink(victim, self.absent + ending)
        place(self.there, self.absent)
        with open(victim, encoding="utf-8") as file:
            self.assertEqual(file.read(), "untouched\n")

    def test_what_cannot_be_replaced_leaves_nothing_behind(self):
        with mock.patch.object(backup.os, "replace", side_effect=OSError("no space")), self.assertRaises(OSError):
            place(self.there, self.absent)
        self.assertEqual(os.listdir(self.folder), ["there.conf"])

    def test_what_an_ended_adapter_left_is_removed_and_read_by_nobody(self):
        class Killed(BaseException):
            pass

        def kill(*_):
            raise Killed

        with mock.patch.object(backup.os, "replace", kill), mock.patch.object(backup.os, "remove", kill), self.assertRaises(Killed):
            place(self.there, self.absent)
        left = set(os.listdir(self.folder)) - {"there.conf"}
        self.assertEqual([name[0] for name in left], ["."])
        other = ".rocegw-absent.conf-of-another-12345678"
        self.write(self.path(other), "")
        self.files.save()
        self.assertEqual(set(os.listdir(self.folder)), {"there.conf", "state", other})
        self.write(self.path(left.pop()), "")
        self.files.restore()
        self.assertEqual(set(os.listdir(self.folder)), {"there.conf", "state", other})

    def test_an_access_list_is_restored_and_counts_in_the_hash(self):
        before = self.files.hash()
        try:
            os.setxattr(self.there, "system.posix_acl_access", ACCESS_LIST)
        except OSError as error:
            self.skipTest(f"no access lists here: {error}")
        saved = self.files.save()
        self.assertNotEqual(saved, before)
        self.backup.mark_changed()
        os.removexattr(self.there, "system.posix_acl_access")
        self.assertNotEqual(self.files.hash(), saved)
        self.assertEqual(self.files.restore(), saved)
        self.assertEqual(os.getxattr(self.there, "system.posix_acl_access"), ACCESS_LIST)

    def test_an_access_list_that_cannot_be_kept_is_an_error(self):
        with mock.patch.object(backup.os, "listxattr", lambda _: ["system.posix_acl_access", "security.selinux"]), \
                mock.patch.object(backup.os, "getxattr", lambda *_: ACCESS_LIST), \
                mock.patch.object(backup.os, "setxattr", side_effect=OSError(errno.ENOTSUP, "not supported")), \
                self.assertRaisesRegex(Problem, "access list"):
            place(self.there, self.absent)
        self.assertEqual(os.listdir(self.folder), ["there.conf"])

    def test_a_file_system_without_attributes_is_no_error(self):
        refused = OSError(errno.ENOTSUP, "not supported")
        with mock.patch.object(backup.os, "listxattr", side_effect=refused), mock.patch.object(backup.os, "getxattr", side_effect=refused):
            self.files.save()
            place(self.there, self.absent)
        self.assertTrue(os.path.exists(self.absent))

    def test_the_folder_is_written_to_the_disk_after_each_change_in_it(self):
        synced = []
        with mock.patch.object(backup, "sync_folder", synced.append):
            place(self.there, self.absent)
            place(None, self.absent)
            self.assertEqual(synced, [self.folder, self.folder])
            place(None, self.absent)
            self.assertEqual(len(synced), 2)
            self.backup.begin()
            self.backup.write("complete", "x")
            self.backup.mark_changed()
            self.backup.forget_change()
        self.assertEqual(synced[2:], [self.folder, *[self.path("state")] * 3])

    def test_the_owner_counts_in_the_hash(self):
        if os.geteuid() != 0:
            self.skipTest("only root changes owners")
        before = self.files.hash()
        os.chown(self.there, 0, 0)
        self.assertNotEqual(self.files.hash(), before)

    def test_a_backup_that_restores_something_else_is_none(self):
        def broken(source, path):
            place(source, path)
            if path == self.backup.path("0"):
                self.write(path, "bef")

        with mock.patch.object(config_files, "place", broken), self.assertRaisesRegex(Problem, "differs from it"):
            self.files.save()
        with self.assertRaisesRegex(Problem, "there is no backup"):
            self.backup.config_hash()


if __name__ == "__main__":
    unittest.main()
