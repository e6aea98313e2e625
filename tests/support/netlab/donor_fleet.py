# SPDX-License-Identifier: Apache-2.0
"""A fleet for donors of memory: a controller, two hosts with an agent and a gateway each, and a folder per host in which donors and
programs meet its agent."""

import os
import re

from .fleet import Agent, Controller
from .gateway_host import gateway_pair


class DonorFleet:
    """Donors are the user's: what is put into `donors`, by name, is not started or ended here."""

    def __init__(self, lab, binaries, name=""):
        self.hosts = self.left, self.right = gateway_pair(lab, binaries, name=name)
        self.controller = Controller(lab, self.left, binaries, name=f"{name}controller")
        self.folders = [os.path.join(host.directory, "donors") for host in self.hosts]
        self.agents = [Agent(lab, host, binaries, f"donors_dir: {folder}\n") for host, folder in zip(self.hosts, self.folders)]
        self.donors = {}

    def start(self):
        """Starts everything, and returns when both nodes are up."""
        self.controller.start()
        for host, agent in zip(self.hosts, self.agents):
            host.start_gateway()
            agent.join(self.controller.join_file(host.name)).start()
        self.ctl("status", "--wait", "--timeout", "30")

    def ctl(self, *words):
        return self.controller.ctl(*words)

    def states(self):
        """State and leases of each donor, by host/name."""
        text = re.sub("\x1b\\[[0-9;]*m", "", self.ctl("get", "donors"))  # the table has colours
        lines = [line.split() for line in text.splitlines()[1:]]
        return {words[0]: (words[1], int(words[4])) for words in lines}
