#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Adapter "generic": any storage system that configuration files, systemd units and commands of the site describe.

Reads one request line, writes one answer line (docs/operate/migration_adapters.md). The cluster is described in
CLUSTER.json below /etc/rocegw/migration, or below ROCEGW_GENERIC_DIR; the file is the same on all hosts. Backups lie
below /var/lib/rocegw/migration, or below ROCEGW_GENERIC_STATE."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys

DESCRIPTIONS = os.environ.get("ROCEGW_GENERIC_DIR", "/etc/rocegw/migration")
STATE = os.environ.get("ROCEGW_GENERIC_STATE", "/var/lib/rocegw/migration")
TRANSPORTS = ("tcp", "gateway", "rnic")
CALLS = ("health", "ok-to-stop", "backup", "add-path", "verify-path", "switch", "drain", "verify", "cordon", "stop", "start",
         "rejoin", "uncordon", "remove-old", "switch-back", "drain-new", "remove-new", "restore", "verify-old")
KEYS = {"class", "nodes", "clients", "files", "units", "commands", "questions"}
QUESTIONS = {"transport", "bytes", "exercise", "journal", "outstanding", "clients-on-old"}
NOT_YET = 75  # exit status of a command: EX_TEMPFAIL


class Problem(Exception):
    """Why a step is not done: an outcome and a line for people."""

    def __init__(self, outcome, text):
        super().__init__(text)
        self.outcome = outcome


def failed(text):
    return Problem("failed", text)


class Cluster:
    """Description of a cluster, checked when it is read."""

    def __init__(self, name):
        path = os.path.join(DESCRIPTIONS, name + ".json")
        if os.path.basename(name) != name:
            raise failed("this is no name of a cluster")
        try:
            with open(path, encoding="utf-8") as file:
                self.text = json.load(file)
        except (OSError, ValueError) as error:
            raise failed(f"{path}: {error}") from error
        self.name = name
        unknown = set(self.text) - KEYS | set(self.text.get("questions", {})) - QUESTIONS | set(self.text.get("commands", {})) - set(CALLS)
        if unknown or not isinstance(self.text.get("nodes"), list):
            raise failed(f"{path}: not understood: {', '.join(sorted(unknown)) or 'nodes'}")

    def inventory(self):
        return {"cluster": self.name, "adapter": "generic", "class": self.text["class"], "nodes": self.text["nodes"],
                "clients": self.text.get("clients", [])}


class Step:
    """One call for one node."""

    def __init__(self, cluster, request):
        self.cluster = cluster
        self.call = request["call"]
        self.node = request["node"]
        self.before, self.after = request["from"], request["to"]
        if self.node not in [node.get("name") for node in cluster.text["nodes"]]:
            raise failed("there is no such node")
        if self.before not in TRANSPORTS or self.after not in TRANSPORTS:
            raise failed("this is no transport")
        self.deadline = int(request["deadline_seconds"])
        self.backup = os.path.join(STATE, cluster.name, self.node)

    def run(self, words):
        """Exit status and output of a command of the site."""
        environment = dict(os.environ, ROCEGW_CALL=self.call, ROCEGW_CLUSTER=self.cluster.name, ROCEGW_NODE=self.node,
                           ROCEGW_FROM=self.before, ROCEGW_TO=self.after)
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=self.deadline, check=False)
        return done.returncode, done.stdout, (done.stderr.strip().splitlines() or [""])[-1]

    def must(self, words, what):
        status, output, error = self.run(words)
        if status == NOT_YET:
            raise Problem("not-yet", f"{what}: {error or 'not yet'}")
        if status != 0:
            raise failed(f"{what}: exit status {status} {error}".strip())
        return output

    def own_command(self):
        words = self.cluster.text.get("commands", {}).get(self.call)
        if words:
            self.must(words, self.call)
        return bool(words)

    def ask(self, question):
        """Output of a question; None when the site does not answer it."""
        words = self.cluster.text.get("questions", {}).get(question)
        return self.must(words, question).strip() if words else None

    def files(self):
        """Configuration files of the node; "{node}" in a path stands for its name."""
        return [{key: value.replace("{node}", self.node) for key, value in file.items()} for file in self.cluster.text.get("files", [])]

    # Units and configuration files ------------------------------------------------------------------------------------

    def units(self, transport):
        return self.cluster.text.get("units", {}).get(transport, [])

    def systemctl(self, verb, transport):
        if self.units(transport):
            self.must(["systemctl", verb, *self.units(transport)], f"systemctl {verb}")

    def config_hash(self):
        """Over paths, modes and contents of all configuration files, in their order."""
        total = hashlib.sha256()
        for file in self.files():
            path = file["path"]
            total.update(path.encode() + b"\0")
            if os.path.exists(path):
                with open(path, "rb") as content:
                    total.update(f"{os.stat(path).st_mode:o}".encode() + b"\0" + content.read())
            total.update(b"\0")
        return "sha256:" + total.hexdigest()

    def place(self, source, path):
        """Replaces a file, so that a reader sees the old content or the new one; without a source it is removed."""
        if source is None or not os.path.exists(source):
            if os.path.exists(path):
                os.remove(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fresh = path + ".rocegw-new"
        shutil.copy2(source, fresh)
        with open(fresh, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(fresh, path)

    def write_mark(self, name, text):
        with open(os.path.join(self.backup, name), "w", encoding="utf-8") as mark:
            mark.write(text + "\n")
            mark.flush()
            os.fsync(mark.fileno())

    def is_switched(self):
        """This migration has changed the files since the backup was taken, and not brought them back."""
        try:
            with open(os.path.join(self.backup, "switched"), encoding="utf-8") as mark:
                return mark.read().split() == [self.before, self.after]
        except OSError:
            return False

    def take_backup(self):
        """A backup after the change must not replace the one before it; one of an earlier migration is replaced."""
        if self.is_switched():
            return
        shutil.rmtree(self.backup, ignore_errors=True)
        os.makedirs(self.backup, mode=0o700)
        for number, file in enumerate(self.files()):
            self.place(file["path"], os.path.join(self.backup, str(number)))
        self.write_mark("complete", self.config_hash())

    def backup_hash(self):
        try:
            with open(os.path.join(self.backup, "complete"), encoding="utf-8") as mark:
                return mark.read().strip()
        except OSError as error:
            raise failed(f"there is no backup: {error}") from error

    def restore(self):
        self.backup_hash()
        for number, file in enumerate(self.files()):
            self.place(os.path.join(self.backup, str(number)), file["path"])
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.backup, "switched"))

    def write_config(self, transport):
        for file in self.files():
            if transport not in file:
                raise failed(f"{file['path']} has no content for {transport}")
        self.backup_hash()
        self.write_mark("switched", f"{self.before} {self.after}")
        for file in self.files():
            self.place(file[transport], file["path"])

    # Evidence ---------------------------------------------------------------------------------------------------------

    def outstanding(self):
        count = self.ask("outstanding")
        return {} if count is None else {"outstanding": int(count)}

    def counted(self):
        """Transport whose bytes rise while the site's exercise runs: bytes over RoCE and over TCP, before and after."""
        first = self.ask("bytes")
        if first is None:
            return {}
        self.ask("exercise")
        roce, tcp = (int(after) - int(before) for before, after in zip(first.split(), self.ask("bytes").split()))
        if roce <= 0 and tcp <= 0:
            raise Problem("inconclusive", "no bytes moved while the exercise ran")
        if roce <= tcp:
            return {"counted": "tcp"}
        expected, other = (self.before, self.after) if self.call == "verify-old" else (self.after, self.before)
        return {"counted": expected if expected != "tcp" else other}

    def verify(self):
        facts = {"config_hash": self.config_hash(), **self.counted()}
        stated = self.ask("transport")
        if stated is not None:
            facts["stated"] = stated
        words = self.cluster.text.get("questions", {}).get("journal")
        if words:
            facts["journal_intact"] = self.run(words)[0] == 0
        return facts

    # Calls ------------------------------------------------------------------------------------------------------------

    def carry_out(self):
        own = self.own_command()
        if self.call == "backup":
            self.take_backup()
            return {"config_hash": self.backup_hash()}
        if self.call == "switch":
            self.write_config(self.after)
            self.reload_units()
            return {"config_hash": self.config_hash()}
        if self.call == "restore":
            self.restore()
            self.reload_units()
            return {"config_hash": self.config_hash()}
        if self.call in ("drain", "drain-new"):
            return self.outstanding()
        if self.call in ("verify", "verify-old"):
            return self.verify()
        if self.call == "uncordon":
            return {"config_hash": self.config_hash()}
        if self.call == "remove-old":
            return self.remove_old()
        if not own:
            self.use_units()
        return {}

    def use_units(self):
        """What systemd does for calls that the site has no command for."""
        back = os.path.exists(os.path.join(self.backup, "complete")) and self.config_hash() == self.backup_hash()
        if self.call == "stop":
            self.systemctl("stop", self.before)
            self.systemctl("stop", self.after)
        elif self.call == "start":
            self.systemctl("start", self.before if back else self.after)
        elif self.call == "add-path":
            self.systemctl("start", self.after)
        elif self.call == "remove-new":
            self.systemctl("stop", self.after)

    def reload_units(self):
        """Drop-in files of units are configuration files too."""
        if self.cluster.text.get("units"):
            self.must(["systemctl", "daemon-reload"], "systemctl daemon-reload")

    def remove_old(self):
        clients = self.ask("clients-on-old")
        if clients is None:
            return {}
        if int(clients) == 0:
            if not self.cluster.text.get("commands", {}).get(self.call) and self.units(self.before) != self.units(self.after):
                self.systemctl("stop", self.before)
            shutil.rmtree(self.backup, ignore_errors=True)
        return {"clients_on_old": int(clients)}


def answer(request):
    frame = {"protocol": 1, "id": request.get("id", "")}
    try:
        if request.get("protocol") != 1:
            raise failed("this adapter speaks protocol 1")
        if request.get("call") == "hello":
            return {**frame, "adapter": "generic", "version": "1", "calls": list(CALLS)}
        cluster = Cluster(str(request["cluster"]))
        if request["call"] == "inventory":
            return cluster.inventory()
        if request["call"] not in CALLS:
            raise failed("there is no call " + str(request["call"]))
        return {**frame, "outcome": "done", **Step(cluster, request).carry_out()}
    except Problem as problem:
        return {**frame, "outcome": problem.outcome, "text": str(problem)}
    except subprocess.TimeoutExpired as error:
        return {**frame, "outcome": "failed", "text": f"{error.cmd[0]} did not end in time"}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        return {**frame, "outcome": "inconclusive", "text": f"{type(error).__name__}: {error}"}


def main():
    try:
        request = json.loads(sys.stdin.readline())
    except ValueError:
        print("no request: not JSON", file=sys.stderr)
        return 1
    print(json.dumps(answer(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
