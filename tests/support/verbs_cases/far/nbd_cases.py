# SPDX-License-Identifier: Apache-2.0
"""Cases of the block device in remote memory: nbdkit with the plugin on the left host, donors on the right one."""

import contextlib
import os
import random
import re
import signal
import tempfile

from netlab.fleet import eventually
from netlab.job import run

from ..case import Case, expect
from .load_cases import MIB, FarDonor, far_donors
from .nbd_client import FUA, NbdClient, NbdError

_BLOCK = 4096


def _plugin(host):
    return os.path.join(os.path.dirname(os.path.dirname(host.program("rocegw-memory"))), "lib", "nbdkit-rocegw-memory-plugin.so")


class FarDevice:
    """nbdkit that serves a space of the donors on a Unix socket."""

    def __init__(self, host, donors, mebibytes, directory, *parameters):
        self.path = os.path.join(directory, "nbd")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        words = ["nbdkit", "--foreground", "--exit-with-parent", "--unix", self.path, _plugin(host), f"size={mebibytes}M", "slab=1M",
                 "timeout=3000", *parameters, *(f"donor={donor.host.address4}:{donor.port}" for donor in donors)]
        self.job = host.start(words)
        try:
            eventually("served", lambda: self._serves() or not self.job.running, 30)
            expect(self.job.running, "nbdkit has ended")
        except Exception:
            self.job.signal(signal.SIGKILL)
            self.job.wait(10)
            print(self.job.output)
            raise

    def _serves(self):
        try:
            NbdClient(self.path).close()
            return True
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        self.job.signal(number)
        status = self.job.wait(30)
        expect(status in (0, -number), f"nbdkit ended with {status}:\n{self.job.output}")


@contextlib.contextmanager
def far_device(host, donors, mebibytes, directory, *parameters):
    device = FarDevice(host, donors, mebibytes, directory, *parameters)
    try:
        yield device
    finally:
        if device.job.running:
            device.stop()


class Model:
    """Random requests on a device, compared with the bytes that it must have."""

    def __init__(self, client, seed):
        self.client, self.chance = client, random.Random(seed)
        self.bytes = bytearray(client.size)

    def step(self):
        kind = self.chance.choice(["read", "read", "write", "write", "fua", "zero", "trim", "flush"])
        length = self.chance.randrange(1, self.chance.choice([600, 9000, 300000]))
        offset = self.chance.randrange(len(self.bytes) - length)
        end = offset + length
        if kind == "read":
            expect(self.client.read(offset, length) == self.bytes[offset:end], f"wrong bytes at {offset} of {length}")
        elif kind in ("write", "fua"):
            self.bytes[offset:end] = self.chance.randbytes(length)
            self.client.write(offset, bytes(self.bytes[offset:end]), FUA if kind == "fua" else 0)
        elif kind == "flush":
            self.client.flush()
        else:
            self.bytes[offset:end] = bytes(length)
            (self.client.write_zeroes if kind == "zero" else self.client.trim)(offset, length)

    def check(self):
        for offset in range(0, len(self.bytes), MIB):
            expect(self.client.read(offset, MIB) == self.bytes[offset:offset + MIB], f"wrong bytes behind {offset}")


def _requests(pair):
    """Every kind of request; a donor is killed in between; the tools of libnbd agree."""
    host = pair.left
    with tempfile.TemporaryDirectory(prefix="far-nbd-") as directory, far_donors(pair.right, 3) as donors:
        with far_device(host, donors, 8, directory, "replicas=2") as device:
            told = host.run_plain(["nbdinfo", f"nbd+unix:///?socket={device.path}"])
            for words in ("8388608", "can_fua: true", "can_flush: true", "can_trim: true", "can_zero: true", "can_multi_conn: true"):
                expect(words in told, f"nbdinfo does not say {words}:\n{told}")
            client = NbdClient(device.path)
            model = Model(client, 7)
            for step in range(300):
                if step == 150:
                    donors[0].kill()
                model.step()
            model.check()
            client.close()
            copy = f"{directory}/image"
            host.run_plain(["nbdcopy", f"nbd+unix:///?socket={device.path}", copy])
            with open(copy, "rb") as file:
                expect(file.read() == model.bytes, "nbdcopy read other bytes")
            content = random.Random(8).randbytes(len(model.bytes))
            with open(copy, "wb") as file:
                file.write(content)
            host.run_plain(["nbdcopy", "--flush", copy, f"nbd+unix:///?socket={device.path}"])
            model.bytes, model.client = bytearray(content), NbdClient(device.path)
            model.check()
            model.client.close()
    return "300 requests"


def _lost(pair):
    """Without a replica exactly the pages of the dead donor fail, with EIO; zeroes and whole writes make them good again."""
    with tempfile.TemporaryDirectory(prefix="far-nbd-") as directory, far_donors(pair.right, 2, mebibytes=5) as donors:
        with far_device(pair.left, donors, 8, directory) as device:
            client = NbdClient(device.path)
            for block in range(client.size // _BLOCK):
                client.write(block * _BLOCK, block.to_bytes(8, "little") * (_BLOCK // 8))
            donors[0].kill()
            donors[0] = FarDonor(pair.right, 8)
            lost = []
            for block in range(client.size // _BLOCK):
                try:
                    expect(client.read(block * _BLOCK, _BLOCK) == block.to_bytes(8, "little") * (_BLOCK // 8), f"block {block} is wrong")
                except NbdError as error:
                    expect(error.errno == 5, f"block {block}: {error}")
                    lost.append(block)
            expect(0 < len(lost) < client.size // _BLOCK, f"{len(lost)} blocks are lost")

            def zeroed():
                try:
                    client.write_zeroes(0, client.size)
                    return True
                except NbdError:
                    return False
            eventually("writable", zeroed, 10)
            for offset in range(0, client.size, MIB):
                expect(client.read(offset, MIB) == bytes(MIB), f"zeroes are not zero behind {offset}")
            client.close()
    return f"{len(lost)} blocks lost"


def _survives(pair):
    """Server and donors are killed again and again: with the disk copy no flushed block is lost, none is wrong."""
    chance, versions, told = random.Random(3), [0] * 512, 0
    with tempfile.TemporaryDirectory(prefix="far-nbd-") as directory:
        for number in range(3):
            with far_donors(pair.right, 2) as donors, \
                    far_device(pair.left, donors, 2, directory, "replicas=2", f"disk-copy={directory}/copy") as device:
                client = NbdClient(device.path)
                for block, version in enumerate(versions):
                    got = int.from_bytes(client.read(block * _BLOCK, 8), "little")
                    expect(version <= got <= version + 1, f"block {block} has version {got}, {version} was flushed")
                    expect(client.read(block * _BLOCK, _BLOCK) == got.to_bytes(8, "little") * (_BLOCK // 8), f"block {block} is torn")
                    versions[block] = got
                for _ in range(200):
                    block = chance.randrange(len(versions))
                    version = (versions[block] + 1).to_bytes(8, "little") * (_BLOCK // 8)
                    client.write(block * _BLOCK, version, FUA)
                    versions[block] += 1
                    told += 1
                    if number == 1 and told % 100 == 50:
                        donors[told // 100 % 2].kill()
                client.write(0, (versions[0] + 1).to_bytes(8, "little") * (_BLOCK // 8))
                for victim in (device.job, *(donor.job for donor in donors)):
                    victim.signal(signal.SIGKILL)
                device.job.wait(10)
    return f"{told} flushed blocks"


def _full_disk(pair):
    """The disk of the disk copy is full when the server is stopped: what it lacks fails afterwards, and is not read as old bytes."""
    with tempfile.TemporaryDirectory(prefix="far-nbd-") as directory, far_donors(pair.right, 1) as donors:
        disk = f"{directory}/disk"
        os.mkdir(disk)
        run(["mount", "-t", "tmpfs", "-o", f"size={3 * MIB}", "tmpfs", disk])
        try:
            parameters = (8, directory, f"disk-copy={disk}/copy")
            with far_device(pair.left, donors, *parameters) as device:
                client = NbdClient(device.path)
                blocks = client.size // _BLOCK
                for block in range(blocks):
                    client.write(block * _BLOCK, (block + 1).to_bytes(8, "little") * (_BLOCK // 8))
                for _ in range(2):
                    try:
                        client.flush()
                        raise AssertionError("a flush succeeded although the disk is full")
                    except NbdError as error:
                        expect(error.errno == 5, f"flush: {error}")
                client.close()
                device.stop()
                expect(re.search(r"lacks \d+ pages; they fail", device.job.output), f"nothing was said:\n{device.job.output}")
            run(["mount", "-o", f"remount,size={16 * MIB}", disk])
            with far_device(pair.left, donors, *parameters) as device:
                client = NbdClient(device.path)
                lost = []
                for block in range(blocks):
                    try:
                        got = client.read(block * _BLOCK, _BLOCK)
                        expect(got == (block + 1).to_bytes(8, "little") * (_BLOCK // 8), f"block {block} is wrong")
                    except NbdError as error:
                        expect(error.errno == 5, f"block {block}: {error}")
                        lost.append(block)
                expect(0 < len(lost) < blocks, f"{len(lost)} blocks are lost")
                for block in lost:
                    client.write(block * _BLOCK, (block + 1).to_bytes(8, "little") * (_BLOCK // 8))
                client.flush()
                client.close()
                device.job.signal(signal.SIGKILL)
                device.job.wait(10)
            with far_device(pair.left, donors, *parameters) as device:
                client = NbdClient(device.path)
                for block in range(blocks):
                    expect(client.read(block * _BLOCK, 8) == (block + 1).to_bytes(8, "little"), f"block {block} is wrong at last")
                client.close()
        finally:
            run(["umount", disk])
    return f"{len(lost)} of {blocks} blocks failed"


def far_nbd_cases():
    return [Case("far.nbd.requests", 4200, _requests), Case("far.nbd.lost", 4200, _lost), Case("far.nbd.survives", 4200, _survives),
            Case("far.nbd.full_disk", 4200, _full_disk)]
