#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Datagram sockets of librdmacm (rsocket, SOCK_DGRAM), bytes compared.

  datagram_sockets.py serve ADDRESS PORT          sends back what comes, to whom it came from, until it is killed
  datagram_sockets.py ask ADDRESS PORT [COUNT]    two sockets, one of them connected, send by turns, COUNT datagrams each (default 300) of
                                                  every size that fits an MTU of 1024, and compare what comes back and from where
"""

import ctypes
import os
import random
import select
import socket
import struct
import sys

RDMA = ctypes.CDLL("librdmacm.so.1", use_errno=True)
LARGEST = 1000  # the library puts up to 24 bytes in front
WAIT_MS = 5000


class PollEntry(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def call(name, *arguments):
    result = getattr(RDMA, name)(*arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def sockaddr(address, port):
    """The bytes of a sockaddr_in or sockaddr_in6."""
    if ":" in address:
        return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, address), 0)
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_pton(socket.AF_INET, address))


def open_socket(address):
    return call("rsocket", socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM, 0)


def receive(handle):
    """What came, and the sockaddr of whom it came from."""
    data, source, length = ctypes.create_string_buffer(2048), ctypes.create_string_buffer(28), ctypes.c_uint(28)
    count = call("rrecvfrom", handle, data, len(data), 0, source, ctypes.byref(length))
    return data.raw[:count], source.raw[:length.value]


def serve(address, port):
    handle = open_socket(address)
    where = sockaddr(address, port)
    call("rbind", handle, where, len(where))
    print("serving", flush=True)
    while True:
        data, source = receive(handle)
        call("rsendto", handle, data, len(data), 0, source, len(source))


def ask(address, port, count):
    where = sockaddr(address, port)
    connected, free = open_socket(address), open_socket(address)
    call("rconnect", connected, where, len(where))
    # Without a port of its own such a socket says that it is port 0.
    anywhere = sockaddr("::" if ":" in address else "0.0.0.0", 0)
    call("rbind", free, anywhere, len(anywhere))
    source = random.Random(count)
    for number in range(count):
        for handle in (connected, free):
            data = source.randbytes(1 + number * (LARGEST - 1) // max(1, count - 1))
            if handle == connected:
                call("rsend", handle, data, len(data), 0)
            else:
                call("rsendto", handle, data, len(data), 0, where, len(where))
            entry = PollEntry(handle, select.POLLIN, 0)
            if call("rpoll", ctypes.byref(entry), 1, WAIT_MS) != 1:
                raise OSError(f"datagram {number} of {len(data)} bytes did not come back in {WAIT_MS} ms")
            back, sender = receive(handle)
            if back != data or sender != where:
                raise OSError(f"datagram {number} of {len(data)} bytes came back as {len(back)} bytes, sockaddr {sender.hex()}")
    for handle in (connected, free):
        call("rclose", handle)
    print(f"{2 * count} datagrams came back as they were")


def main():
    role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if role == "serve":
        serve(address, port)
    ask(address, port, int(sys.argv[4]) if len(sys.argv) > 4 else 300)


if __name__ == "__main__":
    main()
