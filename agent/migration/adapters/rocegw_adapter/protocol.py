# SPDX-License-Identifier: Apache-2.0
"""Protocol of migration adapters, version 1 (docs/operate/migration_adapters.md): reads one request line, writes one answer
line. Standard library only, since hosts of storage systems have no other."""

import json
import os
import selectors
import subprocess
import sys
import time

TRANSPORTS = ("tcp", "gateway", "rnic")
DUAL_PATH_CALLS = ("health", "ok-to-stop", "backup", "add-path", "verify-path", "switch", "drain", "verify", "remove-old",
                   "switch-back", "drain-new", "remove-new", "restore", "verify-old")
RESTART_CALLS = ("health", "ok-to-stop", "backup", "cordon", "drain", "stop", "switch", "start", "rejoin", "verify", "uncordon",
                 "restore", "verify-old", "remove-old")
NOT_YET = 75  # exit status of a site's command: EX_TEMPFAIL
LONGEST_OUTPUT = 4 << 20


class Problem(Exception):
    """Why a step is not done: an outcome and a line for people."""

    def __init__(self, outcome, text):
        super().__init__(text)
        self.outcome = outcome


def failed(text):
    return Problem("failed", text)


def inconclusive(text):
    return Problem("inconclusive", text)


def not_yet(text):
    return Problem("not-yet", text)


class Description:
    """Description of a cluster, which the site wrote as JSON: the same file on all hosts. Checked when it is read."""

    def __init__(self, folder, name, keys, questions, calls, has_nodes=True):
        path = os.path.join(folder, name + ".json")
        if os.path.basename(name) != name:
            raise failed("this is no name of a cluster")
        try:
            with open(path, encoding="utf-8") as file:
                self.text = json.load(file)
        except (OSError, ValueError) as error:
            raise failed(f"{path}: {error}") from error
        self.name = name
        self.path = path
        unknown = set(self.text) - set(keys) | set(self.text.get("questions", {})) - set(questions) \
            | set(self.text.get("commands", {})) - set(calls)
        if unknown or (has_nodes and not isinstance(self.text.get("nodes"), list)):
            raise failed(f"{path}: not understood: {', '.join(sorted(unknown)) or 'nodes'}")

    def node(self, name):
        for node in self.text["nodes"]:
            if node.get("name") == name:
                return node
        raise failed("there is no such node")


def run_bounded(words, environment, standard_input, seconds):
    """Returns exit status, output and standard error of a program, which is killed when it writes too much or takes too long."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(words, env=environment, stdin=standard_input, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program, \
            selectors.DefaultSelector() as selector:
        texts = {program.stdout: bytearray(), program.stderr: bytearray()}
        for pipe in texts:
            selector.register(pipe, selectors.EVENT_READ)
        try:
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise subprocess.TimeoutExpired(words, seconds)
                for key, _ in selector.select(left):
                    piece = os.read(key.fd, 65536)
                    texts[key.fileobj] += piece
                    if len(texts[key.fileobj]) > LONGEST_OUTPUT:
                        raise inconclusive(f"{words[0]} wrote more than {LONGEST_OUTPUT} bytes")
                    if not piece:
                        selector.unregister(key.fileobj)
            program.wait(max(0, deadline - time.monotonic()))
        except BaseException:
            program.kill()
            raise
        return program.returncode, bytes(texts[program.stdout]), bytes(texts[program.stderr])


class Call:
    """One call for one node, and the commands of the site that belong to it."""

    def __init__(self, cluster, request):
        self.cluster = cluster
        self.name = str(request["call"])
        self.node = str(request["node"])
        self.description = cluster.node(self.node)
        self.before, self.after = request["from"], request["to"]
        if self.before not in TRANSPORTS or self.after not in TRANSPORTS:
            raise failed("this is no transport")
        self.deadline = int(request["deadline_seconds"])
        # A question is asked beside the steps of a migration and may change nothing.
        self.is_question = bool(request.get("question"))

    def run(self, words, given=None):
        """Returns exit status, output and the last line of standard error of a program. `given`: its standard input."""
        environment = dict(os.environ, ROCEGW_CALL=self.name, ROCEGW_CLUSTER=self.cluster.name, ROCEGW_NODE=self.node,
                           ROCEGW_FROM=self.before, ROCEGW_TO=self.after)
        # A file as standard input: a program that does not read it keeps nobody from reading its output. It lies in memory,
        # since the file systems of an agent may be read-only.
        with os.fdopen(os.memfd_create("input"), "r+b") as standard_input:
            standard_input.write((given or "").encode())
            standard_input.seek(0)
            status, output, error = run_bounded(words, environment, standard_input, self.deadline)
        return status, output.decode(), (error.decode(errors="replace").strip().splitlines() or [""])[-1]

    def must(self, words, what, given=None):
        """Returns the output of a program that has to end with 0."""
        status, output, error = self.run(words, given)
        if status == NOT_YET:
            raise not_yet(f"{what}: {error or 'not yet'}")
        if status != 0:
            raise failed(f"{what}: exit status {status} {error}".strip())
        return output

    def must_json(self, words, what):
        """Returns the JSON output of a tool. Output that is no JSON stops the step."""
        output = self.must(words, what)
        try:
            return json.loads(output)
        except ValueError as error:
            raise inconclusive(f"{what}: its output is not understood: {error}") from error

    def own_command(self, name=None):
        """Runs what the site has for this call; returns whether it has something."""
        words = self.cluster.text.get("commands", {}).get(name or self.name)
        if words:
            self.must(words, name or self.name)
        return bool(words)

    def question(self, name):
        return self.cluster.text.get("questions", {}).get(name)

    def ask(self, name):
        """Output of a question; None when the site does not answer it."""
        words = self.question(name)
        return self.must(words, name).strip() if words else None

    def journal(self):
        """What the canary workload of the site says about its data."""
        words = self.question("journal")
        return {"journal_intact": self.run(words)[0] == 0} if words else {}

    def expected_and_other(self):
        """Transport that the node should use at this call, and the other one of the migration."""
        return (self.before, self.after) if self.name == "verify-old" else (self.after, self.before)

    def counted(self, read_bytes):
        """Transport whose bytes rise while the site's exercise runs. `read_bytes` returns bytes over RoCE and over TCP."""
        first = read_bytes()
        if first is None or self.ask("exercise") is None:
            return {}
        roce, tcp = (max(0, after - before) for before, after in zip(first, read_bytes()))
        if roce == 0 and tcp == 0:
            raise inconclusive("no bytes moved while the exercise ran")
        if roce <= tcp:
            return {"counted": "tcp"}
        expected, other = self.expected_and_other()
        return {"counted": expected if expected != "tcp" else other}

    def site_bytes(self):
        """Counters of the site's question "bytes", or None."""
        text = self.ask("bytes")
        if text is None:
            return None
        roce, tcp = text.split()
        return int(roce), int(tcp)


def answer(adapter, calls, open_cluster, request):
    """`open_cluster` returns a cluster with inventory() and carry_out(request), or raises Problem."""
    frame = {"protocol": 1, "id": request.get("id", "")}
    try:
        if request.get("protocol") != 1:
            raise failed("this adapter speaks protocol 1")
        if request.get("call") == "hello":
            return {**frame, "adapter": adapter, "version": "1", "calls": list(calls)}
        cluster = open_cluster(str(request["cluster"]))
        if request["call"] == "inventory":
            return cluster.inventory()
        if request["call"] not in calls:
            raise failed("there is no call " + str(request["call"]))
        return {**frame, "outcome": "done", **cluster.carry_out(request)}
    except Problem as problem:
        return {**frame, "outcome": problem.outcome, "text": str(problem)}
    except subprocess.TimeoutExpired as error:
        return {**frame, "outcome": "failed", "text": f"{error.cmd[0]} did not end in time"}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        return {**frame, "outcome": "inconclusive", "text": f"{type(error).__name__}: {error}"}


def serve(adapter, calls, open_cluster):
    try:
        request = json.loads(sys.stdin.readline())
    except ValueError:
        print("no request: not JSON", file=sys.stderr)
        return 1
    if not isinstance(request, dict):
        print("no request: not an object", file=sys.stderr)
        return 1
    print(json.dumps(answer(adapter, calls, open_cluster, request)))
    return 0
