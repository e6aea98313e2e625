#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The storage service of the test: a TCP echo server, and rping under rocegw-run, on each node. A client on the other host
writes to it over the transport that the node's configuration names, and compares what comes back.

  echo_service.py LAB.json CALL    a call of the generic adapter, for the node ROCEGW_NODE
  echo_service.py LAB.json tcp-server NODE"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

TCP_PORT, RDMA_PORT = 7001, "7002"
ROUNDS, SIZE = 100, 4000
START_SECONDS = 15


class Node:
    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.node = lab["nodes"][name]
        self.peer = lab["nodes"][self.node["peer"]]
        self.files = self.node["files"]

    def path(self, name):
        return os.path.join(self.files, name)

    def transport(self):
        with open(self.path("service.conf"), encoding="utf-8") as file:
            return file.read().split()[1]

    def falls_back(self, falls_back):
        if falls_back:
            with open(self.path("falls-back"), "w", encoding="ascii"):
                pass
        else:
            os.remove(self.path("falls-back"))

    # Servers ----------------------------------------------------------------------------------------------------------

    def pid(self, server):
        try:
            with open(self.path(server + ".pid"), encoding="ascii") as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return pid if file.read().rsplit(")", 1)[1].split()[0] != "Z" else None
        except (OSError, ValueError):
            return None

    def start(self, server, words):
        if self.pid(server):
            return
        with open(self.path(server + ".log"), "ab") as log:
            # A session of its own: the adapter's children end with it.
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        with open(self.path(server + ".pid"), "w", encoding="ascii") as file:
            file.write(str(child.pid))

    def stop(self, server):
        pid = self.pid(server)
        if not pid:
            return
        os.killpg(pid, signal.SIGKILL)
        end = time.monotonic() + START_SECONDS
        while self.pid(server) and time.monotonic() < end:
            time.sleep(0.05)

    def start_tcp(self):
        self.start("tcp", [os.path.abspath(__file__), self.lab["file"], "tcp-server", self.name])

    def start_rdma(self):
        self.start("rdma", [*self.node["launcher"], "rping", "-s", "-P", "-a", self.node["address"], "-p", RDMA_PORT])

    def serve_tcp(self):
        """Counts the bytes that it sends back in a file."""
        total = 0
        with socket.create_server((self.node["address"], TCP_PORT)) as server:
            while True:
                connection, _ = server.accept()
                with connection:
                    while piece := connection.recv(65536):
                        connection.sendall(piece)
                        total += len(piece)
                        with open(self.path("tcp.bytes.new"), "w", encoding="ascii") as file:
                            file.write(str(total))
                        os.replace(self.path("tcp.bytes.new"), self.path("tcp.bytes"))

    # The client on the other host -------------------------------------------------------------------------------------

    def over_rdma(self):
        words = ["ip", "netns", "exec", self.peer["namespace"], *self.peer["launcher"], "rping", "-c", "-a", self.node["address"],
                 "-p", RDMA_PORT, "-C", str(ROUNDS), "-S", str(SIZE), "-V"]
        end = time.monotonic() + START_SECONDS
        while True:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
            # The server may still be starting.
            if done.returncode == 0 or time.monotonic() > end:
                return done.returncode == 0
            time.sleep(0.2)

    def over_tcp(self):
        words = ["ip", "netns", "exec", self.peer["namespace"], sys.executable, os.path.abspath(__file__), self.lab["file"], "tcp-client",
                 self.name]
        return subprocess.run(words, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0

    def tcp_client(self):
        with socket.create_connection((self.node["address"], TCP_PORT), timeout=START_SECONDS) as connection:
            for number in range(ROUNDS):
                sent = bytes([number % 256]) * SIZE
                connection.sendall(sent)
                got = b""
                while len(got) < SIZE:
                    got += connection.recv(SIZE - len(got)) or sys.exit("the connection ended")
                if got != sent:
                    sys.exit("other data came back")

    def exercise(self):
        # A test may make the client fall back to TCP without a word.
        falls_back = os.path.exists(self.path("falls-back"))
        good = self.over_tcp() if self.transport() == "tcp" or falls_back else self.over_rdma()
        with open(self.path("journal"), "a", encoding="ascii") as journal:
            journal.write(f"{self.transport()} {'intact' if good else 'broken'}\n")
        return 0 if good else 1

    # Calls of the adapter ---------------------------------------------------------------------------------------------

    def count_bytes(self):
        """RoCE bytes of the gateway, and bytes of the TCP server."""
        with socket.create_connection(("127.0.0.1", 7474)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while piece := connection.recv(65536):
                text += piece
        roce = sum(float(line.split()[-1]) for line in text.decode().splitlines() if line.startswith("rocegw_tx_bytes_total"))
        try:
            with open(self.path("tcp.bytes"), encoding="ascii") as file:
                tcp = int(file.read())
        except OSError:
            tcp = 0
        return f"{int(roce)} {tcp}"

    def journal(self):
        with open(self.path("journal"), encoding="ascii") as file:
            return 0 if all(line.split()[1] == "intact" for line in file) else 1

    def carry_out(self, call):
        if call == "add-path":
            self.start_rdma()
        elif call == "start-tcp":
            self.start_tcp()
        elif call == "verify-path":
            return 0 if self.over_rdma() else 1
        elif call in ("remove-new",):
            self.stop("rdma")
        elif call == "remove-old":
            self.stop("tcp")
        elif call == "health":
            # A test may make a node ill.
            return 1 if os.path.exists(self.path("ill")) else 0
        elif call == "transport":
            print(self.transport())
        elif call == "bytes":
            print(self.count_bytes())
        elif call == "exercise":
            return self.exercise()
        elif call == "journal":
            return self.journal()
        elif call in ("outstanding", "clients-on-old"):
            print(0)
        elif call == "slow":
            time.sleep(float(self.lab["slow"]))
        else:
            return 2
        return 0


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lab = json.load(file)
    call = sys.argv[2]
    node = Node(lab, os.environ.get("ROCEGW_NODE") or sys.argv[3])
    if call == "tcp-server":
        return node.serve_tcp()
    if call == "tcp-client":
        return node.tcp_client()
    return node.carry_out(call)


if __name__ == "__main__":
    sys.exit(main())
