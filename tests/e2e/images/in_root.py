#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands for a program of a build: runs it with runc in the root directory of its image, which is read-only, without any
capability, as the pods of the chart do. Called under the program's name, in the folder of a laboratory (run, beside this): images.json
there says which image a program is of, what else is there it may see."""

import json
import os
import sys
import tempfile

# Who is not root in the chart. rocegwctl is asked in the controller's pod.
USERS = {"rocegw-controller": 65532, "rocegwctl": 65532}


def main():
    name = os.path.basename(sys.argv[0])
    laboratory = os.environ["ROCEGW_TEST_LAB"]
    with open(os.path.join(laboratory, "images.json"), encoding="utf-8") as file:
        root = os.path.join(laboratory, "roots", json.load(file)[name])
    user = USERS.get(name, 0)
    program = "/opt/rocegw/bin/rocegw-run" if name == "rocegw-run" else f"/usr/bin/{name}"
    kept = ("NOTIFY_SOCKET", "ROCEGW_SOCKET")
    mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
              {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
              {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance"]},
              {"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]},
              {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
              {"destination": laboratory, "type": "bind", "source": laboratory, "options": ["rbind"]}]
    config = {"ociVersion": "1.0.2", "root": {"path": root, "readonly": True}, "mounts": mounts,
              "process": {"terminal": False, "user": {"uid": user, "gid": user}, "cwd": "/", "args": [program, *sys.argv[1:]],
                          "env": ["PATH=/usr/bin:/bin", *(f"{key}={os.environ[key]}" for key in kept if key in os.environ)],
                          "capabilities": {}, "noNewPrivileges": True,
                          "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 4096, "hard": 4096}]},
              # The host's network and processes, as hostNetwork and hostPID.
              "linux": {"namespaces": [{"type": kind} for kind in ("ipc", "uts", "mount")]}}
    bundle = tempfile.mkdtemp(prefix=f"{name}-", dir=os.path.join(laboratory, "bundles"))
    with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    # ip netns exec hides the control groups, without which runc does not begin: back to where the laboratory sees them.
    runc = ["nsenter", f"--mount=/proc/{os.environ['ROCEGW_TEST_MOUNTS_OF']}/ns/mnt", "--",
            "runc", "--root", os.path.join(laboratory, "runc"), "run", "-b", bundle, os.path.basename(bundle)]
    os.execvp(runc[0], runc)


if __name__ == "__main__":
    sys.exit(main())
