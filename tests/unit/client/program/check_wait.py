#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_wait.py ROCEGW_RUN: the launcher waits for a gateway that comes later, and not for longer than it is told to."""

import os
import socket
import subprocess
import sys
import tempfile

RUN = sys.argv[1]


def start(path, *arguments, **variables):
    return subprocess.Popen([RUN, "--socket", path, *arguments, "--", "true"], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **variables})


def comes_later(path, waiting):
    """The gateway begins to listen when the launcher has said that it waits."""
    said = waiting.stderr.readline()
    assert "no gateway at" in said and "waiting for" in said, said
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        server.settimeout(20)
        connection, _ = server.accept()
        connection.close()
        rest = waiting.communicate(timeout=20)[1]
    os.unlink(path)
    assert waiting.returncode == 0, rest


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "attach.sock")
        comes_later(path, start(path, "--wait", "20"))
        comes_later(path, start(path, ROCEGW_WAIT="20"))
        for arguments, said in ((("--wait", "1"), "waiting for 1 s at most"), ((), "is rocegwd running here")):
            alone = start(path, *arguments)
            text = alone.communicate(timeout=20)[1]
            assert alone.returncode == 125 and said in text and ("waiting" in text) == bool(arguments), text
        wrong = start(path, "--wait", "soon")
        assert "--wait is a number of seconds, not soon" in wrong.communicate(timeout=20)[1] and wrong.returncode == 125
    return 0


if __name__ == "__main__":
    sys.exit(main())
