# SPDX-License-Identifier: Apache-2.0
"""Settings that a systemd unit will have after a migration: those of today (systemctl show), and above them the drop-in files and
unit files that the migration will write. systemd.exec(5) says what each setting means."""

import os
import re
import shlex

PROPERTIES = ("LoadState", "ExecStart", "User", "DynamicUser", "SupplementaryGroups", "Environment", "EnvironmentFiles",
              "UnsetEnvironment", "RootDirectory", "RootImage", "NoNewPrivileges", "SystemCallFilter", "RestrictAddressFamilies",
              "InaccessiblePaths", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths", "ProtectHome", "PrivateTmp",
              "AppArmorProfile", "MainPID")
# Each further line of these settings adds to the earlier ones, and an empty value forgets them.
LISTS = {"ExecStart", "SupplementaryGroups", "Environment", "EnvironmentFiles", "UnsetEnvironment", "SystemCallFilter",
         "RestrictAddressFamilies", "InaccessiblePaths", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths"}
FILE_NAMES = {"EnvironmentFile": "EnvironmentFiles"}  # how files name a property
UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
TRUE = ("yes", "true", "on", "1")


def show_words(unit):
    return ["systemctl", "show", *(word for name in PROPERTIES for word in ("-p", name)), unit]


def _names_of(unit):
    """Names whose drop-in folders count for a unit: an instance has those of its template, too."""
    name, at, rest = unit.partition("@")
    return [unit, f"{name}@.{rest.rpartition('.')[2]}"] if at else [unit]


def belongs(path, unit):
    """"unit": the path is the unit's file. "drop-in": one of its drop-in files. "": neither."""
    for folder in UNIT_FOLDERS:
        for name in _names_of(unit):
            if path == f"{folder}/{name}":
                return "unit"
            if os.path.dirname(path) == f"{folder}/{name}.d" and path.endswith(".conf"):
                return "drop-in"
    return ""


def _settings_of(text):
    """Settings of the section [Service] of a unit's file, in their order."""
    section = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield FILE_NAMES.get(name.strip(), name.strip()), value.strip()


class UnitSettings:
    """`shown`: output of systemctl show. `planned`: text of each file that the migration will write, by path; None where it will
    remove the file."""

    def __init__(self, unit, shown, planned):
        self.unit = unit
        self.planned = planned
        self._single = {}  # by name
        self._lines = {name: [] for name in LISTS}
        for line in shown.splitlines():
            name, _, value = line.partition("=")
            if name in LISTS:
                self._lines[name] += [value] if value else []
            elif name:
                self._single[name] = value
        paths = [path for path, text in planned.items() if text is not None and belongs(path, unit)]
        for path in sorted(paths, key=lambda path: (belongs(path, unit) != "unit", os.path.basename(path))):
            # A unit file that is replaced takes its old settings with it.
            if belongs(path, unit) == "unit":
                self._single = {"LoadState": "loaded", "MainPID": self._single.get("MainPID", "0")}
                self._lines = {name: [] for name in LISTS}
            for name, value in _settings_of(planned[path]):
                if name not in LISTS:
                    self._single[name] = value
                elif value:
                    self._lines[name].append(value)
                else:
                    self._lines[name] = []

    def text(self, name):
        return self._single.get(name, "")

    def is_on(self, name):
        return self.text(name).lower() in TRUE

    def words(self, name):
        return [word for value in self._lines[name] for word in shlex.split(value)]

    def commands(self):
        """Words of each command of ExecStart, without the signs in front of a path."""
        commands = []
        for value in self._lines["ExecStart"]:
            found = re.findall(r"\{ path=(.*?) ; argv\[\]=(.*?) ; ", value)
            for path, arguments in found or [(None, value)]:
                words = shlex.split(arguments)
                if path is None:
                    words[0] = words[0].lstrip("@-:+!|")
                else:
                    words[0] = path
                commands.append(words)
        return commands

    def is_root(self):
        return self.text("User") in ("", "root", "0") and not self.is_on("DynamicUser")

    def environment(self, read):
        """Variables of the processes. `read` returns the text of a file, or None."""
        found = dict(word.partition("=")[::2] for word in self.words("Environment"))
        for value in self._lines["EnvironmentFiles"]:
            path = re.sub(r" \(ignore_errors=\w+\)$", "", value).lstrip("-")
            text = self.planned[path] if path in self.planned else read(path)
            for line in (text or "").splitlines():
                name, equals, content = line.strip().partition("=")
                if equals and name[:1] not in ("#", ";"):
                    found[name] = " ".join(shlex.split(content))
        for word in self.words("UnsetEnvironment"):
            name, equals, value = word.partition("=")
            if not equals or found.get(name) == value:
                found.pop(name, None)
        return found

    def filtered(self, name, wanted, sets=()):
        """Those of `wanted` that a filter (SystemCallFilter, RestrictAddressFamilies) refuses. Its first line decides whether it
        lists what is allowed or what is refused. `sets`: names of groups that have all of `wanted`."""
        lines = [value.split() for value in self._lines[name]]
        if not lines:
            return []
        denies = lines[0][0].startswith("~")
        listed = set()
        for line in lines:
            names = {word.lstrip("~").partition(":")[0] for word in line}
            names |= set(wanted) if names & set(sets) else set()
            listed = listed | names if line[0].startswith("~") == denies else listed - names
        return [word for word in wanted if (word in listed) == denies]
