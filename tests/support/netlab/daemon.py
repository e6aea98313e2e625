# SPDX-License-Identifier: Apache-2.0
"""Starting a daemon as a service manager does: it is there when it says so (sd_notify)."""

import os
import socket

from .job import LabError


def start_daemon(lab, command, directory, title, namespace, timeout=60):
    """The running job. LabError with its output when it ends, or says nothing in time."""
    path = os.path.join(directory, f"{title.replace(' ', '-')}.notify")
    if os.path.exists(path):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        os.chmod(path, 0o666)  # whatever the daemon's user is
        notify.settimeout(0.2)
        job = lab.start(command, title=title, namespace=namespace, environment={"NOTIFY_SOCKET": path})
        for _ in range(int(timeout / 0.2)):
            try:
                if b"READY=1" in notify.recv(4096):
                    return job
            except TimeoutError:
                pass
            if not job.running:
                break
    raise LabError(f"{title} is not ready (status {job.returncode}):\n{job.output}")


def start_gateway_daemon(lab, command, directory, title, namespace, timeout=60):
    """The same for rocegwd, with a processor share ten times that of other sessions, as CPUWeight of its service has it: else
    the scheduler lets a runnable worker wait for most of a second beside busy programs (docs/develop/threading.md)."""
    job = start_daemon(lab, command, directory, title, namespace, timeout)
    try:
        with open(f"/proc/{job.pid}/autogroup", "w", encoding="ascii") as file:
            file.write("-10")
    except OSError:
        pass  # a kernel without autogroups divides time among threads
    return job
