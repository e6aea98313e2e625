# SPDX-License-Identifier: Apache-2.0
"""What an attacker may have learned of a victim, read off the wire: it makes short what an oracle would tell in minutes."""

import socket
import struct
import threading
import time

from netlab.gateway_host import enter_namespace
from netlab.job import LabError

_ETH_P_IP = 0x0800
_UDP_AT, _BTH_AT, _EXTENSION_AT = 34, 42, 54
_ROCE_PORT, _FRAME, _ACKNOWLEDGEMENT = 4791, 0xC0, 0xC1
# A connection request: a MAD behind BTH and DETH.
_DATAGRAM, _MAD_AT, _REQUEST = 0x64, 62, 0x10
_GUID_AT = _MAD_AT + 24 + 16
_ENOUGH_S = 0.3


class Observer:
    """Looks at packets that arrive at a host from the gateway at the address `sender` until close(), from the beginning of the
    `with` on. channels: the numbers of the host's channels. queue_pairs: those that send. guid: of the last connection request."""

    def __init__(self, namespace, interface, sender):
        self._where = (namespace, interface)
        self._sender = socket.inet_aton(sender)
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self.channels, self.queue_pairs, self.guid = set(), set(), 0

    def __enter__(self):
        self._thread.start()
        self._ready.wait(5)
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def wait(self, what):
        """The sorted set of that name once packets have come for a while; LabError when there are none within five seconds."""
        deadline = time.monotonic() + 5
        while not getattr(self, what):
            if time.monotonic() > deadline:
                raise LabError(f"no {what} were seen")
            time.sleep(0.01)
        time.sleep(_ENOUGH_S)
        return sorted(getattr(self, what))

    def _listen(self):
        namespace, interface = self._where
        enter_namespace(namespace)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP)) as packets:
            packets.bind((interface, _ETH_P_IP))
            packets.settimeout(0.1)
            self._ready.set()
            while not self._ended.is_set():
                try:
                    self._read(packets.recv(9000))
                except TimeoutError:
                    pass

    def _read(self, packet):
        if len(packet) < _EXTENSION_AT + 16 or packet[26:30] != self._sender:
            return
        if struct.unpack_from(">H", packet, _UDP_AT + 2)[0] != _ROCE_PORT:
            return
        opcode = packet[_BTH_AT]
        if opcode in (_FRAME, _ACKNOWLEDGEMENT):
            self.channels.add(int.from_bytes(packet[_BTH_AT + 5:_BTH_AT + 8], "big"))
        if opcode == _FRAME:
            self.queue_pairs.add(int.from_bytes(packet[_EXTENSION_AT + 12:_EXTENSION_AT + 15], "big"))
        elif opcode == _DATAGRAM and len(packet) > _GUID_AT + 8:
            if struct.unpack_from(">H", packet, _MAD_AT + 16)[0] == _REQUEST:
                self.guid = int.from_bytes(packet[_GUID_AT:_GUID_AT + 8], "big")
