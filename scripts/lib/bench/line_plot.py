# SPDX-License-Identifier: Apache-2.0
"""Plots of curves with logarithmic axes as SVG, without a library."""

import math
from dataclasses import dataclass
from html import escape

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 70, 50, 20, 170


@dataclass
class Curve:
    name: str
    points: list  # (x, y), both above 0


def _decades(low, high):
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def _number(value):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def bytes_text(value):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if value >= 1 << shift:
            return f"{value >> shift} {unit}"
    return f"{value} B"


def plot(curves, x_title, y_title):
    """SVG of the curves; x in powers of two, y in decades."""
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    marks = _decades(min(ys), max(ys))
    if len(marks) == 1:
        marks.append(marks[0] * 10)
    low_x, high_x = math.log2(min(xs)), math.log2(max(xs)) or 1.0

    def place(x, y):
        across = (math.log2(x) - low_x) / max(high_x - low_x, 1e-9)
        up = math.log10(y / marks[0]) / math.log10(marks[-1] / marks[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for mark in marks:
        _, y = place(min(xs), mark)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(mark)}</text>')
    for x in sorted(set(xs))[::4]:
        across, _ = place(x, marks[0])
        out.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{bytes_text(int(x))}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>')
    out.append(f'<text transform="translate(16 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>')
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve.points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 16 * (number + 1)}" fill="{colour}">{escape(curve.name)}</text>')
    return "\n".join([*out, "</svg>", ""])
