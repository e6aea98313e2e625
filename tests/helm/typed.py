# SPDX-License-Identifier: Apache-2.0
"""Holds manifests against the types of Kubernetes' objects, strictly: a compiler for TypeScript refuses literals with unknown
fields, wrong types and missing fields, at any depth."""

import json
import os
import subprocess
import tempfile

MODULES = {
    "v1": "kubernetes-models/v1",
    "apps/v1": "kubernetes-models/apps/v1",
    "batch/v1": "kubernetes-models/batch/v1",
    "admissionregistration.k8s.io/v1": "kubernetes-models/admissionregistration.k8s.io/v1",
    "policy/v1": "kubernetes-models/policy/v1",
    "resource.k8s.io/v1": "kubernetes-models/resource.k8s.io/v1",
    "rbac.authorization.k8s.io/v1": "kubernetes-models/rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1": "kubernetes-models/scheduling.k8s.io/v1",
    "cert-manager.io/v1": "@kubernetes-models/cert-manager/cert-manager.io/v1",
    "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
}


def program(found):
    """One constant for each different object, each on a line of its own."""
    literals = sorted({json.dumps(one, sort_keys=True) for one in found})
    kinds = sorted({(one["apiVersion"], one["kind"]) for one in found})
    lines = [f'import type {{ I{kind} }} from "{MODULES[api]}/{kind}";' for api, kind in kinds]
    lines += [f"export const object{number}: I{json.loads(text)['kind']} = {text};" for number, text in enumerate(literals)]
    return "\n".join(lines) + "\n"


def complaints(found):
    """What is wrong, a line each; empty: nothing."""
    tools = os.environ["ROCEGW_TYPES"]
    with tempfile.TemporaryDirectory(dir=tools) as place:
        name = os.path.join(place, "manifests.ts")
        with open(name, "w", encoding="utf-8") as file:
            file.write(program(found))
        done = subprocess.run([os.path.join(tools, "node_modules", ".bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
                               "--moduleResolution", "node", "--target", "es2020", name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 and not told:
        told = [f"the compiler ended with {done.returncode}"]
    return told
