#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what the panels of each dashboard showed, one picture (PNG) a dashboard, for docs/operate/dashboards.md. Not Grafana's own drawing:
the same panels in the same places, with the same titles, units, legends and thresholds.

  tests/dashboards/scrape.py --binaries build/ci/bin --keep looks.json
  dashboards/render.py looks.json docs/operate/pictures"""

import glob
import html
import json
import math
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMN, ROW, GAP = 50, 34, 6
COLORS = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0", "#508642", "#cca300")
TRAFFIC_LIGHT = {"green": "#56a64b", "yellow": "#e0b400", "red": "#e02f44"}
MOST_LEGENDS = 4
MOST_POINTS = 160
# Seconds between points, beyond which there is no line between them.
GAP_SECONDS = 2.5
FONT = "DejaVu Sans"


def scaled(value, unit):
    """As Grafana writes it: 1.25 MB/s."""
    if value is None or math.isnan(value):
        return "-"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        for size, word in ((700 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "us")):
            if abs(value) >= size:
                return f"{value / (365.25 * 86400 if word == 'y' else size):.3g} {word}"
        return f"{value:.3g} s"
    word = {"Bps": "B/s", "bytes": "B", "pps": "p/s", "ops": "ops/s", "reqps": "req/s", "cps": "/s"}.get(unit, "")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{word}"
    return f"{value:.3g} {word}".strip()


def text(x, y, words, size=11, color="#ccccdc", anchor="start", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{html.escape(str(words))}</text>")


def named(legend, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found.group(1), ""), legend).strip()


def scale(highest, unit):
    """(top, step) of an axis from 0 with round numbers: three to six steps."""
    if unit == "percentunit" and 0.5 < highest <= 1:
        return 1, 0.25
    if unit == "s" and highest > 1:
        bases = [size * factor for size in (1, 60, 3600, 86400, 365.25 * 86400) for factor in (1, 2, 5, 10, 15, 30, 100, 200)]
    else:
        power = 10 ** math.floor(math.log10(highest / 4))
        bases = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = min((base for base in bases if highest / base <= 5), default=bases[-1])
    return math.ceil(highest / step - 1e-9) * step, step


def stretches(points):
    """Without the gaps, in which there is nothing."""
    found = []
    for point in points:
        if not math.isfinite(point[1]):
            continue
        if not found or point[0] - found[-1][-1][0] > GAP_SECONDS:
            found.append([])
        found[-1].append(point)
    return found


def thinned(points):
    """The highest of each piece, so that short peaks stay."""
    size = max(1, len(points) // MOST_POINTS)
    return [max(points[at:at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


def limit_color(value, steps):
    color = steps[0]["color"]
    for step in steps[1:]:
        if value >= step["value"]:
            color = step["color"]
    return TRAFFIC_LIGHT[color]


def draw_number(panel, box, lines):
    x, y, width, height = box
    values = [points[-1][1] for _, points in lines if points]
    value = values[-1] if values else None
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    color = limit_color(value, steps) if value is not None else "#888888"
    yield text(x + width / 2, y + height * 0.65, scaled(value, panel["fieldConfig"]["defaults"]["unit"]), 24, color, "middle", "bold")


def draw_rows(panel, box, lines):
    x, y, width, _ = box
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for number, (labels, points) in enumerate(lines[:10]):
        words = " ".join(value for name, value in sorted(labels.items()) if name != "__name__")
        yield text(x + 10, y + 42 + number * 20, words)
        yield text(x + width - 10, y + 42 + number * 20, scaled(points[-1][1], unit), anchor="end")


def draw_heat(panel, box, lines, begin, end):
    x, y, width, height = box
    bounds = sorted(((float(labels["le"].replace("+Inf", "inf")), points) for labels, points in lines), key=lambda pair: pair[0])
    cells, below = [], {}
    for bound, points in bounds:
        cells.append((bound, {at: max(0.0, value - below.get(at, 0)) for at, value in points}))
        below = dict(points)
    most = max((value for _, row in cells for value in row.values()), default=0) or 1
    step = (height - 66) / max(1, len(cells))
    span = (width - 74) / (end - begin)
    yield from draw_minutes(x + 62, x + width - 12, y + height - 26, begin, end)
    for number, (bound, row) in enumerate(cells):
        top = y + height - 28 - (number + 1) * step
        for at, value in row.items():
            if value > 0:
                left = x + 62 + (at - begin) * span
                yield (f'<rect x="{left:.2f}" y="{top:.1f}" width="{span:.2f}" height="{step:.1f}" fill="#ff9830" '
                       f'fill-opacity="{0.15 + 0.85 * value / most:.2f}"/>')
        if number % 3 == 0 and bound != math.inf:
            yield text(x + 57, top + step, scaled(bound, "s"), 9, "#888888", "end")


def draw_minutes(left, right, bottom, begin, end):
    for minute in range(int((end - begin) / 60) + 1):
        at = left + minute * 60 / (end - begin) * (right - left)
        yield f'<line x1="{at:.0f}" x2="{at:.0f}" y1="{bottom:.0f}" y2="{bottom + 4:.0f}" stroke="#4a4f55"/>'
        yield text(at, bottom + 14, f"{minute}:00", 9, "#888888", "middle")


def draw_lines(panel, box, lines, begin, end):
    x, y, width, height = box
    defaults = panel["fieldConfig"]["defaults"]
    legends = min(len(lines), MOST_LEGENDS)
    left, top, right, bottom = x + 62, y + 34, x + width - 12, y + height - 26 - legends * 14
    highest, step = scale(max((value for _, points in lines for _, value in points if math.isfinite(value)), default=0) or 1,
                          defaults["unit"])
    for part in range(round(highest / step) + 1):
        at = bottom - (bottom - top) * part * step / highest
        yield f'<line x1="{left}" x2="{right}" y1="{at:.0f}" y2="{at:.0f}" stroke="#2c3235"/>'
        yield text(left - 5, at + 3, scaled(part * step, defaults["unit"]), 9, "#888888", "end")
    yield from draw_minutes(left, right, bottom, begin, end)
    if len(lines) > MOST_LEGENDS:
        yield text(right, y + 18, f"and {len(lines) - MOST_LEGENDS} more lines", 9, "#888888", "end")
    for step in defaults["thresholds"]["steps"][1:]:
        if step["value"] <= highest:
            at = bottom - (bottom - top) * step["value"] / highest
            yield (f'<line x1="{left}" x2="{right}" y1="{at:.0f}" y2="{at:.0f}" stroke="{TRAFFIC_LIGHT[step["color"]]}" '
                   'stroke-dasharray="4 3"/>')
    for number, (legend, points) in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        for stretch in stretches(points):
            stretch = thinned(stretch) if len(stretch) > 1 else [stretch[0], (stretch[0][0] + 1, stretch[0][1])]
            spots = " ".join(f"{left + (at - begin) / (end - begin) * (right - left):.1f},"
                             f"{bottom - (bottom - top) * value / highest:.1f}" for at, value in stretch)
            yield f'<polyline fill="none" stroke="{color}" stroke-width="1.3" stroke-linejoin="round" points="{spots}"/>'
        if number < MOST_LEGENDS:
            at = bottom + 30 + number * 14
            yield f'<rect x="{left}" y="{at - 6}" width="10" height="3" fill="{color}"/>'
            yield text(left + 15, at, legend, 10)
            yield text(right, at, f"max {scaled(max(value for _, value in points), defaults['unit'])}", 10, "#888888", "end")


def draw(dashboard, looks):
    seen = {(title, legend, expression): series for uid, title, legend, expression, series in looks if uid == dashboard["uid"]}
    of_panel = {}
    for (title, legend, _), series in seen.items():
        of_panel.setdefault(title, []).append((legend, series))
    times = [at for _, series in ((key, value) for key, value in seen.items()) for _, points in series for at, _ in points]
    begin, end = min(times), max(times)
    parts, y = [text(12, 24, dashboard["title"], 16, weight="bold")], 40
    for row in dashboard["panels"]:
        if row["type"] != "row":
            continue
        start = dashboard["panels"].index(row) + 1
        inside = row["panels"]
        if not row["collapsed"]:
            inside = []
            for panel in dashboard["panels"][start:]:
                if panel["type"] == "row":
                    break
                inside.append(panel)
        parts.append(text(12, y + 16, row["title"], 13, weight="bold"))
        y += 24
        first = min(panel["gridPos"]["y"] for panel in inside)
        for panel in inside:
            place = panel["gridPos"]
            box = (place["x"] * COLUMN + GAP, y + (place["y"] - first) * ROW, place["w"] * COLUMN - GAP, place["h"] * ROW - GAP)
            parts.append(f'<rect x="{box[0]}" y="{box[1]}" width="{box[2]}" height="{box[3]}" rx="3" fill="#181b1f"/>')
            parts.append(text(box[0] + 10, box[1] + 18, panel["title"], 11 if len(panel["title"]) * 8 > box[2] else 12, weight="bold"))
            queries = of_panel[panel["title"]]
            kind = panel["type"]
            if kind == "timeseries":
                lines = [(named(legend, labels), points) for legend, series in queries for labels, points in series]
                parts += draw_lines(panel, box, lines, begin, end)
            elif kind == "heatmap":
                parts += draw_heat(panel, box, queries[0][1], begin, end)
            else:
                lines = [(labels, points) for _, series in queries for labels, points in series if points]
                parts += (draw_number if kind == "stat" else draw_rows)(panel, box, lines)
        y += max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in inside) * ROW - first * ROW
    width = 24 * COLUMN + GAP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
            f'font-family="{FONT}" shape-rendering="geometricPrecision"><rect width="{width}" height="{y}" fill="#111217"/>\n' + "\n".join(parts) + "\n</svg>\n")


def save(drawing, path):
    """In few colours, which are enough and a third of the size."""
    picture = subprocess.run(["rsvg-convert"], input=drawing.encode(), stdout=subprocess.PIPE, check=True).stdout
    few = subprocess.run(["pngquant", "--nofs", "64", "-"], input=picture, stdout=subprocess.PIPE, check=True).stdout
    with open(path, "wb") as file:
        file.write(few)


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        looks = json.load(file)
    os.makedirs(sys.argv[2], exist_ok=True)
    for path in sorted(glob.glob(os.path.join(HERE, "grafana/*.json"))):
        with open(path, encoding="utf-8") as file:
            dashboard = json.load(file)
        save(draw(dashboard, looks), os.path.join(sys.argv[2], f"{dashboard['uid']}.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
