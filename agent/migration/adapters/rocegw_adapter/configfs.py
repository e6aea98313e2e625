# SPDX-License-Identifier: Apache-2.0
"""Folders, links and attributes of the kernel's configfs, in which Linux's targets are configured. Links carry whole paths: the
kernel looks for a relative one from the folder of the process."""

import os


def read(*parts):
    with open(os.path.join(*parts), encoding="ascii") as file:
        return file.read().strip("\0\n ")


def write(text, *parts):
    with open(os.path.join(*parts), "w", encoding="ascii") as file:
        file.write(text)


def children(*parts):
    folder = os.path.join(*parts)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def make(*parts):
    """Makes a folder unless it is there: a call that comes again finds what the first one made."""
    folder = os.path.join(*parts)
    if not os.path.isdir(folder):
        os.mkdir(folder)
    return folder


def remove(*parts):
    folder = os.path.join(*parts)
    if os.path.isdir(folder):
        os.rmdir(folder)


def link(source, folder, name):
    """Links to the source unless the folder has a link already."""
    if not any(os.path.islink(os.path.join(folder, other)) for other in children(folder)):
        os.symlink(source, os.path.join(folder, name))


def links(folder):
    """What the links of a folder lead to."""
    found = [os.path.join(folder, name) for name in children(folder)]
    return [os.path.realpath(link) for link in found if os.path.islink(link)]


def unlink_all(folder):
    for name in children(folder):
        if os.path.islink(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))
