# SPDX-License-Identifier: Apache-2.0
"""The dashboards as they are delivered."""

import glob
import json
import os

from metric_list import ROOT


def dashboards():
    """File name to content."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "dashboards/grafana/*.json"))):
        with open(path, encoding="utf-8") as file:
            found[os.path.basename(path)] = json.load(file)
    return found


def panels_of(dashboard):
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel
