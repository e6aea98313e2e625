# SPDX-License-Identifier: Apache-2.0
"""Time that threads ran and time that they waited for a core, of the kernel's scheduler (/proc/PID/task/TID/schedstat)."""

import glob
import os


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the thread has ended
        return b""


def threads_of(pid, name=""):
    """{thread: (ns run, ns waited)} of a process's threads whose names begin with name."""
    found = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        fields = _read(f"{task}/schedstat").split()
        if len(fields) >= 2 and _read(f"{task}/comm").decode().startswith(name):
            found[task] = (int(fields[0]), int(fields[1]))
    return found


def processes_with(*words):
    """Numbers of the processes whose command lines have all these words."""
    wanted = {word.encode() for word in words}
    return [int(os.path.basename(path)) for path in glob.glob("/proc/[0-9]*")
            if wanted <= set(_read(f"{path}/cmdline").split(b"\0"))]


def spent(before, after):
    """(seconds run, seconds waited) between two samples; a thread that is new counts from its start."""
    run = sum(ns - before.get(task, (0, 0))[0] for task, (ns, _) in after.items())
    wait = sum(ns - before.get(task, (0, 0))[1] for task, (_, ns) in after.items())
    return run * 1e-9, wait * 1e-9
