# SPDX-License-Identifier: Apache-2.0
"""The chart as Helm renders it: examples, versions of Kubernetes, and what the cluster knows."""

import functools
import glob
import os
import subprocess

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "helm", "rocegw")
EXAMPLES = sorted(os.path.basename(name)[:-len("-values.yaml")] for name in glob.glob(os.path.join(CHART, "ci", "*-values.yaml")))
KUBERNETES = ("1.26.0", "1.34.0")
CERT_MANAGER = ("cert-manager.io/v1",)
MONITORING = tuple("monitoring.coreos.com/v1" + kind for kind in ("", "/PodMonitor", "/ServiceMonitor", "/PrometheusRule"))


class Refused(Exception):
    """Helm did not render; the text says why."""


def helm(*arguments):
    done = subprocess.run([os.environ["ROCEGW_HELM"], *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


def template(*arguments, kubernetes=KUBERNETES[-1], knows=(), chart=CHART):
    apis = [word for api in knows for word in ("--api-versions", api)]
    return helm("template", "rocegw", chart, "--namespace", "rocegw", "--kube-version", kubernetes, *apis, *arguments)


@functools.lru_cache(maxsize=None)
def rendered(example, kubernetes=KUBERNETES[-1], monitoring=False):
    """The text of an example."""
    knows = CERT_MANAGER + (MONITORING if monitoring else ())
    return template("--values", os.path.join(CHART, "ci", f"{example}-values.yaml"), kubernetes=kubernetes, knows=knows)


@functools.lru_cache(maxsize=None)
def objects(text):
    """Not to be changed by who gets them. libyaml's reader, since dashboards are long."""
    return [found for found in yaml.load_all(text, Loader=yaml.CSafeLoader) if found]


def matrix():
    """(what it is, objects) of every example on every kind of cluster."""
    for example in EXAMPLES:
        for kubernetes in KUBERNETES:
            for monitoring in (False, True):
                name = f"{example} on {kubernetes} with{'' if monitoring else 'out'} monitoring"
                yield name, objects(rendered(example, kubernetes, monitoring))


def pods(found):
    """(name of the workload, pod) of all workloads."""
    for workload in found:
        if workload["kind"] in ("DaemonSet", "StatefulSet", "Deployment", "Job"):
            yield workload["metadata"]["name"], workload["spec"]["template"]


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def named(found, kind, name):
    return next((one for one in found if one["kind"] == kind and one["metadata"]["name"] == name), None)


def gateway_config(found):
    return yaml.safe_load(named(found, "ConfigMap", "rocegw-gateway")["data"]["rocegwd.yaml"])


def bytes_of(amount):
    """Bytes of an amount as Kubernetes (8Gi) or rocegwd's configuration (8GiB, 0) writes it."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    text = str(amount).removesuffix("B")
    return int(text[:-2]) * units[text[-2:]] if text[-2:] in units else int(text)
