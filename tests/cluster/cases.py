# SPDX-License-Identifier: Apache-2.0
"""What is tried, in this order: later cases need what earlier ones made. Each returns a remark for the table, or raises Failed."""

import contextlib
import os

import manifests
from cluster import Failed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POOL, OTHER_POOL = "cluster-test.a", "cluster-test.b"
FOREIGN = "-foreign"
CLUSTER_WIDE = ("clusterroles", "clusterrolebindings", "priorityclasses", "validatingadmissionpolicies",
                "validatingadmissionpolicybindings")
BURST = 20


class Cases:
    """The release under test and the pods beside it."""

    def __init__(self, cluster, options):
        self.cluster, self.options = cluster, options
        self.own, self.pods = options.namespace, options.namespace + "-pods"
        self.nodes = []

    # Steps that several cases take -----------------------------------------------------------------

    def chart_arguments(self):
        repository, _, tag = self.options.image.rpartition(":")
        settings = [f"image.repository={repository}", f"image.tag={tag}", *self.options.set]
        return [os.path.join(ROOT, "helm", "rocegw"), "--namespace", self.own,
                *(word for setting in settings for word in ("--set", setting))]

    def components(self, component):
        selector = f"app.kubernetes.io/instance={self.options.release},app.kubernetes.io/component={component}"
        return [one["metadata"]["name"] for one in self.cluster.items("pods", "--namespace", self.own, "--selector", selector)]

    def rocegwctl(self, *arguments, text=None):
        pod = self.components("controller")[0]
        return self.cluster.execute(self.own, pod, "rocegwctl", *arguments, container="rocegw-controller", text=text).stdout

    def allocatable(self, node, pool=POOL):
        return int(self.cluster.get("node", node)["status"]["allocatable"].get(f"rocegw.io/{pool}", "0"))

    def await_slots(self, seconds=180):
        return self.cluster.wait("every node offers slots", lambda: all(self.allocatable(node) == 24 for node in self.nodes), seconds)

    def pod(self, name, **how):
        return manifests.pod(name, self.pods, self.options.programs_image, how.pop("pools", [POOL]), **how)

    @contextlib.contextmanager
    def running(self, *objects, seconds=180):
        """The pods, ready, and gone afterwards."""
        self.cluster.apply(*objects)
        try:
            self.cluster.wait_ready(self.pods, *(one["metadata"]["name"] for one in objects if one["kind"] == "Pod"), seconds=seconds)
            yield
        finally:
            for one in objects:
                self.cluster.kubectl("delete", one["kind"].lower(), one["metadata"]["name"], "--namespace", self.pods,
                                     "--ignore-not-found", "--wait=true", may_fail=True)

    def sees_a_device(self, pod):
        if "rocegw0" not in self.cluster.execute(self.pods, pod, "ibv_devices").stdout:
            raise Failed(f"{pod} sees no device")

    def pair(self):
        return self.running(self.pod("server", node=self.nodes[0]), self.pod("client", node=self.nodes[1]))

    def exchange(self, seconds=60):
        """rping compares what comes back (-V)."""
        address = self.cluster.get("pod", "server", "--namespace", self.pods)["status"]["hostIP"]
        serve = "rping -s -C 50 -V >/dev/null 2>&1 & sleep 1"
        self.cluster.execute(self.pods, "server", "sh", "-c", serve, seconds=seconds)
        self.cluster.execute(self.pods, "client", "rping", "-c", "-a", address, "-C", "50", "-V", seconds=seconds)

    def exchanges(self):
        try:
            self.exchange(seconds=20)
            return True
        except Failed:
            return False

    def start_traffic(self):
        """A program in the client's pod that runs until it fails. /dev/shm is the one place where a restricted pod may write."""
        address = self.cluster.get("pod", "server", "--namespace", self.pods)["status"]["hostIP"]
        endless = "-p 7175 -C 100000000 -V"
        self.cluster.execute(self.pods, "server", "sh", "-c", f"rping -s {endless} >/dev/null 2>&1 & sleep 1")
        program = f"rping -c -a {address} {endless} >/dev/shm/said 2>&1; echo \"exit status $?\" >>/dev/shm/said"
        self.cluster.execute(self.pods, "client", "sh", "-c", f"({program}) >/dev/null 2>&1 & sleep 2")
        if self.traffic_end():
            raise Failed(f"the program ends before anything is deleted: {self.traffic_end()}")

    def traffic_end(self):
        """What that program said and how it ended, in one line; empty: it runs."""
        said = self.cluster.execute(self.pods, "client", "sh", "-c", "cat /dev/shm/said 2>/dev/null || true").stdout
        return ", ".join(said.split("\n")).strip(", ")[-200:] if "exit status" in said else ""

    # Cases -----------------------------------------------------------------------------------------

    def install(self):
        schedulable = [one["metadata"]["name"] for one in self.cluster.items("nodes")
                       if not one["spec"].get("unschedulable") and not one["spec"].get("taints")]
        if len(schedulable) < 2:
            raise Failed(f"two schedulable nodes are needed, there are {len(schedulable)}")
        self.nodes = schedulable[:2]
        self.cluster.apply(manifests.namespace(self.own, "privileged"), manifests.namespace(self.pods),
                           manifests.namespace(self.pods + FOREIGN))
        self.cluster.helm("install", self.options.release, *self.chart_arguments())
        took = self.cluster.wait("the controller runs", lambda: self.components("controller") and self.cluster.is_ready(
            self.own, self.components("controller")[0]))
        return f"controller ready after {took:.0f} s"

    def join(self):
        release = ["--namespace", self.own, "--release", self.options.release]
        self.cluster.wait("agents wait for their join files", lambda: len(self.components("agent")) >= len(self.nodes))
        self.cluster.wait("join-nodes", lambda: self.cluster.run_script(
            os.path.join(ROOT, "scripts", "join-nodes"), *release) and all(
                self.cluster.is_ready(self.own, pod) for pod in self.components("agent") + self.components("gateway")))
        return f"{len(self.components('gateway'))} gateways"

    def pool(self):
        self.rocegwctl("apply", "-f", "-", "--wait", text=manifests.pools(self.pods))
        return f"slots offered after {self.await_slots():.0f} s"

    def two_nodes(self):
        with self.pair():
            self.exchange()
        return "50 round trips, data compared"

    def refusal(self):
        foreign = self.pods + FOREIGN
        thief = manifests.pod("thief", foreign, self.options.programs_image, [POOL], node=self.nodes[0])
        self.cluster.apply(thief)
        try:
            self.cluster.wait_ready(foreign, "thief")
            done = self.cluster.execute(foreign, "thief", "ibv_devices", may_fail=True)
            if "rocegw0" in done.stdout:
                raise Failed("a pod of a foreign namespace has a device")
            if f"is for namespace {self.pods} only" not in done.stderr:
                raise Failed(f"the program is not told why: {done.stderr.strip()[-200:]}")
        finally:
            self.cluster.kubectl("delete", "pod", "thief", "--namespace", foreign, may_fail=True)

    def restricted(self):
        with self.running(self.pod("plain", node=self.nodes[0])):
            self.sees_a_device("plain")

    def two_containers(self):
        with self.running(self.pod("twins", node=self.nodes[0], containers=2)):
            slots = {self.cluster.execute(self.pods, "twins", "printenv", "ROCEGW_SLOT", container=f"c{i}").stdout for i in range(2)}
            if len(slots) != 2:
                raise Failed(f"two containers have the slots {slots}")

    def two_pools(self):
        with self.running(self.pod("both", node=self.nodes[0], pools=[POOL, OTHER_POOL])):
            done = self.cluster.execute(self.pods, "both", "ibv_devices", may_fail=True)
            if "more than one slot" not in done.stderr:
                raise Failed(f"a container with two pools is not told so: {done.stderr.strip()[-200:]}")

    def quota(self):
        limit = manifests.quota("one", self.pods, POOL, 1)
        self.cluster.apply(limit)
        try:
            with self.running(self.pod("first")):
                if "exceeded quota" not in self.cluster.refused(self.pod("second")):
                    raise Failed("the second pod is refused for something else than the quota")
        finally:
            self.cluster.kubectl("delete", "resourcequota", "one", "--namespace", self.pods, may_fail=True)

    def burst(self):
        names = [f"burst-{i}" for i in range(BURST)]
        with self.running(*(self.pod(name) for name in names), seconds=300):
            for name in names:
                self.sees_a_device(name)
        return f"{BURST} pods"

    def rollout(self):
        made = manifests.deployment("rolling", self.pods, self.options.programs_image, [POOL], 3)
        self.cluster.apply(made)
        try:
            done = ("--namespace", self.pods, "rollout", "status", "deployment/rolling", "--timeout=180s")
            self.cluster.kubectl(*done, seconds=200)
            self.cluster.kubectl("--namespace", self.pods, "rollout", "restart", "deployment/rolling")
            self.cluster.kubectl(*done, seconds=200)
            for one in self.cluster.items("pods", "--namespace", self.pods, "--selector", "app=rolling",
                                          "--field-selector", "status.phase=Running"):
                if not one["metadata"].get("deletionTimestamp"):
                    self.sees_a_device(one["metadata"]["name"])
        finally:
            self.cluster.kubectl("delete", "deployment", "rolling", "--namespace", self.pods, "--wait=true", may_fail=True)

    def _delete(self, component, node=None, survives=True):
        """Deletes the component's pod (of a node) under traffic of two pods: what the running program sees, and how long others
        cannot begin to talk."""
        with self.pair():
            self.exchange()
            self.start_traffic()
            for pod in self.components(component):
                if node is None or self.cluster.get("pod", pod, "--namespace", self.own)["spec"].get("nodeName") == node:
                    self.cluster.kubectl("delete", "pod", pod, "--namespace", self.own, "--wait=false")
            if not survives:
                ended = self.cluster.wait("the running program is told", self.traffic_end, 120)
                seen = f"the running program ended after {ended:.0f} s ({self.traffic_end()}), "
            took = self.cluster.wait("the same pods talk again", self.exchanges)
            if survives:
                if self.traffic_end():
                    raise Failed(f"the running program ended: {self.traffic_end()}")
                seen = "the running program noticed nothing, "
            return f"{seen}the same pods talked again after {took:.0f} s"

    def delete_agent(self):
        return self._delete("agent", self.nodes[0])

    def delete_controller(self):
        return self._delete("controller")

    def delete_gateway(self):
        return self._delete("gateway", self.nodes[0], survives=False)

    def upgrade(self):
        """Agents and gateways are renewed under traffic of two pods: the chart's gateways take over from one another."""
        with self.pair():
            self.exchange()
            self.start_traffic()
            self.cluster.helm("upgrade", self.options.release, *self.chart_arguments(), "--set",
                              "agent.podLabels.tried=upgrade,gateway.podLabels.tried=upgrade")
            for component in ("agent", "gateway"):
                self._await_labelled(component, "upgrade")
            if self.traffic_end():
                raise Failed(f"the running program ended: {self.traffic_end()}")
            self.await_slots()
            self.exchange()
        return "the running program noticed nothing"

    def _await_labelled(self, component, value):
        def renewed():
            pods = [self.cluster.get("pod", pod, "--namespace", self.own) for pod in self.components(component)]
            return pods and all(one["metadata"]["labels"].get("tried") == value for one in pods) and all(
                self.cluster.is_ready(self.own, one["metadata"]["name"]) for one in pods)

        self.cluster.wait(f"{component}s are renewed", renewed, 300)

    def rollback(self):
        self.cluster.helm("rollback", self.options.release, "--namespace", self.own)
        for component in ("agent", "gateway"):
            self._await_labelled(component, None)
        with self.pair():
            self.exchange()

    def helm_test(self):
        self.cluster.helm("test", self.options.release, "--namespace", self.own)

    def drain_node(self):
        node = self.nodes[1]
        with self.pair():
            self.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
                                 f"--pod-selector={self.cluster.LABEL}=true", "--timeout=180s", seconds=200)
            try:
                left = [one["metadata"]["name"] for one in self.cluster.items(
                    "pods", "--namespace", self.pods, "--field-selector", f"spec.nodeName={node}")]
                if left:
                    raise Failed(f"the drained node still runs {left}")
            finally:
                self.cluster.kubectl("uncordon", node)
        self.await_slots()

    def uninstall(self):
        self.cluster.helm("uninstall", self.options.release, "--namespace", self.own, "--wait")
        self.cluster.kubectl("delete", "pvc", "--all", "--namespace", self.own, "--wait=false")
        left = [f"{kind}/{one['metadata']['name']}"
                for kind in CLUSTER_WIDE for one in self.cluster.items(kind)
                if one["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == self.options.release]
        if left:
            raise Failed(f"helm uninstall left {', '.join(left)}")
        # kubelet keeps a resource whose plugin has gone for five minutes, without any to give.
        took = self.cluster.wait("nodes offer no slots", lambda: not any(self.allocatable(node) for node in self.nodes), 400)
        return f"no slots after {took:.0f} s"

    def directories(self):
        """The commands of docs/operate/kubernetes.md for the nodes leave nothing of rocegw there, and nodes can join again."""
        paths = ("run/rocegw", "var/lib/rocegw-agent", "var/lib/rocegw-library", "var/run/cdi/rocegw-*",
                 "var/lib/kubelet/device-plugins/rocegw-*.sock", "var/lib/kubelet/plugins/rocegw.io")
        script = (f"cd /host && rm -rf {' '.join(paths)}; "
                  "find run/ var/run/cdi/ var/lib/ var/lib/kubelet/device-plugins/ var/lib/kubelet/plugins/ "
                  "var/lib/kubelet/plugins_registry/ -maxdepth 1 -name '*rocegw*' 2>/dev/null")
        left = []
        for i, node in enumerate(self.nodes):
            spec = {"hostPID": False, "restartPolicy": "Never", "nodeName": node,
                    "containers": [{"name": "remove", "image": self.options.image, "command": ["sh", "-c", script],
                                    "securityContext": {"runAsUser": 0}, "volumeMounts": [{"name": "host", "mountPath": "/host"}]}],
                    "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
            name = f"remove-{i}"
            self.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.own}, "spec": spec})
            self.cluster.wait(f"{name} has ended", lambda name=name: self.cluster.get(
                "pod", name, "--namespace", self.own)["status"].get("phase") in ("Succeeded", "Failed"))
            left += self.cluster.kubectl("logs", name, "--namespace", self.own).stdout.split()
            self.cluster.kubectl("delete", "pod", name, "--namespace", self.own)
        if left:
            raise Failed(f"the nodes still have {', '.join(sorted(set(left)))}")

    def reinstall(self):
        self.install()
        self.join()
        self.pool()
        with self.pair():
            self.exchange()

    ORDER = ("install", "join", "pool", "helm_test", "two_nodes", "refusal", "restricted", "two_containers", "two_pools", "quota",
             "burst", "rollout", "delete_agent", "delete_controller", "delete_gateway", "upgrade", "rollback", "drain_node",
             "uninstall", "directories", "reinstall")
    # Without these no other case makes sense.
    NEEDED = ("install", "join", "pool")

    def clean_up(self):
        """Removes the release and every namespace of the suite; what is not there is no failure."""
        with contextlib.suppress(Failed):
            self.cluster.helm("uninstall", self.options.release, "--namespace", self.own, "--wait")
        with contextlib.suppress(Failed):
            if len(self.nodes) == 2:
                self.directories()
        for name in (self.pods, self.pods + FOREIGN, self.own):
            self.cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true", seconds=300, may_fail=True)
