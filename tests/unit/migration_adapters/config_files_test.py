#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Backup of configuration files: what it restores, and its rehearsal."""

import os
import shutil
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import config_files  # noqa: E402
from rocegw_adapter.backup import Backup, place  # noqa: E402
from rocegw_adapter.config_files import ConfigFiles  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402

OTHER_GROUP = 1  # daemon


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

    def test_the_rehearsal_leaves_nothing(self):
        self.files.save()
        self.assertEqual(sorted(os.listdir(self.path("state"))), ["0", "complete"])

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
