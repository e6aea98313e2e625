# SPDX-License-Identifier: Apache-2.0
"""Client of the NBD protocol over a Unix socket, one request at a time (doc/proto.md of the nbd project)."""

import socket
import struct

_REQUEST, _REPLY = 0x25609513, 0x67446698
_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM, _ZEROES = 0, 1, 2, 3, 4, 6
FUA = 1


class NbdError(OSError):
    """The server answered a request with an error. errno is that of the protocol, which is Linux's."""


class NbdClient:
    def __init__(self, path, timeout=30):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(path)
        magic, option, _flags = struct.unpack(">8s8sH", self._receive(18))
        if (magic, option) != (b"NBDMAGIC", b"IHAVEOPT"):
            raise ValueError(f"no NBD server: {magic}")
        # Fixed newstyle without padding; NBD_OPT_EXPORT_NAME with the default export.
        self._socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        self.size, self.flags = struct.unpack(">QH", self._receive(10))
        self._cookie = 0

    def _receive(self, length):
        data = bytearray()
        while len(data) < length:
            piece = self._socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return bytes(data)

    def _request(self, kind, offset, length, data=b"", flags=0, answer=0):
        self._cookie += 1
        self._socket.sendall(struct.pack(">IHHQQI", _REQUEST, flags, kind, self._cookie, offset, length) + data)
        magic, error, cookie = struct.unpack(">IIQ", self._receive(16))
        if magic != _REPLY or cookie != self._cookie:
            raise ValueError("not the reply to the request")
        if error != 0:
            raise NbdError(error, "request failed")
        return self._receive(answer)

    def read(self, offset, length):
        return self._request(_READ, offset, length, answer=length)

    def write(self, offset, data, flags=0):
        self._request(_WRITE, offset, len(data), data, flags)

    def flush(self):
        self._request(_FLUSH, 0, 0)

    def trim(self, offset, length):
        self._request(_TRIM, offset, length)

    def write_zeroes(self, offset, length):
        self._request(_ZEROES, offset, length)

    def close(self):
        try:
            self._socket.sendall(struct.pack(">IHHQQI", _REQUEST, 0, _DISCONNECT, 0, 0, 0))
        except OSError:
            pass
        self._socket.close()
