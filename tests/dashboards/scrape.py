#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes real daemons while all that scenarios.py knows happens to them. Afterwards every panel has had
something to show, every alert has fired, and what was scraped is what the documents list. Needs root.

  tests/dashboards/scrape.py --binaries build/ci/bin [--keep FILE]     FILE: what the panels showed, for dashboards/render.py"""

import argparse
import json
import os
import re
import sqlite3
import struct
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]

import metric_list  # noqa: E402
from dashboard_files import dashboards, panels_of  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402
from prometheus import Prometheus, has_something, hurried  # noqa: E402
from remote_memory import COPIED_PORT, DONOR_PORT, MOUNT_PORT, POOL_PORT  # noqa: E402
from scenarios import steps  # noqa: E402
from scraped_fleet import ADDRESSES, Fleet  # noqa: E402
from silent import SILENT_PANELS  # noqa: E402

MOST_SILENT = 0.05


def concrete(expression):
    """With all variables at All."""
    for name in ("cluster", "node", "tenant", "migration"):
        expression = expression.replace(f'"${name}"', '".*"')
    return hurried(expression)


def shown(series):
    return has_something(value for _, values in series for _, value in values)


def look_at_panels(prometheus):
    """What each query has shown: (dashboard, panel, legend, expression, series)."""
    for dashboard in dashboards().values():
        for panel in panels_of(dashboard):
            for target in panel["targets"]:
                expression = concrete(target["expr"])
                yield dashboard["uid"], panel["title"], target["legendFormat"], expression, prometheus.over_all(expression)


def complaints(prometheus, looks):
    alerts = [rule for rule in prometheus.rules() if rule["type"] == "alerting"]
    records = [rule for rule in prometheus.rules() if rule["type"] == "recording"]
    for rule in alerts + records:
        if rule["health"] != "ok":
            yield f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}"
    silent_panels = set()
    for uid, title, legend, expression, series in looks:
        if not shown(series):
            silent_panels.add((uid, title, legend))
            if (uid, title, legend) not in SILENT_PANELS:
                yield f"{uid}: '{title}' ({legend}) has nothing to show: {expression}"
    for record in records:
        if not shown(prometheus.over_all(record["name"])):
            yield f"{record['name']} was never recorded"
    for alert in alerts:
        if not prometheus.over_all(f'ALERTS{{alertname="{alert["name"]}",alertstate="firing"}}'):
            yield f"{alert['name']} has not fired: {alert['query']}"
    if len(SILENT_PANELS) > MOST_SILENT * len(looks):
        yield f"{len(SILENT_PANELS)} of {len(looks)} queries are excused"
    print(f"{len(looks)} queries of panels, {len(silent_panels)} silent; {len(alerts)} alerts; {len(records)} recorded series",
          flush=True)


def differences(prometheus):
    """Between what was scraped and what the documents list, both ways."""
    for job, listed in metric_list.families().items():
        wanted = {}
        for metric in listed.values():
            if metric.kind == "histogram":
                wanted.update({metric.name + "_bucket": metric.labels | {"le"}, metric.name + "_sum": metric.labels,
                               metric.name + "_count": metric.labels})
            else:
                wanted[metric.name] = metric.labels
        scraped = prometheus.families(job)
        for name in sorted(set(wanted) ^ set(scraped)):
            yield f"{job}: {name} is {'listed, not scraped' if name in wanted else 'scraped, not listed'}"
        for name in sorted(set(wanted) & set(scraped)):
            if wanted[name] != scraped[name]:
                yield f"{job}: {name} is listed with labels {sorted(wanted[name])} and has {sorted(scraped[name])}"


def pictures(looks, folder):
    """What is wrong with those that dashboards/render.py makes of it."""
    run([os.path.join(metric_list.ROOT, "dashboards/render.py"), looks, folder])
    for dashboard in dashboards().values():
        path = os.path.join(folder, f"{dashboard['uid']}.png")
        with open(path, "rb") as file:
            head = file.read(24)
        width, height = struct.unpack(">II", head[16:24])
        if head[:8] != b"\x89PNG\r\n\x1a\n" or width < 1000 or height < 500 or os.path.getsize(path) < 10000:
            yield f"the picture of {dashboard['uid']} is {width} x {height} in {os.path.getsize(path)} bytes"


def tell(found, daemons):
    """What is wrong, behind the last words of all daemons and what they had to warn of: all of it in the last lines of a log."""
    for name, daemon in daemons.items():
        lines = daemon.output.rstrip().splitlines()
        warnings = [line for line in lines[:-2] if re.search(r" (warning|error|critical): ", line)]
        print(f"the log of {name}:", *(f"  {line[:250]}" for line in warnings[-3:] + lines[-2:]), sep="\n", file=sys.stderr)
    for text in found[:16]:
        first, *more = text.splitlines()
        print(f"FAIL {first}", *(f"  {line[:250]}" for line in more[-10:]), sep="\n", file=sys.stderr)
    if found[16:]:
        print(f"FAIL {len(found) - 16} more", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", required=True, help="the bin folder of a build")
    parser.add_argument("--keep", help="where to write what the panels showed")
    arguments = parser.parse_args()
    found = []
    with Lab() as lab:
        fleet = Fleet(lab, os.path.abspath(arguments.binaries))
        name = "start"
        try:
            fleet.start()
            prometheus = Prometheus(lab, fleet.hosts[0].namespace, [address for address, _ in ADDRESSES],
                                    {"main": f"{ADDRESSES[0][0]}:7472", "lab": f"{ADDRESSES[1][0]}:7472"},
                                    [f"{ADDRESSES[1][0]}:{DONOR_PORT}", f"{ADDRESSES[1][0]}:{POOL_PORT}", f"{ADDRESSES[0][0]}:{MOUNT_PORT}",
                                     f"{ADDRESSES[0][0]}:{COPIED_PORT}"])
            prometheus.rounds()
            for name, what, step in steps(fleet, prometheus):
                began = time.monotonic()
                step()
                print(f"done {name} ({time.monotonic() - began:.1f} s) {what}", flush=True)
            name = "end"
            looks = list(look_at_panels(prometheus))
            found = [*complaints(prometheus, looks), *differences(prometheus)]
            kept = arguments.keep or lab.path("looks.json")
            with open(kept, "w", encoding="utf-8") as file:
                json.dump(looks, file)
            found += pictures(kept, lab.path("pictures"))
        except (LabError, OSError, sqlite3.Error) as error:
            found.append(f"in {name}: {error}")
        if found:
            tell(found, fleet.daemons())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
