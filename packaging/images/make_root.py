#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the root directory of an image from a build: its programs and the libraries that they need of this machine, no more.
The Dockerfile beside this puts them on Debian's; runc runs them as they are.
Usage: make-root IMAGE BUILD DIRECTORY [PROGRAM...]

IMAGE is gateway, agent, controller, daemons (all three, as the chart wants them) or client (what a program's own image needs:
rocegw-run and the libraries, in /opt/rocegw). BUILD is the folder that has bin and lib. PROGRAMs of this machine come along, with
their libraries."""

import os
import re
import shutil
import subprocess
import sys

# What agents start for connectivity tests; the library is also what their device plugin gives to containers.
PROBE = ["rocegw-probe", "rocegw-run"]
LIBRARY = "librocegw-verbs.so"
PROGRAMS: dict[str, list[str]] = {"gateway": ["rocegwd", "rocegwctl"], "agent": ["rocegw-agent", "rocegwctl", *PROBE],
                                  "controller": ["rocegw-controller", "rocegwctl"],
                                  "daemons": ["rocegwd", "rocegw-agent", "rocegw-controller", "rocegwctl", *PROBE], "client": []}
# 65532 is who needs no privilege: the controller.
PASSWD = "root:x:0:0:root:/root:/sbin/nologin\nrocegw:x:65532:65532:rocegw:/nonexistent:/sbin/nologin\n"
GROUP = "root:x:0:\nrocegw:x:65532:\n"


def libraries_of(program):
    """Paths of the libraries as the loader will look for them; none for a program that is linked statically."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    missing = re.findall(r"^\s*(\S+) => not found", listed, re.M)
    if missing:
        sys.exit(f"make-root: {program} needs {', '.join(missing)}, which this machine does not have")
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed, re.M)


def put(source, root, target):
    """Copies a file to where the target's folder really is: /lib is a link to /usr/lib in Debian, and a folder of that name in a
    root cannot be laid over a link of the base image."""
    path = root + os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(source, path)


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in PROGRAMS:
        sys.exit(__doc__)
    image, build, root, *others = sys.argv[1:]
    root = os.path.abspath(root)
    programs = [(os.path.join(build, "bin", name), f"/usr/bin/{name}") for name in PROGRAMS[image]]
    for name in others:
        path = shutil.which(name)
        if path is None:
            sys.exit(f"make-root: no program {name} here")
        programs.append((path, path))
    libraries = set()
    for source, target in programs:
        put(source, root, target)
        libraries.update(libraries_of(source))
    for library in [path for path in libraries if os.path.basename(path) == "libc.so.6"]:
        # The C library opens it when a thread ends early.
        libraries.add(os.path.join(os.path.dirname(library), "libgcc_s.so.1"))
    for library in libraries:
        put(library, root, library)
    if image == "client":
        put(os.path.join(build, "bin/rocegw-run"), root, "/opt/rocegw/bin/rocegw-run")
        for library in (LIBRARY, "librocegw-engine.so"):
            put(os.path.join(build, "lib", library), root, f"/opt/rocegw/lib/{library}")
        shutil.copytree(os.path.join(build, "lib/rocegw-drop-in"), os.path.join(root, "opt/rocegw/lib/rocegw-drop-in"),
                        symlinks=True, dirs_exist_ok=True)
    else:
        if "rocegw-run" in PROGRAMS[image]:
            put(os.path.join(build, "lib", LIBRARY), root, f"/usr/lib/{LIBRARY}")
        for name, text in (("passwd", PASSWD), ("group", GROUP)):
            os.makedirs(os.path.join(root, "etc"), exist_ok=True)
            with open(os.path.join(root, "etc", name), "w", encoding="utf-8") as file:
                file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
