#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Example of a migration adapter: a "cluster" of files, one JSON file for each node in a folder.

Usage: file_adapter.py FOLDER [--fault FAULT]. Reads one request line, writes one answer line, exits with 0. The rules are
in docs/operate/migration_adapters.md; rocegwctl migrate adapter-test checks them. FAULT makes it break one of them, for
the tests of that check."""

import hashlib
import json
import os
import sys
import time

CALLS = ("health", "ok-to-stop", "backup", "add-path", "verify-path", "switch", "drain", "verify", "remove-old",
         "switch-back", "drain-new", "remove-new", "restore", "verify-old")


class Node:
    """One node: its configuration, its paths and where its bytes go. Saved before the answer is written."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name + ".json")
        with open(self.path, encoding="utf-8") as file:
            self.state = json.load(file)

    def save(self):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.path + ".new", self.path)

    def config_hash(self):
        return "sha256:" + hashlib.sha256(self.state["config"].encode()).hexdigest()


def step(call, node, request):
    """Carries out a call. Each may come twice, and then finds its work done."""
    state = node.state
    if call == "backup":
        # A second backup must not overwrite the first one with a changed configuration.
        state.setdefault("backup", state["config"])
    elif call == "add-path":
        state["paths"][request["to"]] = "standby"
    elif call == "switch":
        state["config"] = state["backup"] + "\ntransport " + request["to"]
        state["paths"][request["to"]] = "active"
        state["uses"] = request["to"]
    elif call == "drain":
        state["outstanding"] = 0
    elif call in ("switch-back",):
        state["uses"] = request["from"]
    elif call == "drain-new":
        state["outstanding"] = 0
    elif call == "remove-new":
        state["paths"].pop(request["to"], None)
    elif call == "restore":
        # The backup stays until the controller makes another one: restore may come twice.
        state["config"] = state.get("backup", state["config"])
    elif call == "verify-old":
        state.pop("backup", None)
    elif call == "remove-old":
        if state["clients_on_old"] == 0:
            state["paths"].pop(request["from"], None)
    node.save()
    return {"outcome": "done", "outstanding": state["outstanding"], "config_hash": node.config_hash(),
            "stated": state["uses"], "counted": state["uses"], "journal_intact": True,
            "clients_on_old": state["clients_on_old"], "gateway_version": "1.2.0"}


def inventory(folder, cluster):
    nodes = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".json"):
            state = Node(folder, file[:-5]).state
            nodes.append({"name": file[:-5], "transport": state["uses"], "domains": {"rack": state["rack"]},
                          "gateway_version": "1.2.0"})
    return {"cluster": cluster, "adapter": "file", "class": "dual-path", "nodes": nodes, "clients": []}


def answer(folder, request):
    frame = {"protocol": 1, "id": request.get("id", "")}
    call = request.get("call")
    if request.get("protocol") != 1:
        return {**frame, "outcome": "failed", "text": "this adapter speaks protocol 1"}
    if call == "hello":
        return {**frame, "adapter": "file", "version": "1", "calls": list(CALLS)}
    if call == "inventory":
        return inventory(folder, request["cluster"])
    if call not in CALLS:
        return {**frame, "outcome": "failed", "text": "there is no call " + str(call)}
    try:
        node = Node(folder, os.path.basename(str(request.get("node"))))
    except OSError:
        return {**frame, "outcome": "failed", "text": "there is no such node"}
    return {**frame, **step(call, node, request)}


def broken(fault, request, reply):
    """Breaks one rule, on purpose."""
    call = request.get("call")
    if fault == "hangs" and call == "health":
        time.sleep(3600)
    if fault == "floods" and call == "health":
        sys.stdout.write("x" * (1 << 20))
    if fault == "talks" and call == "health":
        print("checking health ...")
    if fault == "other-id" and call == "health":
        reply["id"] = "0"
    if fault == "new-field" and call == "health":
        reply["colour"] = "green"
    if fault == "agrees" and reply.get("outcome") == "failed":
        reply["outcome"] = "done"
    if fault == "falls-back" and call == "verify":
        reply["counted"] = request["from"]
    if fault == "no-witness" and call == "verify":
        del reply["counted"]
    if fault == "loses-backup" and call == "restore":
        reply["config_hash"] = "sha256:0"


def main():
    line = sys.stdin.readline()
    try:
        request = json.loads(line)
    except ValueError:
        print("no request: not JSON", file=sys.stderr)
        return 1
    reply = answer(sys.argv[1], request)
    if sys.argv[2:3] == ["--fault"]:
        broken(sys.argv[3], request, reply)
    print(json.dumps(reply))
    return 0


if __name__ == "__main__":
    sys.exit(main())
