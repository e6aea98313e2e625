# SPDX-License-Identifier: Apache-2.0
"""Targets of tgt (tgtd), by tgtadm. A target belongs to one transport, and its name is unique in the daemon: the path over iSER
is a target of its own with the same backing store."""

import re

from .protocol import failed, inconclusive

# Default properties of a logical unit. The target of the new path gets no other values.
PLAIN = {"Readonly": "No", "Removable media": "No", "Thin-provisioning": "No", "Backing store type": "rdwr", "Backing store flags": ""}
LISTS = {"Account information": "accounts", "ACL information": "access"}
DRIVERS = {"tcp": "iscsi", "gateway": "iser", "rnic": "iser"}


def parse_targets(text):
    """What `tgtadm --mode target --op show` prints: number to name, driver, state, initiators with a session, stores by unit,
    accounts, who has access, and what differs from PLAIN."""
    targets = {}
    target, unit, listed = None, None, None
    for line in text.splitlines():
        found = re.fullmatch(r"Target (\d+): (\S+)", line)
        if found:
            target = targets.setdefault(int(found.group(1)), {"name": found.group(2), "initiators": [], "stores": {}, "accounts": [], "access": [],
                                                              "special": []})
            listed = None
            continue
        word, colon, value = line.strip().partition(":")
        if re.match(r" {4}\S", line):
            listed = LISTS.get(word)
        elif target is not None and listed and line.strip():
            target[listed].append(line.strip())
            continue
        value = value.strip()
        if target is None or not colon and line.strip() and not line.startswith("        "):
            raise inconclusive(f"tgtadm: not understood: {line[:80]}")
        if word in ("Driver", "State"):
            target[word.lower()] = value
        elif word == "Initiator":
            target["initiators"].append(value.split()[0])
        elif word == "LUN":
            unit = int(value)
        elif word == "Backing store path":
            target["stores"][unit] = value
        if unit != 0 and PLAIN.get(word, value) != value:
            target["special"].append(f"{word} {value}")
    if any(not {"driver", "state"} <= set(found) for found in targets.values()):
        raise inconclusive("tgtadm: a target without a driver or a state")
    return targets


class TgtTarget:
    """One disk of tgtd by its paths. A path: transport, tid, iqn."""

    def __init__(self, call, text):
        self.call = call
        self.words = ["tgtadm", "-C", str(int(text.get("control_port", 0)))]
        self.store = text["store"]
        self.lun = int(text.get("lun", 1))

    def _admin(self, path, *words):
        self.call.must([*self.words, "--lld", DRIVERS[path["transport"]], *words], "tgtadm")

    def find(self, path):
        """The target of a path, or None. Another target under its number fails the step."""
        targets = parse_targets(self.call.must([*self.words, "--lld", DRIVERS[path["transport"]], "--mode", "target", "--op", "show"],
                                               "tgtadm"))
        found = targets.get(path["tid"])
        if found and (found["name"], found["driver"]) != (path["iqn"], DRIVERS[path["transport"]]):
            raise failed(f"target {path['tid']} is {found['name']} with driver {found['driver']}")
        return found

    def is_complete(self, path):
        found = self.find(path)
        return bool(found) and found["state"] == "ready" and found["stores"].get(self.lun) == self.store

    def expect_plain(self, path):
        """Fails where the target of a path has more than the target of the other path would get, which has one unit without
        further attributes and lets the named machines in from every address."""
        found = self.find(path)
        if not found:
            return
        problems = [f"unit {unit}" for unit in found["stores"] if unit not in (0, self.lun)] + \
            [f"account {name}" for name in found["accounts"]] + \
            [f"access for {name}" for name in found["access"] if name != "ALL" and not re.match(r"(iqn|eui|naa)\.", name)] + found["special"]
        if problems:
            raise failed(f"target {path['tid']} has what the other target would not have: {', '.join(problems)}")

    def add(self, path, initiators):
        """An iSER login needs a binding by address and one by name, whatever both allow."""
        found = self.find(path)
        tid = str(path["tid"])
        if not found:
            self._admin(path, "--mode", "target", "--op", "new", "--tid", tid, "-T", path["iqn"])
        if not found or self.lun not in found["stores"]:
            self._admin(path, "--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", str(self.lun), "-b", self.store)
        for option, value in (("-I", "ALL"), *(("-Q", name) for name in initiators)):
            status, _, error = self.call.run([*self.words, "--lld", DRIVERS[path["transport"]], "--mode", "target", "--op", "bind",
                                              "--tid", tid, option, value])
            if status != 0 and "already exists" not in error:
                raise failed(f"tgtadm: bind {value}: {error}")
        if not self.is_complete(path):
            raise failed(f"target {tid} is not complete")

    def sessions(self, path):
        """Names of the initiators that have a session."""
        found = self.find(path)
        return found["initiators"] if found else []

    def remove_unused(self, path):
        """Removes the target unless it has sessions. tgtd 1.0.85 ends with a segmentation fault when a target of iSER is
        deleted by force."""
        found = self.find(path)
        if found and not found["initiators"]:
            self.expect_plain(path)
            self._admin(path, "--mode", "target", "--op", "delete", "--tid", str(path["tid"]))
