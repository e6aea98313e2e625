# SPDX-License-Identifier: Apache-2.0
"""Step in which the gateways get their keys from the controller."""

import json
import operator
import os

from hosts import Hosts, check
from netlab.fleet import eventually

KEYS = "fleet.key"


class KeySteps(Hosts):

    def keys(self):
        """Keys of the fleet come from the controller and are replaced under encrypted traffic, also because a gateway is deleted"""
        paths = [os.path.join(host.directory, KEYS) for host in self.hosts]
        shown = set()  # keys that the files had at any look
        makers = set()  # those of them that made tags

        def keys_now():
            keys = [self._keys_in(path) for path in paths]
            shown.update(*keys)
            makers.update(of_file[0] for of_file in keys if of_file)
            return keys

        def look_and(condition):
            keys_now()
            return condition()

        for agent, path in zip(self.agents, paths):
            agent.settings += f"fleet_keys_file: {path}\n"
            agent.configure()
            self.kill(agent)
            agent.start()
        eventually("two keys on each host", lambda: all(len(keys) == 2 for keys in keys_now()))
        for path in paths:
            check(os.stat(path).st_mode & 0o777 == 0o600, f"others may read {path}")
        eventually("the same keys on both hosts", lambda: operator.eq(*keys_now()))
        for host, path in zip(self.hosts, paths):
            with open(host.config, "a", encoding="utf-8") as file:
                file.write(f"gateways: {{authentication: required, protection: encrypt, key_file: {path}}}\n")
            host.stop_gateway()
            host.start_gateway()
        for host in self.hosts:
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: look_and(lambda: self.socket_of(h)))
        with self.traffic() as traffic:
            first = eventually("an encrypted channel", lambda: look_and(lambda: self._key_ids(self.hosts[0])))
            eventually("other keys in use in both directions", lambda: look_and(lambda: self._has_other_keys(first)), timeout=60)
            traffic.goes_on()
            # A host that leaves knows all keys: none of them is in use soon after. The next period's key, which it has in the second half
            # of a period, would stay for another 18 s.
            self.controller.ctl("create", "gateway", "departing")
            known = {key for of_file in keys_now() for key in of_file}
            self.controller.ctl("delete", "gateway", "departing")
            eventually("keys that the host does not know", lambda: all(keys and known.isdisjoint(keys) for keys in keys_now()), timeout=11)
            traffic.goes_on()
            keys_now()
        # A period's second half and the next one's first half have the same two keys, in another order.
        check(len(makers) > 1, "the first key of the files was not replaced")
        for part in (self.controller, *self.agents, *self.hosts):
            for key in shown:
                check(key not in part.daemon.output, f"{part.daemon.title} shows a key")

    @staticmethod
    def _keys_in(path):
        """Keys of a file, the one that makes tags first; none without a file."""
        try:
            with open(path, encoding="ascii") as file:
                return [line for line in file.read().split("\n") if line and not line.startswith("#")]
        except FileNotFoundError:
            return []

    @staticmethod
    def _key_ids(host):
        """(own key, peer's key) of the host's open channels, which all are encrypted."""
        rows = json.loads(host.control("-o", "json", "get", "channels")).get("channels", [])
        rows = [row for row in rows if row["state"] == "open"]
        check(all(row["protection"] == "encrypted" for row in rows), f"{host.name} has a channel in the clear: {rows}")
        return {(row["keyId"], row["peerKeyId"]) for row in rows if row.get("keyId") and row.get("peerKeyId")}

    def _has_other_keys(self, first):
        old = {key for pair in first for key in pair}
        return any(own not in old and peer not in old for own, peer in self._key_ids(self.hosts[0]))
