# SPDX-License-Identifier: Apache-2.0
"""Finds folders that hold too many files for a reader to keep apart."""

import collections
import os
import re

MOST = 28
# Folders of data: lists of alike files, one of which is read at a time.
LISTS = re.compile(r"(^|/)(corpus|golden|states|recorded(_\w+)?|runbooks)(/|$)")


def full_folders(names):
    """Yields folder and number of files for each folder that holds more than MOST files directly."""
    folders = collections.Counter(os.path.dirname(name) for name in names)
    for folder, count in sorted(folders.items()):
        if count > MOST and not LISTS.search(folder):
            yield folder or ".", count
