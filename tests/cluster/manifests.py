# SPDX-License-Identifier: Apache-2.0
"""Objects that the cases make. All pods run under the restricted profile of Pod Security."""

RESTRICTED = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def namespace(name, profile="restricted"):
    labels = {"pod-security.kubernetes.io/enforce": profile}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def container(name, image, pools, command=("sleep", "infinity")):
    limits = {f"rocegw.io/{pool}": "1" for pool in pools}
    return {"name": name, "image": image, "command": list(command), "securityContext": CONTAINER, "resources": {"limits": limits}}


def pod_spec(image, pools, node=None, containers=1):
    # A pod that is bound by nodeName never meets the scheduler, which is what counts slots: a selector does.
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {**selector, "terminationGracePeriodSeconds": 1, "securityContext": RESTRICTED,
            "containers": [container(f"c{i}", image, pools) for i in range(containers)]}


def pod(name, name_space, image, pools, node=None, containers=1):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": name_space},
            "spec": pod_spec(image, pools, node, containers)}


def deployment(name, name_space, image, pools, replicas):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": name_space},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": pod_spec(image, pools)}}}


def quota(name, name_space, pool, most):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": name_space},
            "spec": {"hard": {f"requests.rocegw.io/{pool}": str(most)}}}


def pools(name_space):
    """The fleet's objects, for rocegwctl apply."""
    text = "name: tenants/cluster-test\nspec: {displayName: cluster test}\n"
    for name in ("a", "b"):
        text += (f"---\nname: tenants/cluster-test/pools/{name}\nspec:\n  gateways: {{all: true}}\n  slots: 24\n"
                 f"  attach: {{socketMode: 0666, identity: REQUIRED, serviceAccounts: [{{namespace: {name_space}}}]}}\n")
    return text
