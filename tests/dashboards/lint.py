#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for dashboards/grafana, dashboards/prometheus and docs/operate/runbooks that promtool does not check; see RULES.

  tests/dashboards/lint.py            exit status 1 if there is any violation
  tests/dashboards/lint.py --list     the rules
  tests/dashboards/lint.py --self     whether each rule finds what it is for"""

import copy
import os
import re
import subprocess
import sys

import yaml

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import metric_list  # noqa: E402
from dashboard_files import dashboards, panels_of  # noqa: E402
from expressions import Parsed  # noqa: E402

ROOT = metric_list.ROOT
RULES_FILE = os.path.join(ROOT, "dashboards/prometheus/rules.yaml")
CASES_FILE = os.path.join(ROOT, "dashboards/prometheus/rules_test.yaml")
MOST_QUERIES = 25
# What relabelling adds to each target (docs/operate/dashboards.md), and what Prometheus itself has.
TARGET_LABELS = {"cluster", "node", "job", "instance"}
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
ENTRIES = {"rate", "increase", "irate", "changes", "resets"}
SERIES = metric_list.series()
SHARED = metric_list.shared()


class Tree:
    """What is looked at."""

    def __init__(self):
        self.dashboards = dashboards()
        with open(RULES_FILE, encoding="utf-8") as file:
            rules = [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]
        self.alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
        self.records = {rule["record"]: rule for rule in rules if "record" in rule}
        with open(CASES_FILE, encoding="utf-8") as file:
            self.cases = yaml.safe_load(file)["tests"]
        self.runbooks = set(os.listdir(os.path.join(ROOT, "docs/operate/runbooks")))


def all_panels(tree):
    for name, dashboard in tree.dashboards.items():
        for panel in panels_of(dashboard):
            yield f"{name}: panel '{panel.get('title')}'", dashboard, panel


def all_targets(tree):
    for where, dashboard, panel in all_panels(tree):
        for target in panel.get("targets", []):
            yield where, dashboard, panel, target["expr"]


def variables_of(dashboard):
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


def plain(expression):
    """With Grafana's variables replaced by what PromQL can read."""
    return expression.replace("$__rate_interval", "5m").replace("$", "")


def all_expressions(tree):
    for where, _, _, expression in all_targets(tree):
        yield where, plain(expression)
    for kind in (tree.alerts, tree.records):
        for name, rule in kind.items():
            yield f"rules.yaml: {name}", rule["expr"]


def template_datasource(tree):
    """Each dashboard has a variable for its data source, and all panels and variables use it."""
    for name, dashboard in tree.dashboards.items():
        source = variables_of(dashboard).get("datasource", {})
        if source.get("type") != "datasource" or source.get("query") != "prometheus":
            yield f"{name}: no variable 'datasource' for a Prometheus"
        for variable in variables_of(dashboard).values():
            if variable["type"] == "query" and variable["datasource"].get("uid") != "${datasource}":
                yield f"{name}: variable {variable['name']} asks another data source"
    for where, _, panel in all_panels(tree):
        for part in (panel, *panel["targets"]):
            if (part.get("datasource") or {}).get("uid") != "${datasource}":
                yield f"{where} asks a fixed data source"


def template_variables(tree):
    """Each dashboard has a variable 'cluster'; query variables have 'All' and follow the time range."""
    for name, dashboard in tree.dashboards.items():
        if "cluster" not in variables_of(dashboard):
            yield f"{name}: no variable 'cluster'"
        for variable in variables_of(dashboard).values():
            if variable["type"] != "query":
                continue
            if variable.get("refresh") != 2:
                yield f"{name}: variable {variable['name']} does not follow the time range"
            if not (variable.get("multi") and variable.get("includeAll") and variable.get("allValue")):
                yield f"{name}: variable {variable['name']} cannot be several or all"


def target_selectors(tree):
    """Each selector follows the variables of its dashboard that its metric has labels for."""
    for where, dashboard, _, expression in all_targets(tree):
        variables = set(variables_of(dashboard))
        for selector in Parsed(plain(expression)).selectors:
            wanted = {"cluster"}
            job = selector.matchers.get("job", ("", ""))[1]
            of_controller = job == "rocegw-controller" or selector.metric.startswith("rocegw_store_")
            if "node" in variables and not of_controller:
                wanted.add("node")
            if "tenant" in variables and "tenant" in labels_of(selector.metric, tree):
                wanted.add("tenant")
            for label in sorted(wanted):
                if selector.matchers.get(label) != ("=~", label):
                    yield f"{where}: {selector.metric} does not follow the variable {label}"


def target_job(tree):
    """What daemons of several kinds have is asked for with its job."""
    for where, expression in all_expressions(tree):
        for selector in Parsed(expression).selectors:
            if selector.metric in SHARED and "job" not in selector.matchers:
                yield f"{where}: {selector.metric} of which job?"


def target_rate_interval(tree):
    """Rates on dashboards use $__rate_interval; increase() may say how long."""
    for where, _, _, expression in all_targets(tree):
        for function, window in re.findall(r"(\w+)\s*\([^()]*?\[([^\]]+)\]", expression):
            if window != "$__rate_interval" and function != "increase":
                yield f"{where}: {function} over {window}"


def target_counters(tree):
    """Counters are asked for their rate; gauges are not."""
    for where, expression in all_expressions(tree):
        for selector in Parsed(expression).selectors:
            metric = SERIES.get(selector.metric)
            if metric is None:
                continue
            if metric.kind in ("counter", "histogram") and selector.function not in ENTRIES:
                yield f"{where}: {selector.metric} only ever grows; ask for its rate"
            if metric.kind == "gauge" and selector.function in ENTRIES - {"changes"}:
                yield f"{where}: {selector.function} of {selector.metric}, which is a gauge"


def labels_of(metric, tree):
    if metric in tree.records:
        return set(metric.split(":")[0].split("_")) | {"operation"}
    if metric in OF_PROMETHEUS:
        return OF_PROMETHEUS[metric] | TARGET_LABELS
    return SERIES[metric].labels | TARGET_LABELS if metric in SERIES else set()


def known_names(tree):
    """Every metric, label and reason that an expression names exists."""
    for where, expression in all_expressions(tree):
        parsed = Parsed(expression)
        if not parsed.selectors:
            yield f"{where}: asks for nothing"
        labels = set()
        for selector in parsed.selectors:
            if selector.metric not in SERIES and selector.metric not in tree.records and selector.metric not in OF_PROMETHEUS:
                yield f"{where}: there is no {selector.metric}"
                continue
            mine = labels_of(selector.metric, tree)
            labels |= mine
            for label in sorted(set(selector.matchers) - mine):
                yield f"{where}: {selector.metric} has no label {label}"
            operator, value = selector.matchers.get("reason", ("", ""))
            if operator:
                for word in value.split("|"):
                    if not any(re.fullmatch(word, reason) for reason in metric_list.reasons_of(selector.metric)):
                        yield f"{where}: no reason is {word}"
        for label in sorted(parsed.grouping - labels):
            yield f"{where}: groups by {label}, which nothing there has"


def panel_words(tree):
    """Each panel has a title, a question that it answers (description), a unit and a legend."""
    for where, _, panel in all_panels(tree):
        if not panel.get("title"):
            yield f"{where} has no title"
        if not re.search(r"\?", panel.get("description", "")):
            yield f"{where} does not say which question it answers"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{where} has no unit"
        if not panel.get("targets"):
            yield f"{where} asks nothing"
        for target in panel["targets"]:
            if not target.get("legendFormat"):
                yield f"{where}: a query without a legend"
        if panel["type"] == "timeseries" and not panel["options"]["legend"].get("showLegend"):
            yield f"{where} shows no legend"


def panel_thresholds(tree):
    """Where a description names an objective there is a threshold."""
    for where, _, panel in all_panels(tree):
        if "Objective" in panel["description"] and len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) < 2:
            yield f"{where} has an objective and no threshold"


def dashboard_form(tree):
    """Dashboards are not editable, have a stable uid of at most 40 characters, the tag, and ids and titles of panels that differ."""
    seen = set()
    for name, dashboard in tree.dashboards.items():
        if dashboard.get("editable") is not False:
            yield f"{name} is editable"
        if dashboard.get("id") is not None:
            yield f"{name} has an id of some Grafana"
        uid = dashboard.get("uid", "")
        if not re.fullmatch(r"rocegw-[a-z-]{1,33}", uid) or uid in seen or name != f"{uid}.json":
            yield f"{name}: uid '{uid}'"
        seen.add(uid)
        if "rocegw" not in dashboard.get("tags", []):
            yield f"{name} has no tag rocegw"
        ids = [panel["id"] for panel in dashboard["panels"]] + [panel["id"] for row in dashboard["panels"]
                                                                for panel in row.get("panels", [])]
        if len(ids) != len(set(ids)):
            yield f"{name}: ids of panels repeat"
        titles = [panel["title"] for panel in panels_of(dashboard)]
        if len(titles) != len(set(titles)):
            yield f"{name}: titles of panels repeat: {sorted(title for title in set(titles) if titles.count(title) > 1)}"


def few_queries(tree):
    """At most 25 queries run when a dashboard is opened; rows but the first are shut."""
    for name, dashboard in tree.dashboards.items():
        shown = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        queries = sum(len(panel["targets"]) for panel in shown)
        if queries > MOST_QUERIES:
            yield f"{name}: {queries} queries when it is opened"
        rows = [panel for panel in dashboard["panels"] if panel["type"] == "row"]
        if any(not row["collapsed"] for row in rows[1:]):
            yield f"{name}: more than one row is open"


def no_overlap(tree):
    """Panels lie within 24 columns and not on each other."""
    for name, dashboard in tree.dashboards.items():
        groups = [[panel for panel in dashboard["panels"]]] + [row["panels"] for row in dashboard["panels"] if row.get("panels")]
        for group in groups:
            taken = set()
            for panel in group:
                position = panel["gridPos"]
                cells = {(x, y) for x in range(position["x"], position["x"] + position["w"])
                         for y in range(position["y"], position["y"] + position["h"])}
                if position["x"] + position["w"] > 24 or cells & taken:
                    yield f"{name}: panel '{panel['title']}' lies on another or outside"
                taken |= cells


def alert_words(tree):
    """Each alert has a severity, a time, summary, description and a page of its own in docs/operate/runbooks; no page is left over."""
    for name, rule in tree.alerts.items():
        if not name.startswith("Rocegw"):
            yield f"{name} does not begin with Rocegw"
        if rule.get("labels", {}).get("severity") not in ("critical", "warning", "info"):
            yield f"{name}: severity"
        if "for" not in rule:
            yield f"{name} does not say for how long"
        for word in ("summary", "description"):
            if not rule.get("annotations", {}).get(word):
                yield f"{name} has no {word}"
        if rule.get("annotations", {}).get("runbook_url") != f"docs/operate/runbooks/{name}.md" or f"{name}.md" not in tree.runbooks:
            yield f"{name} has no page in docs/operate/runbooks"
    for page in sorted(tree.runbooks - {f"{name}.md" for name in tree.alerts} - {"README.md"}):
        yield f"docs/operate/runbooks/{page} is about no alert"


def runbook_words(tree):
    """A page says what an alert means, how to find out more and what to do, and names its alert."""
    for name in tree.alerts:
        path = os.path.join(ROOT, "docs/operate/runbooks", f"{name}.md")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for heading in (f"# {name}\n", "## What it means\n", "## Find out\n", "## Do\n"):
            if heading not in text:
                yield f"docs/operate/runbooks/{name}.md lacks '{heading.strip()}'"


def record_names(tree):
    """Recorded series are called level:metric:operation, by the labels that are left."""
    for name, rule in tree.records.items():
        if not re.fullmatch(r"[a-z_]+:rocegw_[a-z_]+:[a-z0-9_]+", name):
            yield f"{name} is not level:metric:operation"


def alert_cases(tree):
    """rules_test.yaml has, for each alert, a case in which it fires and one in which it does not, of names that exist."""
    firing, quiet = set(), set()
    for case in tree.cases:
        for test in case.get("promql_expr_test", []):
            for name in re.findall(r'alertname="(\w+)"', test["expr"]):
                (firing if test.get("exp_samples") else quiet).add(name)
        for line in case["input_series"]:
            parsed = Parsed(line["series"])
            for selector in parsed.selectors:
                if selector.metric not in SERIES and selector.metric not in OF_PROMETHEUS:
                    yield f"rules_test.yaml: there is no {selector.metric}"
                for label in sorted(set(selector.matchers) - labels_of(selector.metric, tree)):
                    yield f"rules_test.yaml: {selector.metric} has no label {label}"
    for what, seen in (("fires", firing), ("is quiet", quiet)):
        for name in sorted(set(tree.alerts) - seen):
            yield f"rules_test.yaml: no case in which {name} {what}"
        for name in sorted(seen - set(tree.alerts)):
            yield f"rules_test.yaml: there is no alert {name}"


def current(tree):
    """dashboards/grafana is what dashboards/source says."""
    made = subprocess.run([os.path.join(ROOT, "dashboards/make.py"), "--check"], stdout=subprocess.PIPE, text=True, check=False)
    yield from made.stdout.splitlines()


RULES = (template_datasource, template_variables, target_selectors, target_job, target_rate_interval, target_counters, known_names,
         panel_words, panel_thresholds, dashboard_form, few_queries, no_overlap, alert_words, runbook_words, record_names,
         alert_cases, current)


def violations(tree):
    return [(rule.__name__, text) for rule in RULES for text in rule(tree)]


def broken_trees(tree):
    """(rule, tree that breaks it)"""
    def but(change):
        other = copy.deepcopy(tree)
        first = next(iter(other.dashboards.values()))
        change(other, first, next(panels_of(first)))
        return other

    def ask(expression):
        return lambda other, dashboard, panel: panel["targets"][0].update(expr=expression)

    yield template_datasource, but(lambda o, d, p: p["targets"][0]["datasource"].update(uid="mine"))
    yield template_variables, but(lambda o, d, p: variables_of(d)["cluster"].update(refresh=1))
    yield target_selectors, but(ask("sum(rocegw_sessions)"))
    yield target_job, but(ask('avg(rocegw_ready{cluster=~"$cluster"})'))
    yield target_rate_interval, but(ask('rate(rocegw_tx_bytes_total{cluster=~"$cluster"}[5m])'))
    yield target_counters, but(ask('sum(rocegw_tx_bytes_total{cluster=~"$cluster"})'))
    yield target_counters, but(ask('rate(rocegw_sessions{cluster=~"$cluster"}[$__rate_interval])'))
    yield known_names, but(ask('sum(rocegw_dreams{cluster=~"$cluster"})'))
    yield known_names, but(ask('sum(rocegw_sessions{cluster=~"$cluster",colour="red"})'))
    yield known_names, but(ask('sum by (colour) (rocegw_sessions{cluster=~"$cluster"})'))
    yield known_names, but(ask('sum by (migration) (rocegw_migration_paused{reason="boredom",job="rocegw-controller",cluster=~"$cluster"})'))
    yield known_names, but(ask('rate(rocegw_drops_total{reason="boredom",cluster=~"$cluster"}[$__rate_interval])'))
    yield panel_words, but(lambda o, d, p: p.update(description="Sessions."))
    yield panel_words, but(lambda o, d, p: p["fieldConfig"]["defaults"].update(unit=""))
    yield panel_words, but(lambda o, d, p: p["targets"][0].update(legendFormat=""))
    yield panel_thresholds, but(lambda o, d, p: (p.update(description="Well? Objective: 1"),
                                                 p["fieldConfig"]["defaults"]["thresholds"].update(steps=[{}])))
    yield dashboard_form, but(lambda o, d, p: d.update(editable=True))
    yield dashboard_form, but(lambda o, d, p: d.update(uid="x" * 41))
    yield dashboard_form, but(lambda o, d, p: p.update(title=list(panels_of(d))[1]["title"]))
    yield few_queries, but(lambda o, d, p: p.update(targets=p["targets"] * 30))
    yield no_overlap, but(lambda o, d, p: p["gridPos"].update(w=25))
    yield alert_words, but(lambda o, d, p: o.alerts["RocegwPortDown"]["labels"].clear())
    yield alert_words, but(lambda o, d, p: o.runbooks.remove("RocegwPortDown.md"))
    yield alert_words, but(lambda o, d, p: o.runbooks.add("RocegwForgotten.md"))
    yield record_names, but(lambda o, d, p: o.records.update(fast={"expr": "up"}))
    yield alert_cases, but(lambda o, d, p: o.cases.clear())
    yield alert_cases, but(lambda o, d, p: o.cases[0]["input_series"][0].update(series='rocegw_dreams{node="a"}'))


def main():
    if "--list" in sys.argv[1:]:
        for rule in RULES:
            print(f"{rule.__name__:22} {rule.__doc__}")
        return 0
    tree = Tree()
    if "--self" in sys.argv[1:]:
        blind = [rule.__name__ for rule, broken in broken_trees(tree) if not list(rule(broken))]
        for name in blind:
            print(f"{name} does not find what it is for")
        return 1 if blind else 0
    found = violations(tree)
    for rule, text in found:
        print(f"{text} [{rule}]")
    panels = sum(1 for _ in all_panels(tree))
    print(f"{len(tree.dashboards)} dashboards, {panels} panels, {len(tree.records)} recorded series, {len(tree.alerts)} alerts, "
          f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
