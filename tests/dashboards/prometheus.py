# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus in a namespace of the laboratory, with the project's own scrape jobs and rules, in a hurry: it scrapes each
second, windows of rates are seconds instead of minutes and hours, and alerts fire at once."""

import json
import math
import os
import re
import signal
import time
import urllib.parse

import yaml

from metric_list import ROOT
from netlab.fleet import eventually
from netlab.gateway_host import http_get
from netlab.job import LabError

_PORT = 9090
WINDOW = "15s"
MOST = 180  # seconds that something may take which takes few on a machine that does nothing else
_FOLDER = os.path.join(ROOT, "dashboards/prometheus")


def hurried(text):
    """Rules or expressions with short windows. Half an hour, in which something happens several times, stays what it is, and so
    does the time that something was true before: a run is long enough for both."""
    text = re.sub(r"\[(?!30m)\d+[mh]\]", f"[{WINDOW}]", text).replace("$__rate_interval", WINDOW)
    text = re.sub(r"^( +for): .*$", r"\1: 0s", text, flags=re.M)
    return re.sub(r"^( +interval): .*$", r"\1: 1s", text, flags=re.M)


def rising(counter):
    return f"rate({counter}[{WINDOW}])"


def has_something(values):
    return any(value != 0 and not math.isnan(value) for value in values)


class Prometheus:
    """hosts: addresses of gateways with their agents. controllers: address with port of each, by its cluster; hosts are of the
    first one. memory: addresses with ports of donors and mounts of remote memory."""

    def __init__(self, lab, namespace, hosts, controllers, memory):
        self.namespace = namespace
        self._targets = 2 * len(hosts) + len(controllers) + len(memory)
        directory = lab.path("prometheus")
        os.mkdir(directory)
        with open(os.path.join(_FOLDER, "rules.yaml"), encoding="utf-8") as file, \
                open(os.path.join(directory, "rules.yaml"), "w", encoding="utf-8") as out:
            out.write(hurried(file.read()))
        with open(os.path.join(_FOLDER, "prometheus.yaml"), encoding="utf-8") as file:
            config = yaml.safe_load(file)
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        for job in config["scrape_configs"]:
            if job["job_name"] == "rocegw-controller":
                job["static_configs"] = [{"targets": [address], "labels": {"cluster": cluster}}
                                         for cluster, address in controllers.items()]
            elif job["job_name"] == "rocegw-memory":
                job["static_configs"] = [{"targets": memory, "labels": {"cluster": next(iter(controllers))}}]
            else:
                job["static_configs"] = [{"targets": hosts, "labels": {"cluster": next(iter(controllers))}}]
        self._path = os.path.join(directory, "prometheus.yaml")
        self._configure(config)
        self.begin = time.time()
        self.job = lab.start(["prometheus", f"--config.file={self._path}", f"--storage.tsdb.path={directory}/data",
                              f"--web.listen-address=127.0.0.1:{_PORT}", "--query.lookback-delta=5s"],
                             title="prometheus", namespace=namespace)
        self.job.expect("Server is ready to receive", 60)

    def _configure(self, config):
        with open(self._path, "w", encoding="utf-8") as file:
            yaml.safe_dump(config, file)

    def forget_targets(self):
        """It scrapes nothing any more, and says so: what it knew last is no longer true."""
        with open(self._path, encoding="utf-8") as file:
            config = yaml.safe_load(file)
        self._configure({**config, "scrape_configs": []})
        self.job.signal(signal.SIGHUP)
        eventually("a Prometheus without targets", lambda: not self.now("up"), MOST)

    def _ask(self, path, **words):
        answer = json.loads(http_get(self.namespace, _PORT, f"/api/v1/{path}?{urllib.parse.urlencode(words)}", MOST))
        if answer["status"] != "success":
            raise LabError(f"{path} {words}: {answer}")
        return answer["data"]

    def now(self, expression):
        """Values by labels."""
        return [(sample["metric"], float(sample["value"][1])) for sample in self._ask("query", query=expression)["result"]]

    def over_all(self, expression, step=0.5):
        """Every series since the beginning, as (labels, [(time, value)]). What was true for one scrape or evaluation, a second,
        is among them."""
        data = self._ask("query_range", query=expression, start=self.begin, end=time.time(), step=step)
        return [(series["metric"], [(at, float(value)) for at, value in series["values"]]) for series in data["result"]]

    def rounds(self, count=2):
        """Until everything has been scraped so often from now on, or was found not to answer."""
        begun = time.time()
        eventually("a scrape of everything",
                   lambda: len([1 for _, at in self.now("timestamp(up)") if at > begun + count]) == self._targets, MOST)

    def until_shows(self, *expressions, doing=None):
        """Until each has something to show, as on a panel; what brings that about goes on, or is done again and again."""
        def shows(expression):
            if doing:
                doing()
            return has_something(value for _, value in self.now(expression))
        for expression in expressions:
            eventually(f"anything to show: {expression}", lambda: shows(expression), MOST)

    def until_fires(self, *alerts, doing=None):
        self.until_shows(*(f'ALERTS{{alertname="{alert}",alertstate="firing"}}' for alert in alerts), doing=doing)

    def rules(self):
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def families(self, job):
        """Names of what a job was ever scraped for, and the labels that each had; without what Prometheus adds."""
        found = {}
        for series in self._ask("series", **{"match[]": f'{{job="{job}"}}', "start": self.begin, "end": time.time()}):
            name = series.pop("__name__")
            if not name.startswith("scrape_") and name != "up" and not name.startswith("ALERTS"):
                found.setdefault(name, set()).update(set(series) - {"job", "instance", "cluster", "node"})
        return found
