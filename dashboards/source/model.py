# SPDX-License-Identifier: Apache-2.0
"""Panels, rows and dashboards as Grafana's classic JSON (schema 39: Grafana 10.4 and later).

An expression says only what it is about: {FLEET}, {NODE} and {TENANT} are the selectors that follow the variables on top."""

SCHEMA = 39
COLUMNS = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

# Selectors; the values of "All" match series without the label, too.
FLEET = 'cluster=~"$cluster"'
NODE = FLEET + ',node=~"$node"'
TENANT = NODE + ',tenant=~"$tenant"'
GATEWAY = 'job="rocegw-gateway",' + NODE
AGENT = 'job="rocegw-agent",' + NODE
CONTROLLER = 'job="rocegw-controller",' + FLEET

GREEN, YELLOW, RED = "green", "yellow", "red"


def limits(first, *steps):
    """Colours by value: limits(GREEN, (0.001, YELLOW), (0.01, RED))."""
    return [(None, first), *steps]


def _field(unit, thresholds, custom=None):
    steps = [{"color": color, "value": value} for value, color in thresholds or [(None, GREEN)]]
    defaults = {"unit": unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps},
                "color": {"mode": "palette-classic" if custom else "thresholds"}}
    if custom:
        defaults["custom"] = dict(custom, thresholdsStyle={"mode": "line" if thresholds else "off"})
    return {"defaults": defaults, "overrides": []}


def _targets(queries, **more):
    return [{"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": expression, "legendFormat": legend, **more}
            for number, (expression, legend) in enumerate(queries)]


def _panel(kind, title, question, queries, size, options, field, **more):
    width, height = size
    return {"type": kind, "title": title, "description": question, "datasource": DATASOURCE,
            "gridPos": {"w": width, "h": height}, "targets": queries, "options": options, "fieldConfig": field, **more}


def graph(title, question, unit, *queries, thresholds=None, stack=False, width=8):
    """Values over time. queries: (expression, legend)."""
    custom = {"lineWidth": 1, "fillOpacity": 25 if stack else 8, "showPoints": "never",
              "stacking": {"mode": "normal" if stack else "none"}}
    options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return _panel("timeseries", title, question, _targets(queries, range=True), (width, 8), options,
                  _field(unit, thresholds, custom))


def number(title, question, unit, expression, legend="now", thresholds=None, width=4):
    """The value now."""
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
               "graphMode": "none", "textMode": "value"}
    return _panel("stat", title, question, _targets([(expression, legend)], instant=True, range=False), (width, 4), options,
                  _field(unit, thresholds))


def table(title, question, unit, *queries, thresholds=None, width=12):
    """What is now, a line each."""
    # Columns that say nothing to a reader.
    hide = {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}}}
    return _panel("table", title, question, _targets(queries, instant=True, range=False, format="table"), (width, 8),
                  {"showHeader": True}, _field(unit, thresholds), transformations=[{"id": "merge", "options": {}}, hide])


def heatmap(title, question, unit, expression, width=12):
    """How a histogram's buckets fill. expression: a rate by le."""
    options = {"calculate": False, "yAxis": {"unit": unit}, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 32},
               "legend": {"show": True}, "cellGap": 1}
    return _panel("heatmap", title, question, _targets([(expression, "{{le}}")], range=True, format="heatmap"), (width, 8),
                  options, _field(unit, None))


def row(title, *panels, shown=False):
    return {"title": title, "panels": panels, "shown": shown}


def variable(name, label, query, several=True):
    definition = {"type": "query", "name": name, "label": label, "datasource": DATASOURCE, "refresh": 2, "sort": 1,
                  "query": {"query": query, "refId": name}, "definition": query, "multi": several, "includeAll": several}
    if several:
        definition.update(allValue=".*", current={"selected": True, "text": ["All"], "value": ["$__all"]})
    return definition


_DATASOURCE_VARIABLE = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
                        "refresh": 1, "current": {}}
CLUSTER_VARIABLE = variable("cluster", "Cluster", "label_values(rocegw_build_info, cluster)")
NODE_VARIABLE = variable("node", "Node", f'label_values(rocegw_build_info{{job="rocegw-gateway",{FLEET}}}, node)')
TENANT_VARIABLE = variable("tenant", "Tenant", f"label_values(rocegw_pool_used{{{NODE}}}, tenant)")


def dashboard(uid, title, description, variables, *rows):
    placed, y = [], 0
    number_of = iter(range(1, 1000))
    for content in rows:
        header = {"type": "row", "id": next(number_of), "title": content["title"], "collapsed": not content["shown"],
                  "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}, "panels": []}
        placed.append(header)
        y += 1
        # Grafana keeps the panels of a row that is shut inside of it, and those of an open one behind it.
        inside = placed if content["shown"] else header["panels"]
        x = height = bottom = 0
        for panel in content["panels"]:
            position = panel["gridPos"]
            if x + position["w"] > COLUMNS:
                x, bottom, height = 0, bottom + height, 0
            inside.append(dict(panel, id=next(number_of), gridPos=dict(position, x=x, y=y + bottom)))
            x += position["w"]
            height = max(height, position["h"])
        if content["shown"]:
            y += bottom + height
    return {"id": None, "uid": uid, "title": title, "description": description, "tags": ["rocegw"], "editable": False,
            "schemaVersion": SCHEMA, "version": 1, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
            "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []},
            "links": [{"type": "dashboards", "tags": ["rocegw"], "title": "rocegw", "asDropdown": True, "keepTime": True,
                       "includeVars": True}],
            "templating": {"list": [_DATASOURCE_VARIABLE, *variables]}, "panels": placed}
