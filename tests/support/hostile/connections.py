# SPDX-License-Identifier: Apache-2.0
"""Holds many TCP connections to a daemon until it is killed: connections.py KIND ADDRESS PORT. Prints "attacking" after a second.

  silent   connections that send nothing
  slow     requests of /metrics that arrive byte by byte, and whose answers are not read
  hellos   the beginning of a TLS handshake, which is then left alone"""

import resource
import socket
import sys
import time

_MOST = 900
_PAGE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 4096
# Record header of a ClientHello of 512 bytes, of which the first byte follows.
_TLS = b"\x16\x03\x01\x02\x00\x01"


def hold(kind, address, port):
    held = []
    sent = {}
    told = False
    began = due = time.monotonic()
    while True:
        try:
            if len(held) < _MOST:
                connection = socket.create_connection((address, port), 1)
                connection.setblocking(False)
                held.append(connection)
                if kind == "hellos":
                    connection.send(_TLS)
        except OSError:
            time.sleep(0.01)
        if len(held) < _MOST and time.monotonic() < due:
            continue
        due = time.monotonic() + 0.1
        if due > began + 1 and not told:
            told = True
            print("attacking", flush=True)
        for connection in list(held):
            try:
                if kind == "slow":
                    at = sent.get(connection, 0)
                    connection.send(_PAGE[at:at + 1])
                    sent[connection] = at + 1
                elif connection.recv(1) == b"":
                    raise OSError("closed")
            except BlockingIOError:
                pass
            except OSError:
                connection.close()
                held.remove(connection)
                sent.pop(connection, None)
        if len(held) >= _MOST:
            time.sleep(0.05)


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    hold(sys.argv[1], sys.argv[2], int(sys.argv[3]))


if __name__ == "__main__":
    main()
