#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dashboards/grafana/*.json anew from dashboards/source, and the chart's copies of them and of prometheus/rules.yaml:
a chart that is copied or vendored has no links out of its folder.

  dashboards/make.py            writes them
  dashboards/make.py --check    says which are not current; exit status 1 if any"""

import importlib
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

NAMES = ("fleet", "gateway", "tenants", "transport", "channels", "control_plane", "migration", "remote_memory")


def text_of(name):
    return json.dumps(importlib.import_module(f"source.{name}").DASHBOARD, indent=1) + "\n"


def wanted():
    """(path, text) of every file that is made."""
    chart = os.path.join(HERE, "..", "helm", "rocegw")
    for name in NAMES:
        file, text = f"rocegw-{name.replace('_', '-')}.json", text_of(name)
        yield os.path.join(HERE, "grafana", file), text
        yield os.path.normpath(os.path.join(chart, "dashboards", file)), text
    with open(os.path.join(HERE, "prometheus", "rules.yaml"), encoding="utf-8") as rules:
        yield os.path.normpath(os.path.join(chart, "alerts", "rules.yaml")), rules.read()


def main():
    stale = []
    files = list(wanted())
    for path, text in files:
        if "--check" in sys.argv[1:]:
            if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
                stale.append(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    for path in stale:
        print(f"{path} is not what dashboards/source says: run dashboards/make.py")
    known = {path for path, _ in files}
    for folder in sorted({os.path.dirname(path) for path in known}):
        for stray in sorted(os.path.join(folder, name) for name in os.listdir(folder)):
            if stray not in known:
                print(f"{stray} has no source")
                stale.append(stray)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
