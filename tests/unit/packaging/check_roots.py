#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_roots.py TREE: the content of every image can be laid over Debian's base image, in which /lib and /lib64 are links, and a
program in it finds its loader and its libraries there. Of a build that has stand-ins for the programs."""

import os
import shutil
import subprocess
import sys
import tempfile

TREE = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(TREE, "tests/support"))

from netlab.debian_base import lay_over_debian  # noqa: E402

PROGRAMS = ("rocegwd", "rocegw-agent", "rocegw-controller", "rocegwctl", "rocegw-probe", "rocegw-run")
LIBRARIES = ("librocegw-verbs.so", "librocegw-engine.so")


def make_build(build):
    for folder in ("bin", "lib/rocegw-drop-in"):
        os.makedirs(os.path.join(build, folder))
    for name in PROGRAMS:
        shutil.copy(shutil.which("true"), os.path.join(build, "bin", name))
    for name in (*LIBRARIES, "rocegw-drop-in/libibverbs.so.1"):
        with open(os.path.join(build, "lib", name), "w", encoding="ascii") as file:
            file.write("library")


def check_image(folder, image, build):
    content, root = os.path.join(folder, image), os.path.join(folder, f"{image}-on-debian")
    subprocess.run([os.path.join(TREE, "packaging/images/make_root.py"), image, build, content], check=True)
    assert not os.path.lexists(os.path.join(content, "lib")) and not os.path.lexists(os.path.join(content, "lib64")), image
    lay_over_debian(content, root)
    programs = [os.path.join(root, "usr/bin", name) for name in PROGRAMS if os.path.exists(os.path.join(root, "usr/bin", name))]
    assert bool(programs) == (image != "client"), f"{image}: {programs}"
    for program in programs:
        # Without a namespace of its own: the paths of the loader and the C library, in that root.
        listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        for path in [word for word in listed.split() if word.startswith("/")]:
            inside = os.path.join(root, os.path.relpath(os.path.realpath(os.path.dirname(path)), "/"), os.path.basename(path))
            assert os.path.exists(inside), f"{image}: no {path} for {program}"
    print(f"pass {image}")


def check_ignored():
    """What a local build leaves in the tree does not come along."""
    with open(os.path.join(TREE, ".dockerignore"), encoding="utf-8") as file:
        lines = file.read().split()
    for wanted in ("build", "**/CMakeCache.txt"):
        assert wanted in lines, f".dockerignore lacks {wanted}"
    print("pass .dockerignore")


def main():
    check_ignored()
    with tempfile.TemporaryDirectory() as folder:
        build = os.path.join(folder, "build")
        make_build(build)
        for image in ("gateway", "agent", "controller", "daemons", "client"):
            check_image(folder, image, build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
