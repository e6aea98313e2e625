# SPDX-License-Identifier: Apache-2.0
"""A cluster that keeps the objects that are applied, makes pods run at once, and plays the release of the chart: enough for the
cases to run against, and to find what they leave behind."""

import json
import types

from cluster import Cluster, Failed


def done(returncode=0, stdout="", stderr=""):
    return types.SimpleNamespace(returncode=returncode, stdout=stdout, stderr=stderr)


class FakeCluster(Cluster):
    """faults: names of what goes wrong, see the methods."""

    def __init__(self, faults=()):
        super().__init__(poll_seconds=0)
        self.faults = set(faults)
        self.objects = {}  # (kind, namespace, name) to object
        self.released = False
        self.labels = {}
        self.history = []
        self.pools = False
        self.calls = []
        self.traffic = ""  # what the program beside a deletion said at its end
        for name in ("n1", "n2"):
            self.objects["node", "", name] = {"metadata": {"name": name}, "spec": {}}

    # What the release makes ------------------------------------------------------------------------

    def _components(self):
        for component, count in (("controller", 1), ("agent", 2), ("gateway", 2)):
            for i in range(count):
                labels = {"component": component, **(self.labels if component != "controller" else {})}
                yield {"metadata": {"name": f"{component}-{i}", "namespace": "t", "labels": labels},
                       "spec": {"nodeName": f"n{i + 1}"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    def helm(self, *arguments, seconds=300):
        self.calls.append(("helm",) + arguments)
        verb = arguments[0]
        if f"helm {verb}" in self.faults:
            raise Failed(f"helm {verb} fails")
        if verb == "uninstall" and not self.released:
            raise Failed("release: not found")
        if verb in ("install", "upgrade"):
            self.history.append(self.labels)
            self.labels = {"tried": "upgrade"} if verb == "upgrade" else {}
            if verb == "upgrade" and "gateway ends traffic" in self.faults:
                self.traffic = "cma event RDMA_CM_EVENT_DISCONNECTED\nexit status 255\n"
        if verb == "rollback":
            self.labels = self.history[-1]
        self.released = verb != "uninstall"
        self.pools = self.pools and self.released
        if verb == "uninstall" and "leftover" in self.faults:
            self.objects["clusterrole", "", "left"] = {"metadata": {
                "name": "left", "labels": {"app.kubernetes.io/instance": "r"}}}
        return ""

    def run_script(self, *command, seconds=300):
        self.calls.append(command)
        return True

    # kubectl ---------------------------------------------------------------------------------------

    def kubectl(self, *arguments, text=None, seconds=120, may_fail=False):
        self.calls.append(("kubectl",) + arguments)
        words = [word for word in arguments if not word.startswith("-")]
        name_space = arguments[arguments.index("--namespace") + 1] if "--namespace" in arguments else ""
        words = [word for word in words if word != name_space]
        verb = words[0]
        answer = getattr(self, f"_{verb}")(words[1:], name_space, arguments, text)
        if answer.returncode != 0 and not may_fail:
            raise Failed(answer.stderr)
        return answer

    def _apply(self, _words, _name_space, arguments, text):
        if "--dry-run=server" in arguments:
            return done(1, stderr="exceeded quota: one")
        for one in json.loads(text)["items"]:
            meta = one["metadata"]
            one["status"] = {"conditions": [{"type": "Ready", "status": "True"}], "hostIP": "192.0.2.1", "phase": "Succeeded"}
            self.objects[one["kind"].lower(), meta.get("namespace", ""), meta["name"]] = one
        return done()

    def _get(self, words, name_space, arguments, _text):
        kind = words[0].rstrip("s") if words[0] != "validatingadmissionpolicies" else "validatingadmissionpolicy"
        if kind == "pod" and "--selector" in arguments:
            wanted = arguments[arguments.index("--selector") + 1].rpartition("=")[2]
            return self._list(one for one in self._components() if self.released and one["metadata"]["labels"]["component"] == wanted)
        if kind == "node" and len(words) > 1 and words[1] in ("n1", "n2"):
            slots = {"rocegw.io/cluster-test.a": "24"} if self.pools else {}
            return done(stdout=json.dumps({"status": {"allocatable": slots}}))
        if "--field-selector" in arguments:
            rolling = {"metadata": {"name": "rolling-1"}}
            return self._list([rolling] if "app=rolling" in arguments else [])
        if len(words) > 1 and not words[1].startswith("json"):
            for one in self._components():
                if kind == "pod" and self.released and one["metadata"]["name"] == words[1]:
                    return done(stdout=json.dumps(one))
            found = self.objects.get((kind, name_space, words[1]))
            return done(stdout=json.dumps(found)) if found else done(1, stderr=f"{words[1]} not found")
        return self._list(one for (a, space, _), one in self.objects.items() if a == kind and space == name_space)

    @staticmethod
    def _list(items):
        return done(stdout=json.dumps({"items": list(items)}))

    def _delete(self, words, name_space, _arguments, _text):
        if words[0] == "namespace":
            self.objects = {key: one for key, one in self.objects.items() if key[1] != words[1] and key != ("namespace", "", words[1])}
            return done()
        component = words[-1].rpartition("-")[0]
        if component == "gateway" or f"{component} ends traffic" in self.faults:
            self.traffic = "cma event RDMA_CM_EVENT_DISCONNECTED\nexit status 255\n"
        self.objects.pop((words[0], name_space, words[-1]), None)
        return done()

    def _exec(self, words, _name_space, _arguments, _text):
        pod, command = words[0], " ".join(words)
        if "apply" in command:
            self.pools = True
        if "cat /dev/shm/said" in command:
            return done(stdout=self.traffic)
        if "/dev/shm/said" in command:
            self.traffic = ""
            return done()
        if "rping" in command and "rping" in self.faults:
            return done(1, stderr="data mismatch")
        if pod == "thief":
            return done(255, "device rocegw0" if "thief" in self.faults else "", "pod t-pods-foreign/thief: p is for namespace t-pods only")
        if pod == "both":
            return done(255, "", "its container asks for more than one slot")
        if "printenv" in command:
            return done(stdout=words[1] if "c0" in words or "c1" in words else "")
        return done(stdout="rocegw0")

    def _logs(self, *_):
        return done(stdout="var/lib/rocegw-agent\n" if "directories" in self.faults else "")

    def _drain(self, *_):
        return done()

    _uncordon = _rollout = _drain
