# SPDX-License-Identifier: Apache-2.0
"""An image's content laid over the folders and links of debian:12-slim, as BuildKit does for COPY --from=build /images/X /."""

import os
import shutil

# Of debian:12-slim: links to folders, and the loader's link.
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run", "var/lock": "/run/lock",
         "usr/lib64/ld-linux-x86-64.so.2": "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"}
FOLDERS = ("usr/bin", "usr/sbin", "usr/lib/x86_64-linux-gnu", "usr/lib64", "etc", "run", "tmp", "var")


class LayoutError(Exception):
    pass


def lay_over_debian(content, root):
    """Makes root: the base's folders and links, and the content over them. A folder of the content where the base has a link or a
    file is an error, as in BuildKit; a file takes the place of a file or a link."""
    for folder in FOLDERS:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for link, target in LINKS.items():
        os.symlink(target, os.path.join(root, link))
    for above, folders, files in os.walk(content):
        place = os.path.join(root, os.path.relpath(above, content))
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        for name in set(folders) - set(links):
            path = os.path.join(place, name)
            if os.path.islink(path) or os.path.isfile(path):
                raise LayoutError(f"cannot copy to non-directory: {os.path.relpath(path, root)}")
            os.makedirs(path, exist_ok=True)
        for name in (*files, *links):
            path = os.path.join(place, name)
            if os.path.isdir(path) and not os.path.islink(path):
                raise LayoutError(f"cannot replace the directory {os.path.relpath(path, root)} with a file")
            if os.path.lexists(path):
                os.remove(path)
            shutil.copy2(os.path.join(above, name), path, follow_symlinks=False)
