# SPDX-License-Identifier: Apache-2.0
"""The cluster by kubectl and helm: calls with a deadline, and waiting for what they say."""

import json
import subprocess
import time


class Failed(Exception):
    """A call or a wait that did not do what it should; the text is for people."""


class Cluster:
    """What all cases ask. Every object that it makes has LABEL, and only such objects and the release are removed."""

    LABEL = "rocegw.io/cluster-test"

    def __init__(self, kubectl="kubectl", helm="helm", poll_seconds=2.0):
        self._kubectl, self._helm, self._poll = kubectl, helm, poll_seconds

    def _call(self, command, text=None, seconds=120, may_fail=False):
        try:
            done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds,
                                  check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command[:6])}: no end within {seconds} s") from None
        if done.returncode != 0 and not may_fail:
            raise Failed(f"{' '.join(command[:8])}: {(done.stderr or done.stdout).strip()[-400:]}")
        return done

    def kubectl(self, *arguments, **how):
        return self._call([self._kubectl, *arguments], **how)

    def run_script(self, *command, seconds=300):
        """Whether a script of this repository, which calls kubectl itself, ends well."""
        return self._call(list(command), seconds=seconds, may_fail=True).returncode == 0

    def helm(self, *arguments, seconds=300):
        return self._call([self._helm, *arguments], seconds=seconds).stdout

    def apply(self, *objects):
        for one in objects:
            one["metadata"].setdefault("labels", {})[self.LABEL] = "true"
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def refused(self, *objects):
        """Why the API server does not take the objects; fails when it does."""
        done = self.kubectl("apply", "--dry-run=server", "-f", "-", may_fail=True,
                            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        if done.returncode == 0:
            raise Failed("the API server takes what it should refuse")
        return done.stderr

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "--output", "json").stdout)

    def items(self, *what):
        return self.get(*what)["items"]

    def execute(self, namespace, pod, *command, seconds=60, may_fail=False, container=None, text=None):
        chosen = ["--container", container] if container else []
        stdin = ["--stdin"] if text is not None else []
        return self.kubectl("--namespace", namespace, "exec", *stdin, pod, *chosen, "--", *command, seconds=seconds,
                            may_fail=may_fail, text=text)

    def wait(self, what, condition, seconds=180):
        """Until condition() is true; returns after how many seconds that was."""
        begin = time.monotonic()
        last = None
        while True:
            try:
                if condition():
                    return time.monotonic() - begin
            except Failed as failure:
                last = failure
            if time.monotonic() - begin > seconds:
                raise Failed(f"{what}: not within {seconds} s" + (f" ({last})" if last else ""))
            time.sleep(self._poll)

    def is_ready(self, namespace, pod):
        found = self.get("pod", pod, "--namespace", namespace)
        return any(one["type"] == "Ready" and one["status"] == "True" for one in found["status"].get("conditions", []))

    def wait_ready(self, namespace, *pods, seconds=180):
        for pod in pods:
            self.wait(f"pod {namespace}/{pod} is ready", lambda pod=pod: self.is_ready(namespace, pod), seconds)
