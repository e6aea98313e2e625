#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter iser before Linux's own target (LIO): a guest with Debian's kernel, iscsi_target_mod and ib_isert on soft-RoCE, and
QEMU's initiator in the same guest, whose user space knows nothing of gateways. The conformance test of adapters takes a disk from
TCP to iSER and back, each step twice, then the steps of a migration are made to the end, finalize among them. A canary workload
writes and compares blocks all the time. Some minutes; needs root, and the package qemu-block-extra.

  tests/interop/lio_paths/run.py --binaries build/ci/bin"""

import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.guest_adapter import Bridge, install_adapters, put  # noqa: E402
from netlab.job import LabError, LocalJob  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.rxe_guest import RxeGuest, prepare_image  # noqa: E402
from netlab.steps import run_steps  # noqa: E402

IQN = "iqn.2026-11.com.example:disk"
INITIATOR = "iqn.2026-11.com.example:machine"
ADDRESS = "10.77.0.1"
MODULES = ("target_core_mod", "target_core_file", "iscsi_target_mod", "ib_isert", "tcp_diag", "crc32c_generic")
INITIATOR_OF_QEMU = "/usr/lib/x86_64-linux-gnu/qemu/block-iscsi.so"
FORWARD = ("health", "backup", "ok-to-stop", "add-path", "verify-path", "switch", "drain", "verify")
DESCRIPTION = {
    "target": "lio", "store": "fileio_0/disk",
    "nodes": [{"name": "target", "transport": "tcp", "rnic": True, "gateway": False,
               "paths": {"tcp": {"traddr": ADDRESS, "iqn": IQN}, "rnic": {"traddr": ADDRESS, "iqn": IQN + ".iser"}}}],
    "hosts": [{"name": "machine", "qmp": "/tmp/qmp", "node": "disk", "initiator": INITIATOR}],
    "commands": {"save": ["true"], "save-machine": ["true"]},  # nothing is started again
    "questions": {"exercise": ["sleep", "2"], "journal": ["grep", "-q", "^intact", "/tmp/status"]}}
# The kernel looks for the target of a link from the folder of the process, hence whole paths.
LIO = "/sys/kernel/config/target"
MAKE_TARGET = f"""
mount -t configfs configfs /sys/kernel/config
mkdir -p {LIO} && truncate -s 40M /tmp/disk
mkdir -p {LIO}/core/fileio_0/disk && cd {LIO}/core/fileio_0/disk
echo fd_dev_name=/tmp/disk,fd_dev_size=41943040 > control && echo 1 > enable
mkdir {LIO}/iscsi && mkdir {LIO}/iscsi/{IQN} && mkdir {LIO}/iscsi/{IQN}/tpgt_1 && cd {LIO}/iscsi/{IQN}/tpgt_1
echo 0 > attrib/authentication && mkdir lun/lun_0 && ln -s {LIO}/core/fileio_0/disk lun/lun_0/disk
mkdir acls/{INITIATOR} && mkdir acls/{INITIATOR}/lun_0 && ln -s $PWD/lun/lun_0 acls/{INITIATOR}/lun_0/disk
mkdir np/{ADDRESS}:3260 && echo 1 > enable
"""
MACHINE = (f"env MALLOC_PERTURB_=255 QEMU_MODULE_DIR=/bin qemu-storage-daemon --chardev socket,path=/tmp/qmp,server=on,wait=off,id=qmp "
           f"--monitor chardev=qmp --blockdev driver=iscsi,node-name=disk-before,transport=tcp,portal={ADDRESS}:3260,target={IQN},lun=0,"
           f"initiator-name={INITIATOR},cache.direct=on --blockdev driver=raw,node-name=disk,file=disk-before "
           "--nbd-server addr.type=unix,addr.path=/tmp/nbd --export type=nbd,id=disk,node-name=disk,name=disk,writable=on")


class Scene:
    def __init__(self, lab, binaries):
        self.binaries = binaries
        namespace = lab.namespace("guest")
        lab.tap(namespace, "tap0", 4200)
        options = ["--python", "--tool", "ss", "--tool", "qemu-storage-daemon"]
        for module in MODULES:
            options += ["--module", module]
        image = prepare_image(lab, os.path.join(binaries, "..", "guest"), os.path.join(binaries, "guest_agent"), [INITIATOR_OF_QEMU], options)
        self.guest = RxeGuest(lab, "target", namespace, "tap0", (ADDRESS, "fd77::1"), image).wait_ready()
        self.bridge = Bridge(lab, self.guest, "ROCEGW_ISER_DIR=/tmp ROCEGW_ISER_STATE=/tmp/state /bin/adapters/iser.py")
        install_adapters(self.guest)
        put(self.guest, "/tmp/disks.json", json.dumps(DESCRIPTION))
        for path in ("interop/iser_paths/nbd_canary.py", "support/netlab/canary.py"):
            with open(os.path.join(ROOT, "tests", path), encoding="utf-8") as file:
                put(self.guest, os.path.join("/tests", path), file.read(), "755")
        put(self.guest, "/tests/support/netlab/__init__.py", "")
        # An emulated processor: the adapter comes before the canary workload.
        put(self.guest, "/tests/with_nice", "#!/usr/bin/python3\nimport os, sys\nos.nice(int(sys.argv[1]))\nos.execv(sys.argv[2], sys.argv[2:])\n", "755")
        self.canary = None

    def use_tcp(self):
        """The storage as the site has it before: a target of the kernel, and a machine that uses it over TCP."""
        self.guest.run_plain(f"set -ex\n{MAKE_TARGET}")
        self.guest.start_plain(MACHINE)
        self.guest.run_plain("until [ -S /tmp/nbd ]; do usleep 50000; done", 60)
        self.canary = self.guest.start_plain("/tests/with_nice 15 /tests/interop/iser_paths/nbd_canary.py /tmp/nbd disk /tmp/status")
        self.guest.run_plain("until [ -s /tmp/status ]; do usleep 50000; done", 60)
        return self.status()

    def status(self):
        return self.guest.run_plain("cat /tmp/status").strip()

    # What is judged ---------------------------------------------------------------------------------------------------

    def conforms(self):
        """The conformance test passes, there and back."""
        job = LocalJob([os.path.join(self.binaries, "rocegwctl"), "migrate", "adapter-test", "disks", "--to", "rnic", "--change", "target",
                        "--", *self.bridge.words()])
        status = job.wait(900)
        if status != 0:
            raise LabError(f"adapter-test: exit status {status}\n{job.output}")
        return f"{job.output.count('ok ')} checks; {self.status()}"

    def call(self, name):
        return self.bridge.call({"call": name, "cluster": "disks", "node": "target", "from": "tcp", "to": "rnic"})

    def there(self):
        """A migration: the machine's I/O goes over iSER, by both witnesses."""
        answer = {}
        for name in FORWARD:
            answer = self.call(name)
        if (answer.get("stated"), answer.get("counted"), answer.get("journal_intact")) != ("rnic", "rnic", True):
            raise LabError(f"verify: {answer}")
        return self.status()

    def back(self):
        """Its way back: the kernel's target is as before, and bytes go over TCP again."""
        answer = {}
        for name in ("switch-back", "drain-new", "remove-new", "restore", "verify-old"):
            answer = self.call(name)
        if (answer.get("stated"), answer.get("counted"), answer.get("journal_intact")) != ("tcp", "tcp", True):
            raise LabError(f"verify-old: {answer}")
        targets = self.guest.run_plain("ls /sys/kernel/config/target/iscsi")
        if IQN + ".iser" in targets:
            raise LabError(f"the new target is there yet: {targets}")
        return self.status()

    def finalized(self):
        """A migration to its end: the TCP target is gone."""
        self.there()
        removed = self.call("remove-old")
        targets = [name for name in self.guest.run_plain("ls /sys/kernel/config/target/iscsi").split() if name.startswith("iqn")]
        if removed.get("clients_on_old") != 0 or targets != [IQN + ".iser"]:
            raise LabError(f"{removed}; targets {targets}")
        return self.status()

    def intact(self):
        """The canary workload saw no error and no other byte than it wrote, and every block is as it was acknowledged."""
        self.guest.run_plain("kill -TERM $(pgrep -f nbd_canary.py)")
        if self.canary.wait(120) != 0:
            raise LabError(self.canary.output)
        return self.status()

    def state(self):
        return self.guest.run_plain("cat /tmp/status; tail -n 20 /tmp/adapter.err; cd /sys/kernel/config/target/iscsi; "
                                    "find . -maxdepth 5 -name 'iqn*' -o -name '10.*' -o -name 'lun_*'; dmesg | tail -n 20")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    arguments = parser.parse_args()
    with Lab() as lab:
        began = time.monotonic()
        scene = Scene(lab, os.path.abspath(arguments.binaries))
        print(f"a guest, {time.monotonic() - began:.1f} s", flush=True)
        return run_steps("lio_paths", (scene.use_tcp, scene.conforms, scene.there, scene.back, scene.finalized, scene.intact), scene.state)


if __name__ == "__main__":
    sys.exit(main())
