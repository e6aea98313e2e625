#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The key-value store of six_nodes (examples/kv_store): two groups of three replicas, each on a host with a gateway. A canary
workload on another host writes and compares.

  kv_service.py LAB.json CALL    a call or a question of the adapter generic, for the node ROCEGW_NODE

A file before-CALL in a node's folder is a shell script that runs at that call: tests inject failures with it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

PORT, RDMA_PORT, METRICS_PORT = 7100, 7101, 7474
CHECKS = 150
SECONDS = 15
NOT_YET = 75


class Service:
    """A replica, and the canary workload of its group."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.node = lab["nodes"][name]
        self.program = lab["program"]

    def path(self, name):
        return os.path.join(self.node["files"], name)

    def words(self, *words):
        """A command of the program over this host's gateway."""
        return ["ip", "netns", "exec", self.node["namespace"], *self.node["launcher"], self.program, *words]

    @property
    def place(self):
        return f"{self.node['address']}:{PORT}"

    # Processes --------------------------------------------------------------------------------------------------------

    def pid(self, kind):
        try:
            with open(self.path(kind + ".pid"), encoding="ascii") as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return pid if file.read().rsplit(")", 1)[1].split()[0] != "Z" else None
        except (OSError, ValueError):
            return None

    def start(self, kind, words):
        if self.pid(kind):
            return
        with open(self.path(kind + ".log"), "ab") as log:
            # A session of its own: the adapter's children end with it.
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        with open(self.path(kind + ".pid"), "w", encoding="ascii") as file:
            file.write(str(child.pid))

    def stop(self, kind, number=signal.SIGKILL):
        pid = self.pid(kind)
        if pid:
            os.kill(pid, number)
        wait_until(lambda: not self.pid(kind))

    def start_replica(self):
        self.start("replica", self.words("serve", self.path("kv.conf")))
        return wait_until(self.status)

    def start_canary(self, journal):
        """On this host, for the group of another one: the journal's name is part of its keys."""
        group = self.lab["nodes"][self.node["canary_of"]]["group"]
        for name in ("canary.status", "canary.journal"):
            remove(self.path(name))
        os.symlink(self.path(journal), self.path("canary.journal"))
        self.start("canary", self.words("canary", group, self.path(journal), self.path("canary.status")))
        return wait_until(lambda: os.path.exists(self.path("canary.status")))

    # What the replica says --------------------------------------------------------------------------------------------

    def status(self):
        """Lines of the replica by their first word; {} if it does not answer."""
        done = subprocess.run(["ip", "netns", "exec", self.node["namespace"], self.program, "status", self.place],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = {"peers": []} if done.returncode == 0 else {}
        for line in done.stdout.splitlines():
            word, *rest = line.split()
            if word == "peer":
                found["peers"].append(rest)
            else:
                found[word] = rest
        return found

    def clients(self, transport):
        words = self.status()["clients"]
        return int(words[words.index(transport) + 1])

    def in_step(self):
        """Why the group is not whole; "" if it is."""
        status = self.status()
        if not status:
            return "the replica does not answer"
        for name, transport, *rest in status["peers"]:
            if transport == "down" or rest[-1] != "0":
                return f"replica {name} is {transport}, and lacks {rest[-1]} values"
        return ""

    def transport(self):
        return "tcp" if self.status()["transport"] == ["tcp"] else "gateway"

    def count_bytes(self):
        """Bytes of the gateway, and bytes of the replica's TCP port as the kernel counts them."""
        with socket.create_connection(("127.0.0.1", METRICS_PORT)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = connection.makefile().read()
        names = ("rocegw_tx_bytes_total", "rocegw_rx_bytes_total")
        roce = sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(names))
        counters = json.loads(subprocess.run(["nft", "-j", "list", "counters"], capture_output=True, check=True).stdout)["nftables"]
        return f"{int(roce)} {sum(entry['counter']['bytes'] for entry in counters if 'counter' in entry)}"

    def check(self, over, count):
        """Values that the next host writes to this replica alone, reads and compares."""
        peer = Service(self.lab, self.node["peer"])
        return subprocess.run(peer.words("check", self.place, over, str(count)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              timeout=60, check=False).returncode

    def journal(self):
        canary = Service(self.lab, self.node["canary_host"])
        with open(canary.path("canary.status"), encoding="utf-8") as file:
            return 0 if file.read().startswith("intact") and canary.pid("canary") else 1

    # Calls of the adapter ---------------------------------------------------------------------------------------------

    def health(self):
        problem = self.in_step()
        if problem:
            print(problem, file=sys.stderr)
        return NOT_YET if problem and os.environ.get("ROCEGW_CALL") == "ok-to-stop" else 1 if problem else 0

    def add_path(self):
        with open(self.path("rdma-path"), "w", encoding="ascii"):
            pass
        return 0 if wait_until(lambda: self.status().get("rdma") == ["listens"]) else 1

    def remove_new(self):
        remove(self.path("rdma-path"))
        return 0 if wait_until(lambda: not self.status() or self.status()["rdma"] == ["off"]) else 1

    def remove_old(self):
        # A client that is there yet keeps its path; the adapter asks for the number.
        if self.clients("tcp") == 0:
            with open(self.path("rdma-only"), "w", encoding="ascii"):
                pass
        return 0

    def outstanding(self):
        old, new = (os.environ["ROCEGW_FROM"], os.environ["ROCEGW_TO"])
        left = old if os.environ["ROCEGW_CALL"] == "drain" else new
        print(self.clients("tcp" if left == "tcp" else "rdma"))
        return 0

    def say(self, what):
        print(what)
        return 0

    def carry_out(self, call):
        script = self.path("before-" + call)
        if os.path.exists(script):
            subprocess.run(["sh", "-ec", open(script, encoding="utf-8").read()], stdout=subprocess.DEVNULL, check=True)
        return {"health": self.health, "ok-to-stop": self.health, "add-path": self.add_path, "remove-new": self.remove_new,
                "remove-old": self.remove_old, "verify-path": lambda: self.check("rdma", 5), "exercise": lambda: self.check("auto", CHECKS),
                "transport": lambda: self.say(self.transport()), "bytes": lambda: self.say(self.count_bytes()), "journal": self.journal,
                "outstanding": self.outstanding, "clients-on-old": lambda: self.say(self.clients("tcp"))}[call]()


def remove(path):
    if os.path.lexists(path):
        os.remove(path)


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not (seen := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return seen


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lab = json.load(file)
    return Service(lab, os.environ["ROCEGW_NODE"]).carry_out(sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
