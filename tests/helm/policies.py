# SPDX-License-Identifier: Apache-2.0
"""What no pod of the chart may have or lack. Each function takes (name, pod) and yields complaints."""

import chart

# A gateway ends its sessions in ten seconds (gateway/daemon/gateway.cc), and then the rest of itself.
OWN_END_SECONDS = 15
# Of the gateway alone: what each is for stands in docs/operate/kubernetes.md.
CAPABILITIES = {"BPF", "CHOWN", "DAC_OVERRIDE", "FOWNER", "IPC_LOCK", "NET_ADMIN", "NET_RAW", "SYS_PTRACE"}
HOST_DIRECTORIES = {
    "gateway": {"/run/rocegw"},
    "agent": {"/opt/site/rocegw-adapters", "/run/rocegw", "/run/rocegw-donors", "/var/lib/rocegw-agent", "/var/lib/rocegw-library",
              "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources", "/var/lib/kubelet/plugins/rocegw.io", "/var/lib/kubelet/plugins_registry",
              "/var/log/pods", "/var/run/cdi"},
    "controller": set()}


# At the API server: (API group, resource) to verbs. What each is for stands in docs/operate/kubernetes.md.
RIGHTS = {("", "pods"): {"get"}, ("", "namespaces"): {"get"}, ("", "nodes"): {"get"},
          ("authentication.k8s.io", "tokenreviews"): {"create"}, ("", "configmaps"): {"patch"},
          ("resource.k8s.io", "resourceclaims"): {"get"},
          ("resource.k8s.io", "resourceslices"): {"list", "create", "update", "delete"}}


def rights(one):
    """(API group, resource, verb) of a role."""
    for rule in one.get("rules", []) if one["kind"] in ("Role", "ClusterRole") else []:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


def component(pod):
    return pod["metadata"]["labels"]["app.kubernetes.io/component"]


def privilege(name, pod):
    for container in chart.containers(pod):
        context = container.get("securityContext", {})
        where = f"{name}/{container['name']}"
        if context.get("privileged"):
            yield f"{where} is privileged"
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{where} may gain privilege"
        if context.get("readOnlyRootFilesystem") is not True:
            yield f"{where} may write to its image"
        capabilities = context.get("capabilities", {})
        if capabilities.get("drop") != ["ALL"]:
            yield f"{where} keeps capabilities"
        allowed = CAPABILITIES if component(pod) == "gateway" else set()
        if set(capabilities.get("add", [])) - allowed:
            yield f"{where} adds {capabilities['add']}"
        seccomp = context.get("seccompProfile", pod["spec"].get("securityContext", {}).get("seccompProfile", {}))
        if seccomp.get("type") != "RuntimeDefault":
            yield f"{where} has no seccomp profile"
        user = context.get("runAsUser", pod["spec"].get("securityContext", {}).get("runAsUser"))
        if component(pod) == "controller" and (user == 0 or not pod["spec"]["securityContext"].get("runAsNonRoot")):
            yield f"{where} may be root"


def host(name, pod):
    spec = pod["spec"]
    if spec.get("hostIPC") or (spec.get("hostPID") and component(pod) != "gateway"):
        yield f"{name} sees what it need not of the node"
    if spec.get("hostNetwork") and component(pod) == "controller":
        yield f"{name} uses the node's network"
    if spec.get("hostNetwork") and spec.get("dnsPolicy") != "ClusterFirstWithHostNet":
        yield f"{name} does not find names of the cluster"
    for volume in spec["volumes"]:
        path = volume.get("hostPath", {}).get("path")
        if path is not None and path not in HOST_DIRECTORIES[component(pod)]:
            yield f"{name} mounts {path} of the node"


def tokens(name, pod):
    if pod["spec"].get("automountServiceAccountToken") is not False:
        yield f"{name} gets a token for the API server, whichever container calls it"
    for container in pod["spec"].get("initContainers", []):
        if any(mount["name"] == "api-token" for mount in container.get("volumeMounts", [])):
            yield f"{name}/{container['name']} gets a token for the API server, which it does not call"


def probes(name, pod):
    for container in pod["spec"]["containers"]:
        paths = {}
        # Two pods of gateways are on a node while one takes over, so they list no ports, and readiness is who is the gateway.
        surges = component(pod) == "gateway" and "--take-over" in container["args"]
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = container.get(kind, {}).get("httpGet")
            if surges and kind == "readinessProbe" and get is None and container[kind]["exec"]["command"][-2:] == ["pod", "ready"]:
                paths[kind] = "/readyz"
                continue
            if get is None:
                yield f"{name}/{container['name']} has no {kind}"
                continue
            paths[kind] = get["path"]
            # On the node's network the pod's address is the node's, where the page need not listen.
            if pod["spec"].get("hostNetwork") and get.get("host") != "127.0.0.1":
                yield f"{name}/{container['name']}: {kind} does not ask loopback"
            if surges and "ports" in container:
                yield f"{name}/{container['name']} lists ports, of which a node has one only"
            if get["port"] not in {port["name"] for port in container.get("ports", [])} and not (surges and isinstance(get["port"], int)):
                yield f"{name}/{container['name']}: {kind} asks a port that is not there"
        if paths and paths != {"startupProbe": "/readyz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}:
            yield f"{name}/{container['name']} asks {paths}"


def resources(name, pod):
    for container in chart.containers(pod):
        given = container.get("resources", {})
        for kind, what in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
            if what not in given.get(kind, {}):
                yield f"{name}/{container['name']} has no {kind} of {what}"
        for what in set(given.get("requests", {})) | set(given.get("limits", {})):
            if what.startswith("hugepages-") and given["requests"].get(what) != given["limits"].get(what):
                yield f"{name}/{container['name']}: {what} must be requested as it is limited"


def ends(name, pod):
    """Who drains before the end does so for a time, and has the time that it takes without besides."""
    for container in pod["spec"]["containers"]:
        command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        if command is None:
            if component(pod) == "gateway":
                yield f"{name}/{container['name']} does not drain before its end"
            continue
        waits = command[-1] == "--wait" or command[-2:] == ["pod", "drain"]
        if "--timeout" not in command or not waits:
            yield f"{name}/{container['name']} has no deadline of its drain, or does not wait for it"
            continue
        seconds = int(command[command.index("--timeout") + 1].removesuffix("s"))
        if seconds + OWN_END_SECONDS > pod["spec"]["terminationGracePeriodSeconds"]:
            yield f"{name}/{container['name']} may be killed while it drains or ends its sessions"


ALL = (privilege, host, tokens, probes, resources, ends)


def complaints(found):
    """Of all objects of a rendering."""
    told = [complaint for name, pod in chart.pods(found) for policy in ALL for complaint in policy(name, pod)]
    for one in found:
        for group, resource, verb in rights(one):
            if verb not in RIGHTS.get((group, resource), set()):
                told.append(f"{one['kind']} {one['metadata']['name']}: {verb} of {resource} is for nothing of ours")
        if one["kind"] == "Secret":
            told.append(f"Secret {one['metadata']['name']}: a template makes no secrets")
    return told
