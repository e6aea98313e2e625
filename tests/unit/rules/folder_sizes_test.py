#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Folders that scripts/check-rules calls too full."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from folder_sizes import MOST, full_folders  # noqa: E402


def files(folder, count):
    return [os.path.join(folder, f"file_{number}.cc") for number in range(count)]


class FullFolders(unittest.TestCase):
    def test_as_many_as_allowed(self):
        self.assertEqual(list(full_folders(files("gateway/port", MOST))), [])

    def test_one_too_many(self):
        self.assertEqual(list(full_folders(files("gateway/port", MOST + 1))), [("gateway/port", MOST + 1)])

    def test_files_of_sub_folders_do_not_count(self):
        self.assertEqual(list(full_folders(files("gateway/port", MOST) + files("gateway/port/udp", MOST))), [])

    def test_top_folder(self):
        self.assertEqual(list(full_folders(files("", MOST + 1))), [(".", MOST + 1)])

    def test_data_may_be_many(self):
        for folder in ("tests/fuzz/corpus/wire", "tests/unit/cli/golden", "tests/unit/hand_over/states",
                       "tests/unit/migration_adapters/recorded_ceph", "docs/operate/runbooks"):
            self.assertEqual(list(full_folders(files(folder, MOST + 1))), [], folder)

    def test_a_name_that_only_resembles_data_does_not_excuse(self):
        for folder in ("gateway/session/state", "tests/golden_frames", "agent/recorder"):
            self.assertEqual(len(list(full_folders(files(folder, MOST + 1)))), 1, folder)


if __name__ == "__main__":
    unittest.main()
