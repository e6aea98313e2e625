#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter iser before Debian's tgt and QEMU's initiator on two hosts with gateways. The conformance test of adapters takes a
disk from TCP to iSER and back, each step twice, then the steps of a migration are made to the end, finalize among them. A canary
workload writes and compares blocks all the time: no error, no wrong byte. Under a minute; needs root, and the packages tgt
qemu-block-extra.

  tests/interop/iser_paths/run.py --binaries build/ci/bin [--record FOLDER]

--record writes what tgtadm and QEMU printed to files: the unit tests of the adapter read such recordings."""

import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "agent", "migration", "adapters")]

from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, LocalJob, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import run_steps  # noqa: E402
from rocegw_adapter.qemu_disk import Monitor  # noqa: E402

ADAPTER = os.path.join(ROOT, "agent", "migration", "adapters", "iser.py")
IQN = "iqn.2026-11.com.example:disk"
INITIATOR = "iqn.2026-11.com.example:machine"
CONTROL = str(os.getpid() % 30000 + 1000)  # tgtd's number on this machine
FORWARD = ("health", "backup", "ok-to-stop", "add-path", "verify-path", "switch", "drain", "verify")
BYTES = 64 << 20


class Scene:
    def __init__(self, lab, binaries, record):
        self.lab = lab
        self.binaries = binaries
        self.record_folder = record
        self.target, self.machine = gateway_pair(lab, binaries)
        for host in (self.target, self.machine):
            host.start_gateway()
        self.store, self.qmp, self.nbd, self.status = (lab.path(name) for name in ("store", "qmp", "nbd", "status"))
        self.canary = None
        self._describe()

    def _describe(self):
        target = self.target.address4
        description = {
            "control_port": int(CONTROL), "store": self.store,
            "nodes": [{"name": "target", "transport": "tcp", "gateway": True,
                       "paths": {"tcp": {"traddr": target, "tid": 1, "iqn": IQN},
                                 "gateway": {"traddr": target, "tid": 2, "iqn": IQN + ".iser"}}}],
            "hosts": [{"name": "machine", "qmp": self.qmp, "node": "disk", "initiator": INITIATOR}],
            "commands": {"save-machine": ["true"]},  # the machine is not started again
            "questions": {"exercise": ["sleep", "0.5"], "journal": ["grep", "-q", "^intact", self.status]}}
        with open(self.lab.path("disks.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        self.adapter = self.lab.path("iser")
        with open(self.adapter, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport ROCEGW_ISER_DIR={self.lab.directory} ROCEGW_ISER_STATE={self.lab.path('backups')}\n"
                       f"exec ip netns exec {self.target.namespace} {os.path.abspath(ADAPTER)}\n")
        os.chmod(self.adapter, 0o755)

    def tgtadm(self, *words):
        return run(["tgtadm", "-C", CONTROL, "--lld", "iscsi", *words])

    def use_tcp(self):
        """The storage as the site has it before: a target of tgt, and a machine of QEMU that uses it."""
        with open(self.store, "wb") as file:
            file.truncate(BYTES)
        daemon = self.target.start(["tgtd", "-f", "-C", CONTROL])
        self.lab.on_close(lambda: daemon.signal(9))
        eventually("tgtd answers", lambda: LocalJob(["tgtadm", "-C", CONTROL, "--mode", "sys", "--op", "show"]).wait(10) == 0)
        self.tgtadm("--mode", "target", "--op", "new", "--tid", "1", "-T", IQN)
        self.tgtadm("--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", "1", "-b", self.store)
        self.tgtadm("--mode", "target", "--op", "bind", "--tid", "1", "-I", "ALL")
        # libiscsi 1.19 reads a field of a fresh iSER connection before it writes it, and ends with a segmentation fault
        # unless memory is zero.
        machine = self.machine.start([
            "env", "MALLOC_PERTURB_=255", "qemu-storage-daemon", "--chardev", f"socket,path={self.qmp},server=on,wait=off,id=qmp", "--monitor", "chardev=qmp",
            "--blockdev", f"driver=iscsi,node-name=disk-before,transport=tcp,portal={self.target.address4}:3260,target={IQN},lun=1,"
            f"initiator-name={INITIATOR},cache.direct=on", "--blockdev", "driver=raw,node-name=disk,file=disk-before",
            "--nbd-server", f"addr.type=unix,addr.path={self.nbd}", "--export", "type=nbd,id=disk,node-name=disk,name=disk,writable=on"])
        self.lab.on_close(machine.stop)
        eventually("the machine's disk", lambda: os.path.exists(self.nbd))
        self.canary = self.lab.start([os.path.join(HERE, "nbd_canary.py"), self.nbd, "disk", self.status])
        eventually("the canary's first words", lambda: os.path.exists(self.status))
        self.record("tcp")

    def record(self, name):
        if not self.record_folder:
            return
        os.makedirs(self.record_folder, exist_ok=True)
        with open(os.path.join(self.record_folder, f"{name}.tgt_targets"), "w", encoding="utf-8") as file:
            file.write(self.tgtadm("--mode", "target", "--op", "show"))
        with Monitor(self.qmp) as monitor, open(os.path.join(self.record_folder, f"{name}.qemu_nodes"), "w", encoding="utf-8") as file:
            json.dump(monitor.execute("query-named-block-nodes", {"flat": True}), file, indent=1)

    # What is judged ---------------------------------------------------------------------------------------------------

    def conforms(self):
        """The conformance test passes, there and back."""
        job = LocalJob([os.path.join(self.binaries, "rocegwctl"), "migrate", "adapter-test", "disks", "--to", "gateway", "--change", "target",
                        "--", self.adapter])
        status = job.wait(300)
        if status != 0:
            raise LabError(f"adapter-test: exit status {status}\n{job.output}")
        return f"{job.output.count('ok ')} checks"

    def call(self, name):
        request = {"protocol": 1, "id": "1", "call": name, "cluster": "disks", "node": "target", "from": "tcp", "to": "gateway",
                   "deadline_seconds": 30}
        answer = {}
        for _ in range(20):
            output = run(["sh", "-c", f"echo '{json.dumps(request)}' | {self.adapter}"])
            answer = json.loads(output)
            if answer.get("outcome") != "not-yet":
                break
            time.sleep(0.2)
        if answer.get("outcome") != "done":
            raise LabError(f"{name}: {answer}")
        return answer

    def there(self):
        """A migration: the machine's I/O goes over iSER, by both witnesses."""
        answer = {}
        for name in FORWARD:
            answer = self.call(name)
            if name == "verify-path":
                self.record("both")
        if (answer.get("stated"), answer.get("counted"), answer.get("journal_intact")) != ("gateway", "gateway", True):
            raise LabError(f"verify: {answer}")
        self.record("iser")
        return self.intact_so_far()

    def back(self):
        """Its way back: the target is as before, and bytes go over TCP again."""
        answer = {}
        for name in ("switch-back", "drain-new", "remove-new", "restore", "verify-old"):
            answer = self.call(name)
        if (answer.get("stated"), answer.get("counted"), answer.get("journal_intact")) != ("tcp", "tcp", True):
            raise LabError(f"verify-old: {answer}")
        return self.intact_so_far()

    def finalized(self):
        """A migration to its end: the TCP target is gone."""
        self.there()
        removed = self.call("remove-old")
        text = self.tgtadm("--mode", "target", "--op", "show")
        if removed.get("clients_on_old") != 0 or "Target 1:" in text or "Driver: iser" not in text:
            raise LabError(f"remove-old: {removed}\n{text}")
        return self.intact_so_far()

    def intact_so_far(self):
        with open(self.status, encoding="ascii") as file:
            text = file.read()
        if not text.startswith("intact"):
            raise LabError(text)
        return text.strip()

    def intact(self):
        """The canary workload saw no error and no other byte than it wrote, and every block is as it was acknowledged."""
        self.canary.signal(15)
        if self.canary.wait(60) != 0:
            raise LabError(self.canary.output + self.intact_so_far())
        return self.intact_so_far()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--record", help="a folder for what the tools print")
    arguments = parser.parse_args()
    with Lab() as lab:
        scene = Scene(lab, os.path.abspath(arguments.binaries), arguments.record)
        scene.use_tcp()
        return run_steps("iser_paths", (scene.conforms, scene.there, scene.back, scene.finalized, scene.intact))


if __name__ == "__main__":
    sys.exit(main())
