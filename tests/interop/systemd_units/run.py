#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter generic under a systemd that runs: a fresh Debian (debootstrap) whose systemd is the first process of a container, the
unit of the agent as it is packaged with the drop-in file of the adapter, and a replica of examples/kv_store as a unit of the site. In
the place of the agent the unit runs the conformance test, which takes the replica from TCP to the host's gateway and back, each step
twice: files, units and limits change under the sandbox of the agent. Without the drop-in file the same test has to fail. Needs root,
the Debian mirror, and cgroup2.

  tests/interop/systemd_units/run.py --binaries build/ci/bin [--root FOLDER]

--root: a folder for debootstrap that is kept, and used again."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, LocalJob, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from netlab.steps import run_steps  # noqa: E402

INCLUDE = "systemd,systemd-sysv,dbus,python3,libibverbs1,librdmacm1"
CGROUPS = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
PRELOAD = "LD_PRELOAD=/usr/lib/librocegw-verbs.so ROCEGW_SOCKET=/host/attach.sock"
BOOT = """
mount --make-rprivate /
mount --bind {root} {root}
mount -t proc proc {root}/proc
mount -t sysfs sysfs {root}/sys
mount -t cgroup2 cgroup2 {root}/sys/fs/cgroup
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs {root}/$folder; done
chmod 1777 {root}/tmp
for device in null zero full random urandom tty; do touch {root}/dev/$device; mount --bind /dev/$device {root}/dev/$device; done
mkdir -p {root}/dev/shm {root}/dev/pts {root}/host {root}/old
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts {root}/dev/pts && ln -s pts/ptmx {root}/dev/ptmx
mount -t tmpfs tmpfs {root}/dev/shm
mount --bind {host} {root}/host
cd {root} && pivot_root . old
exec chroot . sh -ec 'umount -l /old; exec env -i container=rocegw PATH=/usr/sbin:/usr/bin /lib/systemd/systemd'
"""
KV_UNIT = """[Service]
ExecStart=/usr/bin/kv_store serve /etc/kv/kv.conf
User=daemon
StateDirectory=kv
LimitMEMLOCK=infinity
"""
KV_DROP_IN = f"""[Service]
Environment={PRELOAD}
ExecStartPre=touch /var/lib/kv/rdma-path
"""
# In the place of the agent, in its sandbox.
TEST_DROP_IN = """[Unit]
ConditionDirectoryNotEmpty=
[Service]
Type=oneshot
Restart=no
ExecStart=
ExecStart=/usr/bin/rocegwctl migrate adapter-test kv --change h1 -- /usr/libexec/rocegw/adapters/generic
StandardOutput=truncate:/var/log/adapter-test
StandardError=inherit
ReadWritePaths=/etc/kv
"""
# RoCE bytes of the gateway, and segments of TCP as if each had 1000 bytes: on the loopback device they have more.
BYTES = """#!/usr/bin/python3
import urllib.request
text = urllib.request.urlopen("http://127.0.0.1:7474/metrics").read().decode()
roce = sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("rocegw_tx_bytes_total"))
names, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Tcp:")]
print(int(roce), 1000 * int(values[names.index("OutSegs")]))
"""
HEALTH = json.dumps({"protocol": 1, "id": "1", "call": "health", "cluster": "kv", "node": "h1", "from": "tcp", "to": "gateway",
                     "deadline_seconds": 20})
# What a site's drop-in file may say, and a part of the adapter's answer.
KEPT_AWAY = {
    "unset": ("UnsetEnvironment=LD_PRELOAD", "no LD_PRELOAD"),
    "cleared": ("ExecStart=\nExecStart=/usr/bin/env -i /usr/bin/kv_store serve /etc/kv/kv.conf", "no LD_PRELOAD"),
    "hidden": ("InaccessiblePaths=/usr/lib/librocegw-verbs.so", "InaccessiblePaths hides"),
    "set-uid": ("ExecStart=\nExecStart=/usr/bin/kv_privileged serve /etc/kv/kv.conf", "is set-uid"),
}


class Machine:
    def __init__(self, lab, binaries, root):
        self.lab = lab
        self.binaries = binaries
        self.host, _ = gateway_pair(lab, binaries)
        self.root = root or lab.path("debian")
        self.pid = None

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def program(self, source, target):
        """Copies a program with the libraries that Debian's root lacks."""
        shutil.copy(source, self.path(target))
        for library in re.findall(r"=> (/\S+)", run(["ldd", source])):
            wanted = self.path(os.path.join("/usr/lib/x86_64-linux-gnu", os.path.basename(library)))
            if not os.path.exists(wanted):
                shutil.copy(os.path.realpath(library), wanted)

    def inside(self, *words, check=True, timeout=60):
        return run(["nsenter", "--target", str(self.pid), "--all", *words], timeout=timeout, check=check)

    # Steps ------------------------------------------------------------------------------------------------------------

    def is_installed(self):
        """A fresh Debian with the agent's unit, the adapter, and a replica as a unit of the site."""
        if not os.path.exists(self.path("/usr/bin/python3")):
            run(["debootstrap", "--variant=minbase", "--include=" + INCLUDE, "bookworm", self.root], timeout=900)
        for name in ("kv_store", "rocegwctl"):
            self.program(os.path.realpath(os.path.join(self.binaries, name)), f"/usr/bin/{name}")
        library = os.path.join(os.path.dirname(os.path.realpath(os.path.join(self.binaries, "rocegwd"))), "..", "lib", "librocegw-verbs.so")
        shutil.copy(library, self.path("/usr/lib/librocegw-verbs.so"))
        adapters = os.path.join(ROOT, "agent", "migration", "adapters")
        shutil.rmtree(self.path("/usr/libexec/rocegw/adapters"), ignore_errors=True)
        os.makedirs(self.path("/usr/libexec/rocegw/adapters"))
        shutil.copy(os.path.join(adapters, "generic.py"), self.path("/usr/libexec/rocegw/adapters/generic"))
        shutil.copytree(os.path.join(adapters, "rocegw_adapter"), self.path("/usr/libexec/rocegw/adapters/rocegw_adapter"))
        with open(os.path.join(ROOT, "packaging", "systemd", "rocegw-agent.service.in"), encoding="utf-8") as file:
            self.write("/etc/systemd/system/rocegw-agent.service", file.read().replace("@CMAKE_INSTALL_FULL_BINDIR@", "/usr/bin"))
        self.write("/etc/systemd/system/rocegw-agent.service.d/zz-test.conf", TEST_DROP_IN)
        self.write("/etc/systemd/system/kv.service", KV_UNIT)
        shutil.rmtree(self.path("/etc/systemd/system/kv.service.d"), ignore_errors=True)
        os.makedirs(self.path("/etc/systemd/system/kv.service.d"))
        shutil.rmtree(self.path("/var/lib/rocegw"), ignore_errors=True)
        for name, transport in (("kv.conf", "tcp"), ("kv.tcp", "tcp"), ("kv.gateway", "rdma")):
            self.write(f"/etc/kv/{name}", f"name h1\nnumber 1\nlisten {self.host.address4} 7100\nrdma_port 7101\ntransport {transport}\n"
                       "folder /var/lib/kv\nsync no\n")
        self.write("/etc/kv/preload.conf", KV_DROP_IN)
        self.write("/usr/lib/kv/bytes", BYTES, 0o755)
        place = f"{self.host.address4}:7100"
        self.write("/usr/lib/kv/exercise", f"#!/bin/sh\nexport {PRELOAD}\nexec /usr/bin/kv_store check {place} strict 50\n", 0o755)
        self.write("/usr/lib/kv/transport", f"#!/bin/sh\nkv_store status {place} | sed -n 's/^transport rdma/gateway/p; s/^transport tcp/tcp/p'\n", 0o755)
        # systemd says that the unit runs before the replica listens.
        self.write("/usr/lib/kv/rejoined", f"#!/bin/sh\n/usr/lib/kv/exercise || exit 75\nkv_store status {place} >&2\n", 0o755)
        description = {
            "class": "per-client", "nodes": [{"name": "h1", "transport": "tcp"}],
            "files": [{"path": "/etc/kv/kv.conf", "tcp": "/etc/kv/kv.tcp", "gateway": "/etc/kv/kv.gateway"},
                      {"path": "/etc/systemd/system/kv.service.d/rocegw.conf", "tcp": "/nowhere", "gateway": "/etc/kv/preload.conf"}],
            "units": {"tcp": ["kv.service"], "gateway": ["kv.service"]}, "limits": {"nofile": 1024, "memlock": "infinity"}, "preload": True,
            "commands": {"rejoin": ["/usr/lib/kv/rejoined"]},
            "questions": {"transport": ["/usr/lib/kv/transport"], "bytes": ["/usr/lib/kv/bytes"], "exercise": ["/usr/lib/kv/exercise"],
                          "journal": ["true"], "outstanding": ["echo", "0"], "clients-on-old": ["echo", "0"]}}
        self.write("/etc/rocegw/migration/kv.json", json.dumps(description))
        return ""

    def boots(self):
        """systemd is the first process, and no unit failed."""
        self.host.start_gateway()
        group = os.path.join(CGROUPS, f"rocegw-systemd-{os.getpid()}")
        os.mkdir(group)
        self.lab.on_close(lambda: run(["sh", "-c", f"find {group} -depth -type d -exec rmdir {{}} +"], check=False))
        script = BOOT.format(root=self.root, host=os.path.dirname(self.host.attach_socket))
        # Not by "ip netns exec", which hides the control groups.
        job = LocalJob(["nsenter", f"--net=/run/netns/{self.host.namespace}", "sh", "-ec", f"echo $$ > {group}/cgroup.procs; exec unshare "
                        "--cgroup --mount --pid --uts --ipc --fork --kill-child sh -ec \"$0\"", script], title="systemd")
        self.lab.on_close(job.stop)

        def first_process():
            with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
                pids = file.read().split()
            for name in os.listdir(group):
                if name == "init.scope":
                    with open(os.path.join(group, name, "cgroup.procs"), encoding="ascii") as file:
                        pids += file.read().split()
            for pid in pids:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    if file.read().strip() == "systemd":
                        return int(pid)
            return None
        try:
            self.pid = eventually("systemd", first_process, 60)
        except LabError as error:
            raise LabError(f"{error}\n{job.output}") from error

        def state_of_systemd():
            state = self.inside("systemctl", "is-system-running", check=False).strip()
            return state if state in ("running", "degraded", "maintenance") else None
        state = eventually("a state of systemd", state_of_systemd, 120)
        if state != "running":
            raise LabError(f"{state}\n{self.inside('systemctl', '--failed', '--no-pager')}\n{job.output}")
        self.inside("systemctl", "start", "kv.service")
        return self.inside("systemctl", "--version").splitlines()[0]

    def conforms(self):
        """The adapter conforms with the drop-in file that its package brings: files, units, limits and the preload environment."""
        target = self.path("/etc/systemd/system/rocegw-agent.service.d/migration-generic.conf")
        shutil.copy(os.path.join(ROOT, "packaging", "systemd", "adapters", "generic.conf"), target)
        output = self.start_test()
        if "the adapter conforms" not in output:
            raise LabError(f"{output}\n{self.inside('journalctl', '--no-pager', '-b', '-n', '60', check=False)}")
        return f"{output.count('ok ')} checks"

    def finds_what_keeps_the_library_away(self):
        """Each way by which systemd keeps the library out of a unit is found by health, and truly keeps it out."""
        drop_in = self.path("/etc/systemd/system/kv.service.d/zz-site.conf")
        preload = self.path("/etc/systemd/system/kv.service.d/rocegw.conf")
        shutil.copy(self.path("/etc/kv/preload.conf"), preload)
        shutil.copy(self.path("/usr/bin/kv_store"), self.path("/usr/bin/kv_privileged"))
        os.chmod(self.path("/usr/bin/kv_privileged"), 0o4755)
        for name, (text, reason) in {"": ("", None), **KEPT_AWAY}.items():
            with open(drop_in, "w", encoding="ascii") as file:
                file.write(f"[Service]\n{text}\n")
            self.inside("systemctl", "daemon-reload")
            answered = json.loads(self.inside("sh", "-c", f"echo '{HEALTH}' | /usr/libexec/rocegw/adapters/generic"))
            self.inside("systemctl", "restart", "kv.service", check=False)
            pid = self.inside("systemctl", "show", "--value", "-p", "MainPID", "kv.service").strip()
            # Before it, env(1) is the process.
            eventually("the program", lambda pid=pid: self.inside("cat", f"/proc/{pid}/comm", check=False).startswith("kv_"), 20)
            maps = self.inside("cat", f"/proc/{pid}/maps")
            with_library = "librocegw-verbs.so" in maps
            if (answered["outcome"] == "done") != (reason is None) or with_library != (reason is None) or (reason or "") not in \
                    answered.get("text", ""):
                raise LabError(f"{name or 'nothing'}: {answered}, the library is {'there' if with_library else 'not there'}")
        for path in (drop_in, preload):
            os.remove(path)
        self.inside("systemctl", "daemon-reload")
        self.inside("systemctl", "restart", "kv.service")
        return f"{len(KEPT_AWAY)} ways"

    def needs_the_drop_in(self):
        """Without the drop-in file the sandbox of the agent refuses the adapter's changes."""
        os.remove(self.path("/etc/systemd/system/rocegw-agent.service.d/migration-generic.conf"))
        output = self.start_test()
        if "the adapter conforms" in output or "FAILED" not in output:
            raise LabError(output)
        return next(line.strip() for line in output.splitlines() if "FAILED" in line)

    def start_test(self):
        self.inside("systemctl", "daemon-reload")
        subprocess.run(["nsenter", "--target", str(self.pid), "--all", "systemctl", "start", "rocegw-agent.service"], timeout=300, check=False)
        with open(self.path("/var/log/adapter-test"), encoding="utf-8") as file:
            return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--root", help="a folder for debootstrap that is kept")
    arguments = parser.parse_args()
    with Lab() as lab:
        machine = Machine(lab, os.path.abspath(arguments.binaries), arguments.root and os.path.abspath(arguments.root))
        return run_steps("systemd_units", (machine.is_installed, machine.boots, machine.finds_what_keeps_the_library_away, machine.conforms,
                                           machine.needs_the_drop_in))


if __name__ == "__main__":
    sys.exit(main())
