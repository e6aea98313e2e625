#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter nvmeof before Linux's own target and initiator: two guests with Debian's kernel, one with nvmet, one with
nvme-tcp, nvme-rdma and native multipath; both have soft-RoCE. The conformance test of adapters takes the target from TCP to
RDMA and back, each step twice, then the steps of a migration are made to the end, finalize among them. A canary workload
writes and compares blocks all the time: no error, no wrong byte. Some minutes; needs root.

  tests/interop/nvme_paths/run.py --binaries build/ci/bin [--record FOLDER]

--record writes what nvme-cli, ss and rdma printed to files: the unit tests of the adapter read such recordings."""

import argparse
import json
import os
import re
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

NQN = "nqn.2026-11.com.example:disks"
HOST_NQN = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
TARGET, HOST = "10.77.0.1", "10.77.0.2"
MODULES = ("nvmet", "nvmet-tcp", "nvmet-rdma", "nvme-tcp", "nvme-rdma", "tcp_diag")
DESCRIPTION = {
    "subsystem": NQN, "target": "linux",
    "nodes": [{"name": "target", "transport": "tcp", "rnic": True, "gateway": False,
               "paths": {"tcp": {"traddr": TARGET}, "rnic": {"traddr": TARGET}}}],
    "hosts": [{"name": "host", "nqn": HOST_NQN, "run": ["/bin/on-host"]}],
    "questions": {"exercise": ["/bin/on-host", "dd", "if=/dev/nvme0n1", "of=/dev/null", "bs=64k", "count=32", "iflag=direct"],
                  "journal": ["/bin/on-host", "grep", "-q", "^intact", "/tmp/status"]}}
MAKE_TARGET = f"""
mount -t configfs configfs /sys/kernel/config
dd if=/dev/zero of=/tmp/disk bs=1M count=16 2>/dev/null
cd /sys/kernel/config/nvmet/subsystems && mkdir {NQN} && cd {NQN} && echo 1 > attr_allow_any_host
mkdir namespaces/1 && echo -n /tmp/disk > namespaces/1/device_path && echo 1 > namespaces/1/buffered_io
echo 1 > namespaces/1/enable
mkdir ../../ports/7 && cd ../../ports/7 && echo ipv4 > addr_adrfam && echo tcp > addr_trtype
echo {TARGET} > addr_traddr && echo 4420 > addr_trsvcid && ln -s ../../subsystems/{NQN} subsystems/{NQN}
"""
# The prefix "run" of a site would be ssh. This one is a shell behind a TCP port, whose last line is the exit status.
SERVE = "#!/bin/sh\nread words\n$words 2>/dev/null\necho \"status $?\"\n"
ON_HOST = f"""#!/bin/sh
output=$(echo "$*" | nc {HOST} 7777)
printf '%s' "$output" | sed '$d'
exit "$(printf '%s\\n' "$output" | sed -n '$s/^status //p')"
"""
FORWARD = ("health", "backup", "ok-to-stop", "add-path", "verify-path", "switch", "drain", "verify")


class Scene:
    """Both guests, the disk and the canary workload."""

    def __init__(self, lab, binaries, record):
        self.binaries = binaries
        self.record = record
        namespace = lab.namespace("bridge")
        for tap in ("tap0", "tap1"):
            lab.tap(namespace, tap, 4200)
        lab.bridge(namespace, "link0", ("tap0", "tap1"), 4200)
        options = ["--python", "--tool", "nvme", "--tool", "ss"]
        for module in MODULES:
            options += ["--module", module]
        image = prepare_image(lab, os.path.join(binaries, "..", "guest"), os.path.join(binaries, "guest_agent"),
                              [os.path.join(binaries, "block_journal")], options)
        self.target = RxeGuest(lab, "target", namespace, "tap0", (TARGET, "fd77::1"), image)
        self.host = RxeGuest(lab, "host", namespace, "tap1", (HOST, "fd77::2"), image)
        for guest in (self.target, self.host):
            guest.wait_ready()
        self.bridge = Bridge(lab, self.target, "ROCEGW_NVMEOF_DIR=/tmp ROCEGW_NVMEOF_STATE=/tmp/state /bin/adapters/nvmeof.py")
        self._install()
        self.journal = None

    def _install(self):
        install_adapters(self.target)
        put(self.target, "/tmp/disks.json", json.dumps(DESCRIPTION))
        put(self.target, "/bin/on-host", ON_HOST, "755")
        put(self.host, "/bin/serve", SERVE, "755")
        self.host.start_plain("nc -ll -p 7777 -e /bin/serve")
        self.target.run_plain(f"until nc -w 1 {HOST} 7777 < /dev/null > /dev/null; do usleep 50000; done")

    def use_tcp(self):
        """The storage as the site has it before: one path, in use."""
        self.target.run_plain(MAKE_TARGET)
        self.host.run_plain(f"nvme connect -t tcp -a {TARGET} -s 4420 -n {NQN} -q {HOST_NQN} --ctrl-loss-tmo=-1 && "
                            "until [ -b /dev/nvme0n1 ]; do usleep 50000; done")
        self.journal = self.host.start_plain("block_journal /dev/nvme0n1 3600 /tmp/status")
        self.host.run_plain("until grep -q intact /tmp/status; do usleep 50000; done")

    # What is judged ---------------------------------------------------------------------------------------------------

    def conforms(self):
        """The conformance test passes, there and back."""
        began = time.monotonic()
        job = LocalJob([os.path.join(self.binaries, "rocegwctl"), "migrate", "adapter-test", "disks", "--to", "rnic", "--change",
                        "target", "--", *self.bridge.words()])
        status = job.wait(900)
        print(job.output, flush=True)
        if status != 0:
            raise LabError(f"adapter-test: exit status {status}\n{self.state()}")
        return f"{job.output.count('ok ')} checks in {time.monotonic() - began:.0f} s"

    def call(self, name):
        try:
            return self.bridge.call({"call": name, "cluster": "disks", "node": "target", "from": "tcp", "to": "rnic"})
        except LabError as error:
            raise LabError(f"{error}\n{self.state()}") from error

    def killed(self):
        """An adapter that is killed while it makes the port is no trouble: the next one finishes the port."""
        for name in ("health", "backup"):
            self.call(name)
        self.target.run_plain("mkdir /sys/kernel/config/nvmet/ports/1 && echo 1 > /tmp/state/disks/target/port")
        self.call("add-path")
        self.call("verify-path")
        ports = self.target.run_plain("ls /sys/kernel/config/nvmet/ports").split()
        if ports != ["1", "7"]:
            raise LabError(f"ports {ports}")
        for name in ("remove-new", "restore"):
            self.call(name)
        return "port 1 was finished, and removed again"

    def finalized(self):
        """A migration to its end: the old path is gone, and the disk is read and written over RDMA alone."""
        for name in FORWARD:
            answer = self.call(name)
        if (answer.get("stated"), answer.get("counted"), answer.get("journal_intact")) != ("rnic", "rnic", True):
            raise LabError(f"verify: {answer}")
        self.record_tools("both_paths")
        removed = self.call("remove-old")
        if removed.get("clients_on_old") != 0:
            raise LabError(f"remove-old: {removed}")
        self.record_tools("rdma_only")
        paths = self.host.run_plain("nvme list-subsys")
        ports = self.target.run_plain("cat /sys/kernel/config/nvmet/ports/*/addr_trtype").split()
        if "tcp" in paths or ports != ["rdma"]:
            raise LabError(f"{paths}\nports {ports}")
        return "the TCP port is gone"

    def intact(self):
        """The canary workload saw no error and no other byte than it wrote."""
        self.host.run_plain("pid=$(pidof block_journal) && kill -TERM $pid")
        status = self.journal.wait(60)
        if status != 0 or not re.search(r"^intact: [1-9]", self.journal.output, re.MULTILINE):
            raise LabError(f"canary workload: exit status {status}\n{self.journal.output}\n{self.state()}")
        return self.journal.output.strip()

    def state(self):
        story = [self.host.run_plain("nvme list-subsys /dev/nvme0n1 -o json; cat /tmp/status; dmesg | tail -n 20"),
                 self.target.run_plain("cat /tmp/adapter.err; cd /sys/kernel/config/nvmet/ports; grep . */addr_tr* */ana_groups/*/*; "
                                       "dmesg | tail -n 20")]
        return "\n".join(story)

    def record_tools(self, name):
        if not self.record:
            return
        os.makedirs(self.record, exist_ok=True)
        for guest, tool, command in ((self.host, "list_subsys", "nvme list-subsys -o json"),
                                     (self.host, "list_subsys_device", "nvme list-subsys /dev/nvme0n1 -o json"),
                                     (self.host, "sysfs_subsystem", "ls /sys/class/nvme-subsystem/nvme-subsys0"),
                                     (self.target, "rdma_cm_id", "rdma -j resource show cm_id"),
                                     (self.target, "ss_bytes", "ss -HtinO state established sport = :4420"),
                                     (self.target, "ss_peers", "ss -Htn state established sport = :4420")):
            with open(os.path.join(self.record, f"{name}.{tool}"), "w", encoding="utf-8") as file:
                file.write(guest.run_plain(command))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--record", help="a folder for what the tools print")
    arguments = parser.parse_args()
    with Lab() as lab:
        began = time.monotonic()
        scene = Scene(lab, os.path.abspath(arguments.binaries), arguments.record)
        print(f"two guests, {time.monotonic() - began:.1f} s", flush=True)
        scene.use_tcp()
        scene.record_tools("tcp_only")
        return run_steps("nvme_paths", (scene.conforms, scene.killed, scene.finalized, scene.intact))


if __name__ == "__main__":
    sys.exit(main())
