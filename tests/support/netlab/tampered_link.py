# SPDX-License-Identifier: Apache-2.0
"""A link between two namespaces on which RoCE packets are lost, marked or damaged by rule: each so many-th one, counted, never
by chance. Two taps and a thread that carries frames from one to the other."""

import fcntl
import os
import select
import struct
import threading

from .job import run
from .gateway_host import inside_of

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x2, 0x1000
_ROCE = struct.pack(">H", 4791)
_IPV4 = b"\x08\x00"


class TamperedLink:
    """lose, mark, damage: each so many-th RoCE packet over IPv4; 0: none. Set them at any time."""

    def __init__(self, lab, left, right, interface, mtu):
        self.lose = self.mark = self.damage = 0
        self._seen = 0
        self._taps = [_tap(namespace, interface, mtu) for namespace in (left, right)]
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()
        lab.on_close(self.close)

    def well(self):
        self.lose = self.mark = self.damage = 0

    def close(self):
        os.close(self._stop_write)
        self._thread.join()
        for descriptor in (*self._taps, self._stop_read):
            os.close(descriptor)

    def _carry(self):
        other = dict(zip(self._taps, reversed(self._taps)))
        while True:
            ready, _, _ = select.select([*self._taps, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            for tap in ready:
                try:
                    frame = self._changed(os.read(tap, 65536))
                    if frame:
                        os.write(other[tap], frame)
                except OSError:  # an interface that is down
                    pass

    def _changed(self, frame):
        if frame[12:14] != _IPV4 or frame[23] != 17 or frame[36:38] != _ROCE:
            return frame
        self._seen += 1
        if self.lose and self._seen % self.lose == 0:
            return None
        if self.damage and self._seen % self.damage == 0:
            frame = bytearray(frame)
            frame[-1] ^= 0x55  # of the invariant CRC
            frame[40:42] = b"\0\0"  # no UDP checksum
        if self.mark and self._seen % self.mark == 0 and frame[15] & 3:
            frame = bytearray(frame)
            frame[15] |= 3
            frame[24:26] = b"\0\0"
            total = sum(struct.unpack(">10H", frame[14:34]))
            total = (total & 0xFFFF) + (total >> 16)
            frame[24:26] = struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        return frame


def _tap(namespace, interface, mtu):
    def make():
        descriptor = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", interface.encode(), _IFF_TAP | _IFF_NO_PI))
        return descriptor
    descriptor = inside_of(namespace, make)
    run(["ip", "link", "set", interface, "mtu", str(mtu), "up"], namespace=namespace)
    return descriptor
