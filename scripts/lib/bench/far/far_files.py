#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files in remote memory (rocegw-memory mount) in turns with files of the same other host over TCP (sshfs, on tmpfs there): writes
and reads of 4 KiB to 1 MiB, in sequence and at random places, past the page cache where the file system allows it. Every byte that
is read is checked. NFS is not compared: the kernel of the tests has none. Variants take turns in each round; the table shows
medians.

RDMAbox's figure 12 has 3.7 times the writes and 5.9 times the reads of GlusterFS. Needs root, FUSE, sshfs and sshd."""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.daemon import start_daemon  # noqa: E402
from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from verbs_cases.far.files import direct_read, direct_write  # noqa: E402
from verbs_cases.far.load_cases import far_donors  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
BLOCKS = (4 * KIB, 64 * KIB, MIB)
ORDERS = ("sequential", "random")


@contextlib.contextmanager
def far_files(lab, host, donors, mebibytes):
    path = os.path.join(host.directory, "far-files")
    os.makedirs(path, exist_ok=True)
    words = [*host.launcher, host.program("rocegw-memory"), "mount", path, "--size", f"{mebibytes}MiB", "--slab", "4MiB"]
    for donor in donors:
        words += ["--donor", f"{donor.host.address4}:{donor.port}"]
    job = start_daemon(lab, ["env", f"ROCEGW_SOCKET={host.attach_socket}", *words], host.directory, "rocegw-memory mount",
                       host.namespace)
    try:
        yield f"/proc/{job.pid}/root{path}"
    finally:
        job.stop()


@contextlib.contextmanager
def ssh_files(client, server, folder):
    """sshfs on the client's host of a folder on the server's."""
    keys = os.path.join(server.directory, "ssh")
    os.makedirs(keys, exist_ok=True)
    os.makedirs("/run/sshd", exist_ok=True)
    for name in ("host", "user"):
        path = os.path.join(keys, name)
        if not os.path.exists(path):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    shutil.copyfile(f"{keys}/user.pub", f"{keys}/authorized")
    os.chmod(f"{keys}/authorized", 0o600)
    daemon = server.start_plain(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", f"{keys}/host", "-o", "Port=2222",
                                 "-o", f"AuthorizedKeysFile={keys}/authorized", "-o", "StrictModes=no", "-o", "PermitRootLogin=yes",
                                 "-o", "UsePAM=no", "-o", "PidFile=none", "-o", "Subsystem=sftp internal-sftp"])
    path = os.path.join(client.directory, "ssh-files")
    os.makedirs(path, exist_ok=True)
    mount = client.start_plain(["sshfs", "-f", "-p", "2222", "-o", f"IdentityFile={keys}/user,StrictHostKeyChecking=no,"
                                f"UserKnownHostsFile=/dev/null,direct_io", f"root@{server.address4}:{folder}", path])
    place = f"/proc/{mount.pid}/root{path}"
    try:
        eventually(f"sshfs: {mount.output}{daemon.output}", lambda: os.path.exists(f"{place}/there"), 20)
        yield place
    finally:
        mount.stop()
        daemon.stop()


def measure(path, mebibytes, block, order, seed):
    """MiB per second of writes and of reads."""
    data = random.Random(seed).randbytes(block)
    offsets = list(range(0, mebibytes * MIB, block))[:512]
    if order == "random":
        random.Random(seed + 1).shuffle(offsets)
    speeds = []
    for act in (lambda at: direct_write(path, at, data), lambda at: direct_read(path, at, block) == data or sys.exit("wrong bytes")):
        begin = time.monotonic()
        for at in offsets:
            act(at)
        speeds.append(len(offsets) * block / MIB / (time.monotonic() - begin))
    return speeds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=32, help="of the file, in MiB")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if shutil.which("sshfs") is None or not os.path.exists("/usr/sbin/sshd"):
        raise SystemExit("sshfs and openssh-server are needed (Debian packages)")
    rows = {}
    with Lab() as lab:
        hosts = gateway_pair(lab, os.path.abspath(arguments.binaries))
        for host in hosts:
            host.start_gateway()
        shared = os.path.join("/dev/shm", f"far-files-{os.getpid()}")
        os.makedirs(shared)
        try:
            with open(f"{shared}/there", "wb"):
                pass
            with far_donors(hosts[1], 2, mebibytes=2 * arguments.size) as donors, \
                    far_files(lab, hosts[0], donors, 2 * arguments.size) as remote, ssh_files(hosts[0], hosts[1], shared) as ssh:
                places = {"remote memory": remote, "sshfs": ssh}
                for place in places.values():
                    with open(f"{place}/file", "wb") as file:
                        file.truncate(arguments.size * MIB)
                for number in range(arguments.rounds):
                    for block in BLOCKS:
                        for order in ORDERS:
                            for name, place in places.items():
                                speeds = measure(f"{place}/file", arguments.size, block, order, number)
                                rows.setdefault((block, order), {}).setdefault(name, []).append(speeds)
        finally:
            shutil.rmtree(shared)
    print("  block  order            write MiB/s: remote  sshfs  ratio    read MiB/s: remote  sshfs  ratio")
    for (block, order), by_name in rows.items():
        cells = []
        for which in (0, 1):
            remote, ssh = (statistics.median(speeds[which] for speeds in by_name[name]) for name in ("remote memory", "sshfs"))
            cells += [remote, ssh, remote / ssh]
        print(f"  {block // KIB:5}K {order:12} {cells[0]:25.1f} {cells[1]:6.1f} {cells[2]:6.1f} {cells[3]:25.1f} {cells[4]:6.1f} {cells[5]:6.1f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump([{"block": block, "order": order, **by_name} for (block, order), by_name in rows.items()], file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
