#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages, as an administrator meets them: made from a build, judged by lintian, installed into a fresh Debian
(debootstrap), the tour of README.md there against a gateway of the build, an upgrade from an older version, and a purge.
Needs root and the Debian mirror.

  tests/e2e/packages/run.py --build build/ci
"""

import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from netlab.fleet import eventually  # noqa: E402
from netlab.gateway_host import gateway_pair  # noqa: E402
from netlab.job import LabError, LocalJob, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402

PACKAGES = ("rocegw-agent", "rocegw-client", "rocegw-controller", "rocegw-ctl", "rocegw-doc", "rocegw-gateway", "rocegw-memory")
OLD_VERSION = "0.0.1"
PORT = 18515
APT = "DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "
FILES = ("usr/share/man/man8/rocegwd.8.gz", "usr/share/man/man1/rocegw-run.1.gz", "usr/share/man/man1/rocegwctl.1.gz",
         "usr/share/man/man8/rocegw-agent.8.gz", "usr/share/man/man8/rocegw-controller.8.gz",
         "usr/share/man/man3/rocegwdv_create_qp.3.gz", "usr/share/man/man1/rocegw-memory.1.gz",
         "usr/share/man/man7/rocegw_memory.7.gz", "usr/include/rocegw/rocegw_memory.h", "usr/share/bash-completion/completions/rocegwctl",
         "usr/share/zsh/vendor-completions/_rocegwctl", "usr/include/rocegw/rocegwdv.h",
         "usr/share/doc/rocegw-doc/README.md")


class Debian:
    """A fresh Debian in a folder, whose programs run in a network namespace."""

    def __init__(self, lab, namespace):
        self.lab = lab
        self.namespace = namespace
        self.root = lab.path("debian")
        run(["debootstrap", "--variant=minbase", "bookworm", self.root], timeout=300)

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def words(self, script):
        """A shell's command line in there; what is mounted is gone with it."""
        return ["unshare", "--mount", "sh", "-ec",
                f"mount -t proc proc {self.root}/proc; mount --rbind /sys {self.root}/sys; mount --rbind /dev {self.root}/dev; "
                f"exec chroot {self.root} sh -ec \"$0\"", script]

    def run(self, script, timeout=60):
        """Output of a shell script in there, in the network namespace."""
        return run(self.words(script), namespace=self.namespace, timeout=timeout)

    def start(self, script):
        job = LocalJob(self.words(script), title=script, namespace=self.namespace)
        self.lab.on_close(job.stop)
        return job

    def install(self, folder):
        """Installs or upgrades to the packages of a folder; the mirror is reached from outside of the namespace."""
        target = self.path("packages")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
        return run(self.words(f"{APT} update >/dev/null; {APT} install --no-install-recommends --allow-downgrades "
                              "/packages/*.deb ibverbs-utils rdmacm-utils"), timeout=300)

    def versions(self):
        lines = self.run("dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Status}\\n'").splitlines()
        return {name: version for name, version, status in map(str.split, lines)
                if name.startswith("rocegw-") and status == "installed"}


def make_packages(lab, build):
    """Folders with this build's packages, and with the same under an older version."""
    print(run([os.path.join(ROOT, "scripts/package"), "--build", build], timeout=300))
    new, old = lab.path("new"), lab.path("old")
    for folder in (new, old):
        os.mkdir(folder)
    for name in PACKAGES:
        made = glob.glob(os.path.join(build, "packages", f"{name}_*.deb"))
        if len(made) != 1:
            raise LabError(f"{name}: one package was to be made, not {made}")
        shutil.copy(made[0], new)
        unpacked = lab.path("unpacked", name)
        run(["dpkg-deb", "--raw-extract", made[0], unpacked])
        control = os.path.join(unpacked, "DEBIAN/control")
        with open(control, encoding="utf-8") as file:
            lines = [f"Version: {OLD_VERSION}\n" if line.startswith("Version:") else line for line in file]
        with open(control, "w", encoding="utf-8") as file:
            file.writelines(lines)
        run(["dpkg-deb", "--build", "--root-owner-group", unpacked, old])
    return old, new


def tour(debian, peer):
    """The commands of README.md, then rping to a gateway of the build."""
    for name in FILES:
        if not os.path.exists(debian.path(name)):
            raise LabError(f"the packages brought no /{name}")
    debian.run("rocegwd --print-default-config > /tmp/my.yaml; rocegwd --config /tmp/my.yaml --check-config")
    daemon = debian.start("mkdir -p /run/rocegw; exec rocegwd")
    eventually("a gateway that answers", lambda: subprocess.run(
        ["ip", "netns", "exec", debian.namespace, "chroot", debian.root, "rocegwctl", "--local", "status"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0)
    for form in ("", "--drop-in "):
        devices = debian.run(f"rocegw-run {form}-- ibv_devinfo -v")
        if "rocegw0" not in devices or "PORT_ACTIVE" not in devices:
            raise LabError(f"ibv_devinfo {form}shows no active device:\n{devices}")
    server = peer.start(["rping", "-s", "-a", peer.address4, "-p", str(PORT), "-C", "10"])
    debian.run(f"for try in $(seq 50); do rocegw-run -- rping -c -a {peer.address4} -p {PORT} -C 10 -V && exit 0; done; exit 1")
    if server.wait(30) != 0:
        raise LabError(f"rping's server failed:\n{server.output}")
    for what in ("status", "get qps", "get counters"):
        debian.run(f"rocegwctl --local {what}")
    return daemon


def fleet(debian):
    """A controller under its own user makes the fleet's authority. Returns the digest of that."""
    debian.run("install -d -m 0700 -o rocegw-controller -g rocegw-controller /var/lib/rocegw-controller")
    controller = debian.start("exec setpriv --reuid=rocegw-controller --regid=rocegw-controller --clear-groups rocegw-controller")
    eventually("the authority", lambda: os.path.exists(debian.path("var/lib/rocegw-controller/admin.sock")))
    debian.run("rocegwctl --controller unix:/var/lib/rocegw-controller/admin.sock status")
    if controller.stop() != 0:
        raise LabError(f"the controller failed:\n{controller.output}")
    with open(debian.path("var/lib/rocegw-controller/ca.crt"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def upgrade(debian, new, versions):
    """What the administrator wrote and the daemons keep survives; the running gateway is left alone."""
    config = debian.path("etc/rocegw/rocegwd.yaml")
    with open(config, "a", encoding="utf-8") as file:
        file.write("log_level: debug\n")
    written = debian.text("etc/rocegw/rocegwd.yaml")
    debian.install(new)
    if debian.versions() != versions:
        raise LabError(f"after the upgrade there are {debian.versions()}, not {versions}")
    if debian.text("etc/rocegw/rocegwd.yaml") != written:
        raise LabError("the upgrade changed /etc/rocegw/rocegwd.yaml")


def purge(debian):
    run(debian.words(f"{APT} purge 'rocegw-*'"), timeout=120)
    if debian.versions():
        raise LabError(f"after the purge there are still {debian.versions()}")
    left = [name for folder in ("usr", "etc") for name in glob.glob(debian.path(f"{folder}/**/*rocegw*"), recursive=True)]
    if left:
        raise LabError(f"the purge left {left}")
    if not os.path.exists(debian.path("var/lib/rocegw-controller/ca.key")):
        raise LabError("the purge took the fleet's authority away")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    with Lab() as lab:
        os.mkdir(lab.path("unpacked"))
        old, new = make_packages(lab, build)
        left, right = gateway_pair(lab, os.path.join(build, "bin"))
        right.start_gateway()
        debian = Debian(lab, left.namespace)
        debian.install(new)
        versions = debian.versions()
        if set(versions) != set(PACKAGES):
            raise LabError(f"installed are {sorted(versions)}")
        debian.install(old)
        if set(debian.versions().values()) != {OLD_VERSION}:
            raise LabError(f"the older packages were to be installed, there are {debian.versions()}")
        daemon = tour(debian, right)
        authority = fleet(debian)
        upgrade(debian, new, versions)
        if not daemon.running:
            raise LabError(f"the upgrade ended the gateway:\n{daemon.output}")
        if daemon.stop() != 0:
            raise LabError(f"the gateway failed:\n{daemon.output}")
        tour(debian, right).stop()
        if fleet(debian) != authority:
            raise LabError("the upgrade lost the fleet's authority")
        purge(debian)
    print("packages: passed")


if __name__ == "__main__":
    main()
