# SPDX-License-Identifier: Apache-2.0
"""Build of another commit of this repository: its gateway, its library for programs and rocegwctl, as shipped."""

import os
import subprocess
import sys

from pieces import ROOT

FOLDER = os.path.join(ROOT, "build", "bench", "earlier")
TARGETS = ("rocegwd", "rocegwctl", "rocegw-run", "rocegw_verbs_preload")


def build_of(revision):
    """Bin folder of the build of a revision, such as HEAD~1 or a tag. It is kept in build/bench/earlier/COMMIT; what the compiler's
    cache has of the same files is not compiled again."""
    found = subprocess.run(["git", "rev-parse", "--verify", "--short=12", revision + "^{commit}"], cwd=ROOT, capture_output=True, text=True,
                           check=False)
    if found.returncode != 0:
        sys.exit(f"there is no revision '{revision}' here: {found.stderr.strip()}")
    commit = found.stdout.strip()
    tree = os.path.join(FOLDER, commit)
    log = tree + ".log"
    os.makedirs(FOLDER, exist_ok=True)
    subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
    with open(log, "w", encoding="utf-8") as file:
        commands = [] if os.path.isdir(tree) else [(ROOT, ["git", "worktree", "add", "--detach", tree, commit])]
        commands += [(tree, ["cmake", "--preset", "package"]),
                     (tree, ["cmake", "--build", os.path.join("build", "package"), "--target", *TARGETS])]
        print(f"building {revision} ({commit}; log: {os.path.relpath(log, ROOT)})", flush=True)
        for folder, command in commands:
            if subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                sys.exit(f"the build of {commit} failed: {' '.join(command)}; the whole log is {log}")
    return os.path.join(tree, "build", "package", "bin")
