# SPDX-License-Identifier: Apache-2.0
"""A controller, and the agents that bring its wishes to the gateways of hosts (gateway_host.py)."""

import os
import time

from .daemon import start_daemon
from .job import LabError, run

_PORT = 7471


class Controller:
    """Runs in the namespace of a host, under that host's address. binaries: the bin folder of a build. settings:
    more lines for the configuration file. name: of its folder."""

    def __init__(self, lab, host, binaries, settings="", name="controller"):
        self.lab = lab
        self.host = host
        self.binaries = binaries
        self.directory = lab.path(name)
        os.mkdir(self.directory, 0o755)
        self.state = os.path.join(self.directory, "state")
        self.config = os.path.join(self.directory, "rocegw-controller.yaml")
        self.daemon = None
        where = f"{host.address4}:{_PORT}"
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"state_dir: {self.state}\n"
                       f"address: \"{where}\"\n"
                       f"names: [\"{host.address4}\"]\n"
                       f"controllers: [\"{where}\"]\n" + settings)

    def start(self):
        self.daemon = start_daemon(self.lab, self.command(), self.directory, "rocegw-controller", self.host.namespace)
        return self

    def command(self, *words):
        return [os.path.join(self.binaries, "rocegw-controller"), "--config", self.config, *words]

    def ctl_words(self, *words):
        return [os.path.join(self.binaries, "rocegwctl"), "--controller", f"unix:{self.state}/admin.sock", *words]

    def ctl(self, *words, stdin=None):
        """Output of rocegwctl; LabError when it fails."""
        if stdin is not None:
            path = os.path.join(self.directory, "input.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(stdin)
            words = [path if word == "-" else word for word in words]
        return run(self.ctl_words(*words), namespace=self.host.namespace)

    def join_file(self, gateway):
        path = os.path.join(self.directory, f"join-{gateway}.yaml")
        text = run(self.command("join-token", "--gateway", gateway), namespace=self.host.namespace)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Agent:
    """Of one host's gateway. settings: more lines for the configuration file."""

    def __init__(self, lab, host, binaries, settings=""):
        self.lab = lab
        self.host = host
        self.settings = settings
        self.program = os.path.join(binaries, "rocegw-agent")
        self.state = os.path.join(host.directory, "agent")
        self.config = os.path.join(host.directory, "rocegw-agent.yaml")
        self.daemon = None
        self.configure()

    def configure(self, attach_rules=""):
        """What the agent reads at its next start; attach_rules at once."""
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"state_dir: {self.state}\n"
                       f"gateway_socket: {self.host.grpc_socket}\n"
                       f"name: {self.host.name}\n"
                       f"attach_rules: [{attach_rules}]\n" + self.settings)

    def join(self, file):
        run([self.program, "--config", self.config, "--join", file], namespace=self.host.namespace)
        return self

    def start(self):
        self.daemon = start_daemon(self.lab, [self.program, "--config", self.config], self.host.directory,
                                   f"rocegw-agent of {self.host.name}", self.host.namespace)
        return self


def eventually(what, condition, timeout=30):
    """Looks until the condition holds; LabError that says what did not come to be."""
    end = time.monotonic() + timeout
    seen = condition()
    while not seen:
        if time.monotonic() > end:
            raise LabError(f"after {timeout} s: not {what}")
        time.sleep(0.05)
        seen = condition()
    return seen
