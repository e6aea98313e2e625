# SPDX-License-Identifier: Apache-2.0
"""Attackers and results in a document, between two marks."""

import textwrap

BEGIN, END = "<!-- scripts/bench hostile: begin -->\n", "<!-- scripts/bench hostile: end -->\n"
_WIDTH = 120


def _ratio(value):
    return "-" if value is None else f"{value:.2f}"


def _row(cells):
    return "| " + " | ".join(cells) + " |\n"


def _lines(attacks, trials):
    """Markdown: a table of results, a list of what the attackers do. attacks: of the catalogue, for the same names."""
    by_name = {attack.name: attack for attack in attacks}
    measured = any(one.share is not None for one in trials)
    columns = ["attacker", *(["share", "p99", "set-up"] if measured else []), "before", "after", "growth", "result"]
    table = [_row(columns), _row(["---"] * len(columns))]
    does = []
    for one in trials:
        attack = by_name[one.attack]
        ratios = [_ratio(value) for value in (one.share, one.p99, one.set_up)] if measured else []
        table.append(_row([f"`{one.attack}`", *ratios, one.before, one.after, f"{one.growth_mib:.0f}",
                           "[not held](#not-held)" if one.problems else "held" if one.tries == 1 else "held at the second try"]))
        does.append(textwrap.fill(f"- `{attack.name}` ({attack.where}): {attack.does}", _WIDTH, subsequent_indent="  ") + "\n")
    failed = [textwrap.fill(f"- `{one.attack}`: {one.verdict}", _WIDTH, subsequent_indent="  ") + "\n"
              for one in trials if one.problems]
    return [*table, *(["\n### Not held\n\n", *failed] if failed else []), "\n### Attackers\n\n", *does]


def update(path, attacks, trials):
    """Puts table and list between the marks of the document."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{path} has no marks for the table")
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + "".join(_lines(attacks, trials)) + END + tail)
