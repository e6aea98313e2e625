# SPDX-License-Identifier: Apache-2.0
"""The project's own lists of metrics, as the documents have them."""

import os
import re
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
Metric = namedtuple("Metric", "name kind labels")
_ENTRY = re.compile(r"^- `(\w+)` \((gauge|counter|histogram)(?:; ([^)]*))?\):", re.M)
JOBS = {"rocegw-gateway": ("docs/reference/metrics.md", None),
        "rocegw-controller": ("docs/reference/metrics_control_plane.md", "Controller"),
        "rocegw-agent": ("docs/reference/metrics_control_plane.md", "Agent"),
        "rocegw-memory": ("docs/reference/metrics_memory.md", None)}


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def _entries(text):
    return {name: Metric(name, kind, {label.strip() for label in labels.split(",") if label.strip()})
            for name, kind, labels in _ENTRY.findall(text)}


def families():
    """Job to the families of its page, by name."""
    process = {name: metric for name, metric in _entries(read("docs/reference/metrics.md")).items() if name.startswith("process_")}
    found = {}
    for job, (page, section) in JOBS.items():
        text = read(page)
        if section:
            text = re.search(rf"^## {section}$(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
        found[job] = {**process, **_entries(text)}
    return found


def series():
    """Every name that can be asked for: those of histograms with their endings. Labels are those of all jobs together."""
    found = {}
    for page in families().values():
        for metric in page.values():
            names = [metric.name]
            if metric.kind == "histogram":
                names = [metric.name + ending for ending in ("_bucket", "_sum", "_count")]
            for name in names:
                labels = metric.labels | ({"le"} if name.endswith("_bucket") else set())
                if name in found:
                    labels |= found[name].labels
                found[name] = Metric(name, metric.kind, labels)
    return found


def shared():
    """Names that daemons of several kinds have: who asks for one must say which job."""
    pages = list(families().values())
    return {name for page in pages for name in page if sum(name in other for other in pages) > 1} | {"up"}


def drop_reasons():
    return set(re.findall(r"^- `(\w+)` \((?:peer|local)\):", read("docs/reference/metrics.md"), re.M))


def reasons_of(metric):
    """Values of the label "reason": of a paused migration, of a refused join of a block pool, or of a packet that was dropped."""
    if metric == "rocegw_memory_pool_refused_joins_total":
        entry = re.search(rf"^- `{metric}`.*?(?=^- |^$)", read("docs/reference/metrics_memory.md"), re.M | re.S)
        return set(re.findall(r"\(`(\w+)`\)", entry.group(0)))
    if metric != "rocegw_migration_paused":
        return drop_reasons()
    # Rows of the table of reasons, of PAUSED.
    return set(re.findall(r"^\| `([\w-]+)` \|", read("docs/operate/migration.md"), re.M))
