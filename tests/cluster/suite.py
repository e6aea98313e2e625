# SPDX-License-Identifier: Apache-2.0
"""Runs cases and prints the table."""

import argparse
import sys
import time

from cases import Cases
from cluster import Cluster, Failed


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tests/cluster/run.py", description=(
        "Tries a release of rocegw on the cluster that KUBECONFIG names: installs the chart in namespaces of its own, runs the "
        "cases, prints a table and removes what it made. Nodes must not have joined another fleet."))
    parser.add_argument("--image", required=True, help="image of rocegw, REPOSITORY:TAG (target daemons)")
    parser.add_argument("--programs-image", help="image with rping, ibv_devices and a shell, for pods", default=None)
    parser.add_argument("--namespace", default="rocegw-cluster-test", help="of the release; pods get NAMESPACE-pods")
    parser.add_argument("--release", default="rocegw-cluster-test", help="name of the Helm release")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="further values of the chart")
    parser.add_argument("--case", action="append", default=[], choices=Cases.ORDER, help="only these, and what they need")
    parser.add_argument("--keep", action="store_true", help="leave all as it is at the end")
    options = parser.parse_args(arguments)
    if ":" not in options.image.rpartition("/")[2]:
        parser.error("--image needs a tag")
    options.programs_image = options.programs_image or options.image
    return options


def chosen(options):
    if not options.case:
        return list(Cases.ORDER)
    return [name for name in Cases.ORDER if name in options.case or name in Cases.NEEDED]


def run(cases, names, clock=time.monotonic):
    """Rows (case, result, seconds, remark). After a needed case has failed the others are not run."""
    rows = []
    stopped = False
    for name in names:
        if stopped:
            rows.append((name, "not run", 0.0, ""))
            continue
        begin = clock()
        try:
            result, remark = "passed", getattr(cases, name)() or ""
        except Failed as failure:
            result, remark = "FAILED", str(failure)
            stopped = name in Cases.NEEDED
        rows.append((name, result, clock() - begin, remark))
        print(f"{name}: {result} {remark}", file=sys.stderr)
    return rows


def table(rows):
    width = max(len(row[0]) for row in rows)
    lines = [f"{'case':{width}}  result   seconds  remark"]
    for name, result, seconds, remark in rows:
        first = remark.splitlines()[0] if remark else ""
        lines.append(f"{name:{width}}  {result:7}  {seconds:7.0f}  {first}".rstrip())
    passed = sum(row[1] == "passed" for row in rows)
    return "\n".join(lines + [f"{passed} of {len(rows)} passed"])


def main(arguments, cluster=None):
    options = parse(arguments)
    cases = Cases(cluster or Cluster(), options)
    rows = []
    try:
        rows = run(cases, chosen(options))
    finally:
        if not options.keep:
            cases.clean_up()
    print(table(rows))
    return 0 if all(row[1] == "passed" for row in rows) else 1
