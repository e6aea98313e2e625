# SPDX-License-Identifier: Apache-2.0
"""Pods: a kubelet of the tests' own (fake_kubelet) that admits them, and containers that runc starts with exactly the mounts
and the environment that the device plugin gave."""

import glob
import json
import os
import subprocess
import uuid

from .job import LabError, LocalJob, run

# As container runtimes give them by default: none for locked memory, networks or other processes' memory.
_CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE"]


class Kubelet:
    """binaries: the bin folder of a build. cdi: containers get their slots as the container runtime's devices."""

    def __init__(self, lab, binaries, cdi=False):
        self.lab = lab
        self.cdi_directory = lab.path("cdi") if cdi else ""
        if cdi:
            os.mkdir(self.cdi_directory)
        self.directory = lab.directory
        os.mkdir(lab.path("pods"))
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", os.path.join(binaries, "fake_kubelet"), lab.directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lab.on_close(self.stop)

    def ask(self, *words):
        self._process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise LabError(f"kubelet ended at {words}")
        return json.loads(line)

    def stop(self):
        self._process.stdin.close()
        self._process.wait(20)

    def settings(self, library_dir):
        """Section of the agent's configuration."""
        return (f"kubernetes:\n  enabled: true\n  device_plugin_dir: {self.directory}/dp\n"
                f"  pod_resources_socket: {self.directory}/pod-resources/kubelet.sock\n"
                f"  pod_log_dir: {self.directory}/pods\n  library_dir: {library_dir}\n"
                f"  cdi_dir: \"{self.cdi_directory}\"\n")

    def wait_healthy(self, resource, count):
        if not self.ask("wait", resource, count)["ok"]:
            raise LabError(f"{resource} has not {count} healthy devices")

    def admit(self, name_space, name, resource):
        answer = self.ask("admit", name_space, name, resource)
        if answer["problem"]:
            raise LabError(f"pod {name_space}/{name}: {answer['problem']}")
        return Pod(self, name_space, name, resource, answer)


class Pod:
    """One container, which may be started several times."""

    def __init__(self, kubelet, name_space, name, resource, answer):
        self.kubelet = kubelet
        self.name_space = name_space
        self.name = name
        self.resource = resource
        self.device = answer["device"]
        self.environment = answer["container"].get("envs", {})
        self.mounts = answer["container"].get("mounts", [])
        # What a container runtime does with devices of CDI; kubelet gives it their names only.
        for device in answer["container"].get("cdiDevices", []):
            self._add_device(device["name"])
        self.uid = str(uuid.uuid4())
        # Of its programs; another than root has no capability.
        self.user = 0
        self._starts = 0
        self._logs = os.path.join(kubelet.directory, "pods", f"{name_space}_{name}_{self.uid}")
        os.mkdir(self._logs)
        # As kubelet names it; runc makes it.
        self._cgroup = f"kubepods/besteffort/pod{self.uid}"
        self._containers = []
        kubelet.lab.on_close(self.end)

    def run(self, command):
        """The container runs the command; the job is its program's."""
        self._starts += 1
        name = f"rgw{os.getpid()}-{self.name_space}-{self.name}-{self._starts}"
        bundle = self.kubelet.lab.path(name)
        os.makedirs(os.path.join(bundle, "root"))
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(self._config(command, name), file)
        self._containers.append(name)
        return LocalJob(["runc", "--root", self._state(), "run", "-b", bundle, name],
                        title=f"pod {self.name_space}/{self.name}: {command}")

    def _add_device(self, name):
        for path in glob.glob(f"{self.kubelet.cdi_directory}/*.json"):
            with open(path, encoding="utf-8") as file:
                spec = json.load(file)
            for device in spec["devices"]:
                if f"{spec['kind']}={device['name']}" == name:
                    edits = device["containerEdits"]
                    self.environment.update(line.split("=", 1) for line in edits["env"])
                    self.mounts += [{**mount, "readOnly": "ro" in mount["options"]} for mount in edits["mounts"]]
                    return
        raise LabError(f"no file describes the device {name}")

    def again(self, command):
        """The container is started anew, with what it was given in the beginning."""
        problem = self.kubelet.ask("again", self.resource, self.device)["problem"]
        if problem:
            raise LabError(f"pod {self.name_space}/{self.name} does not start again: {problem}")
        return self.run(command)

    def kill(self):
        """Whatever runs in it."""
        for name in self._containers:
            run(["runc", "--root", self._state(), "delete", "--force", name], check=False)
        self._containers = []

    def end(self):
        """The pod is deleted."""
        self.kill()
        if not os.path.isdir(self._logs):
            return
        self.kubelet.ask("release", self.name_space, self.name)
        os.rmdir(self._logs)
        for path in glob.glob(f"/sys/fs/cgroup/{self._cgroup}") + glob.glob(f"/sys/fs/cgroup/*/{self._cgroup}"):
            os.rmdir(path)

    def _state(self):
        return self.kubelet.lab.path("runc")

    def _config(self, command, name):
        def bind(source, target, *options):
            return {"source": source, "destination": target, "type": "bind", "options": ["rbind", *options]}

        capabilities = {kind: [] if self.user else _CAPABILITIES for kind in ("bounding", "effective", "permitted")}
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                  {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666"]},
                  {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec"]},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
                  {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
                  # The image: this machine's programs.
                  *(bind(path, path, "ro") for path in ("/usr", "/etc", "/bin", "/lib", "/lib64")),
                  *(bind(mount["hostPath"], mount["containerPath"], *(["ro"] if mount.get("readOnly") else []))
                    for mount in self.mounts)]
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **self.environment}
        return {"ociVersion": "1.0.2", "hostname": self.name, "root": {"path": "root"}, "mounts": mounts,
                # Programs hold their lines back from a pipe.
                "process": {"terminal": True, "user": {"uid": self.user, "gid": self.user}, "cwd": "/", "args": ["sh", "-c", command],
                            "env": [f"{key}={value}" for key, value in variables.items()],
                            "capabilities": capabilities, "noNewPrivileges": True,
                            "rlimits": [{"type": "RLIMIT_MEMLOCK", "soft": 65536, "hard": 65536},
                                        {"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096}]},
                # An own network: nothing but loopback. RDMA goes by the gateway's addresses.
                "linux": {"cgroupsPath": f"/{self._cgroup}/{name}", "namespaces": [{"type": kind} for kind in (
                    "pid", "ipc", "uts", "mount", "network")]}}
