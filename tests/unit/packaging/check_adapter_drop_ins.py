#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each adapter has a drop-in file of the agent's unit that systemd understands, and that gives the unit (so the agent itself as
well) exactly the paths and capabilities that the adapter needs, and no other setting than it needs.

  check_adapter_drop_ins.py UNIT SOURCES"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

UNIT = "rocegw-agent.service"
# Needs what the site's program needs, so it has no drop-in file.
OF_THE_SITE = {"exec"}
# Exposure in tenths, of 100: the unit alone has at most 22 (check_units.sh), and capabilities add to it.
MOST = {"generic": 28, "ceph": 26, "nvmeof": 26, "iser": 26}
# What the adapter does and the unit alone forbids: each setting with all its values.
STATE = {"StateDirectory": "rocegw/migration"}
OWNERS = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER"
NEEDS = {"generic": {**STATE, "ReadWritePaths": "-/etc/systemd/system", "CapabilityBoundingSet": f"{OWNERS} CAP_SYS_PTRACE",
                     "SystemCallFilter": "@chown"},
         "ceph": {**STATE, "ReadWritePaths": "-/etc/ceph -/etc/systemd/system", "CapabilityBoundingSet": OWNERS, "SystemCallFilter": "@chown"},
         "nvmeof": {**STATE, "ReadWritePaths": "-/sys/kernel/config -/etc/nvmet", "CapabilityBoundingSet": "CAP_DAC_OVERRIDE",
                    "ProtectHome": "read-only", "PrivateTmp": "no"},
         "iser": {**STATE, "ReadWritePaths": "-/etc/tgt -/etc/rtslib-fb-target -/etc/libvirt -/sys/kernel/config",
                  "CapabilityBoundingSet": "CAP_DAC_OVERRIDE CAP_SYS_PTRACE"}}


def differences(adapter, text):
    """What a drop-in file does not give although the adapter needs it, and what it gives besides."""
    given: dict = {}
    for line in text.splitlines():
        setting, equals, values = line.partition("=")
        if equals and not line.startswith("#"):
            given.setdefault(setting, set()).update(values.split())
    found = []
    for setting in sorted(set(given) | set(NEEDS[adapter])):
        needed = set(NEEDS[adapter].get(setting, "").split())
        found += [f"lacks {setting}={value}" for value in sorted(needed - given.get(setting, set()))]
        found += [f"gives {setting}={value}, which it does not need" for value in sorted(given.get(setting, set()) - needed)]
    return found


def make_root(folder, unit, drop_in):
    """A root folder with systemd's own units, the agent's unit and one drop-in file."""
    root = tempfile.mkdtemp(dir=folder)
    shutil.copytree("/usr/lib/systemd", os.path.join(root, "usr/lib/systemd"), symlinks=True)
    units = os.path.join(root, "etc/systemd/system")
    os.makedirs(os.path.join(units, UNIT + ".d"))
    shutil.copy(unit, os.path.join(units, UNIT))
    shutil.copy(drop_in, os.path.join(units, UNIT + ".d", "migration.conf"))
    with open(unit, encoding="utf-8") as file:
        programs = re.findall(r"^Exec\w*=(\S+)", file.read(), re.MULTILINE)
    for program in programs:
        os.makedirs(os.path.dirname(root + program), exist_ok=True)
        with open(root + program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(root + program, 0o755)
    return root


def analyze(root, *words):
    run = subprocess.run(["systemd-analyze", *words[:1], f"--root={root}", *words[1:]], capture_output=True, text=True, timeout=60, check=False)
    return run.stdout + run.stderr


def problems_of(adapter, unit, drop_in, folder):
    with open(drop_in, encoding="utf-8") as file:
        text = file.read()
    found = differences(adapter, text)
    root = make_root(folder, unit, drop_in)
    said = [line for line in analyze(root, "verify", "--man=no", "/etc/systemd/system/" + UNIT).splitlines() if UNIT in line or "migration.conf" in line]
    found += [f"systemd complains: {line}" for line in said]
    exposure = re.search(r"exposure level for .*: ([0-9]+)\.([0-9])", analyze(root, "security", "--offline=true", "--no-pager", UNIT))
    if not exposure:
        return [*found, "systemd gives no exposure"]
    tenths = int(exposure.group(1)) * 10 + int(exposure.group(2))
    print(f"{adapter}: exposure {tenths} of 100")
    if tenths > MOST[adapter]:
        found.append(f"exposure {tenths}, at most {MOST[adapter]}")
    return found


def main():
    unit, sources = sys.argv[1:3]
    adapters = {name[:-3] for name in os.listdir(os.path.join(sources, "agent/migration/adapters")) if name.endswith(".py")} - OF_THE_SITE
    folder = os.path.join(sources, "packaging/systemd/adapters")
    status = 0
    if {name[:-5] for name in os.listdir(folder)} != adapters or set(NEEDS) != adapters:
        print(f"adapters {sorted(adapters)}, drop-in files {sorted(os.listdir(folder))}")
        status = 1
    with tempfile.TemporaryDirectory() as scratch:
        for adapter in sorted(adapters):
            for problem in problems_of(adapter, unit, os.path.join(folder, adapter + ".conf"), scratch):
                print(f"{adapter}: {problem}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
