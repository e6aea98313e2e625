#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Adapter "exec": hands each request to a program of the site, which speaks the protocol of adapters itself, and its answer back
(docs/operate/migration_adapters.md). The program of a cluster is named in CLUSTER.json below /etc/rocegw/migration, or below
ROCEGW_EXEC_DIR: {"program": ["/usr/lib/site/adapter", "ARGUMENT"]}."""

import json
import os
import stat
import subprocess
import sys

from rocegw_adapter.protocol import Description, Problem, failed, inconclusive, run_bounded

DESCRIPTIONS = os.environ.get("ROCEGW_EXEC_DIR", "/etc/rocegw/migration")
LONGEST_SECONDS = 120  # of a request that names no deadline


class Cluster(Description):
    """A cluster whose description names nothing but a program."""

    def __init__(self, name):
        super().__init__(DESCRIPTIONS, name, {"program"}, (), (), has_nodes=False)
        self.program = self.text.get("program")
        if not isinstance(self.program, list) or not self.program or not all(isinstance(word, str) for word in self.program):
            raise failed(f"{self.path}: program is no list of words")
        self._expect_trusted(self.program[0])

    def _expect_trusted(self, path):
        """The rules of the agent for adapters: no other user than root and the agent's may change the program."""
        if not os.path.isabs(path):
            raise failed(f"{self.path}: {path} is no absolute path")
        try:
            states = [os.stat(path), os.stat(os.path.dirname(path))]
        except OSError as error:
            raise failed(f"{path}: {error.strerror}") from error
        if not stat.S_ISREG(states[0].st_mode) or not os.access(path, os.X_OK):
            raise failed(f"{path} is no program")
        for state in states:
            if state.st_uid not in (0, os.geteuid()) or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise failed(f"{path} can be changed by other users: it is not run")


def ask(line, request):
    """Line that the program of the request's cluster answers with."""
    cluster = Cluster(str(request.get("cluster", "")))
    with os.fdopen(os.memfd_create("request"), "r+b") as given:
        given.write(line.encode())
        given.seek(0)
        status, output, error = run_bounded(cluster.program, None, given, int(request.get("deadline_seconds", LONGEST_SECONDS)))
    sys.stderr.buffer.write(error[-4096:])
    if status != 0:
        raise inconclusive(f"{cluster.program[0]}: exit status {status}")
    answered = json.loads(output)
    if not isinstance(answered, dict) or output.count(b"\n") != 1 or not output.endswith(b"\n"):
        raise inconclusive(f"{cluster.program[0]}: its answer is no single line with an object")
    # The inventory names the adapter that agents call.
    return {**answered, "adapter": "exec"} if request.get("call") in ("hello", "inventory") and "outcome" not in answered else answered


def main():
    line = sys.stdin.readline()
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        print("no request: not an object in JSON", file=sys.stderr)
        return 1
    try:
        answered = ask(line, request)
    except Problem as problem:
        answered = {"protocol": 1, "id": request.get("id", ""), "outcome": problem.outcome, "text": str(problem)}
    except subprocess.TimeoutExpired:
        answered = {"protocol": 1, "id": request.get("id", ""), "outcome": "failed", "text": "the program did not end in time"}
    except (OSError, ValueError) as error:
        answered = {"protocol": 1, "id": request.get("id", ""), "outcome": "inconclusive", "text": f"{type(error).__name__}: {error}"}
    print(json.dumps(answered))
    return 0


if __name__ == "__main__":
    sys.exit(main())
