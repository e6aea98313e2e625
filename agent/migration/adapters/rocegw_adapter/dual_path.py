# SPDX-License-Identifier: Apache-2.0
"""Descriptions of clusters with two paths (class B of docs/operate/migration.md): nodes with paths, and hosts."""

from .protocol import Description, failed

NODE_KEYS = {"name", "transport", "domains", "gateway", "rnic", "paths"}


class DualPathCluster(Description):
    """adapter: its name. step(request): an object with a method for each call, of the call's name."""

    adapter = ""

    def check_nodes(self):
        for node in self.text["nodes"]:
            if set(node) - NODE_KEYS:
                raise failed(f"{self.path}: not understood: {', '.join(sorted(set(node) - NODE_KEYS))}")

    def inventory(self):
        """A pinned host stays on the old path, so that path is never removed."""
        nodes = [{key: value for key, value in node.items() if key != "paths"} for node in self.text["nodes"]]
        clients = [{"name": host["name"], "kind": "pinned" if host.get("pinned") else "switched"} for host in self.text["hosts"]]
        return {"cluster": self.name, "adapter": self.adapter, "class": "dual-path", "nodes": nodes, "clients": clients}

    def step(self, request):
        raise NotImplementedError

    def carry_out(self, request):
        step = self.step(request)
        step.own_command()
        return getattr(step, step.name.replace("-", "_"))()
