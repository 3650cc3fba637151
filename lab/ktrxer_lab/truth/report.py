# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of results of many paths: for a terminal, for the docs, and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ktrxer_lab.truth.figure import WORDS
from ktrxer_lab.truth.judge import Row
from ktrxer_lab.truth.measure import Result

HEAD = ("tool", "figure", "paths", "true", "error p50", "error max", "intervals", "hold it", "half-width p50")


def unit(figure: str) -> str:
    if figure in WORDS or figure == "routes":
        return ""
    if figure.startswith(("loss", "duplicates", "CE")):
        return "%"
    if figure == "clock rate":
        return "ppm"
    return "bytes" if "bytes" in figure else "Mbit/s" if figure.startswith(("TCP", "UDP", "capacity")) else "ms"


def shown(value: float, figure: str) -> str:
    value *= 100 if unit(figure) == "%" else 1
    if unit(figure) in ("bytes", "") or value == 0:
        return f"{value:.0f}"
    return f"{value:.3f}" if unit(figure) == "%" or abs(value) >= 0.001 else "< 0.001"


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """One line for each tool and figure."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.tool, row.figure), []).append(row)
    made: list[tuple[str, ...]] = []
    for (tool, figure), members in groups.items():
        errors = [abs(row.error) for row in members]
        within = [row for row in members if row.holds is not None]
        widths = [(row.high - row.low) / 2 for row in within if row.low is not None and row.high is not None]
        word = f" {unit(figure)}".rstrip()
        plain = figure in WORDS
        made.append((
            tool, figure, str(len({row.path for row in members})), f"{sum(row.good for row in members)} of {len(members)}",
            "" if plain else shown(statistics.median(errors), figure) + word, "" if plain else shown(max(errors), figure) + word,
            str(len(within)) if within else "", str(sum(bool(row.holds) for row in within)) if within else "",
            shown(statistics.median(widths), figure) + word if widths else "",
        ))  # fmt: skip
    return made


def coverage(rows: Sequence[Row]) -> tuple[int, int]:
    """The number of intervals that contain the truth, and the number of all intervals."""
    found = [row.holds for row in rows if row.holds is not None]
    return sum(found), len(found)


def line(row: Row) -> str:
    truth = shown(row.truth_low, row.figure) + ("" if row.truth_low == row.truth_high else f" to {shown(row.truth_high, row.figure)}")
    message = f"{shown(row.value, row.figure)} {unit(row.figure)}, truth {truth}" if not row.note else row.note
    between = ""
    if row.low is not None and row.high is not None:
        between = f", interval {shown(row.low, row.figure)} to {shown(row.high, row.figure)}"
    return f"{row.path}: {row.tool}: {row.figure}: {message}{between} ({row.source})"


def text(results: Sequence[Result]) -> list[str]:
    rows = [row for result in results for row in result.rows]
    cells = [HEAD, *table(rows)]
    widths = [max(len(one[i]) for one in cells) for i in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(one, widths, strict=True)).rstrip() for one in cells] if rows else []
    return [*lines, *endings(results)]


def endings(results: Sequence[Result]) -> list[str]:
    rows = [row for result in results for row in result.rows]
    lines = [f"false: {line(row)}" for row in rows if not row.good]
    lines += [f"not as constructed: {line(row)}" for result in results for row in result.checks if not row.good]
    lines += [f"no figures: {result.path.name}: {problem}" for result in results for problem in result.problems]
    held, whole = coverage(rows)
    checked = [row for result in results for row in result.checks]
    right = sum(row.good for row in rows)
    lines.append(f"{len(results)} paths; {right} of {len(rows)} figures are true, {held} of {whole} intervals hold the truth")
    if checked:
        lines.append(f"the paths by plain sockets: {sum(row.good for row in checked)} of {len(checked)} figures are as constructed")
    return lines


def markdown(results: Sequence[Result]) -> str:
    """Tables in Markdown, for the docs."""
    rows = [row for result in results for row in result.rows]
    checked = [row for result in results for row in result.checks]
    parts = []
    for title, some in (("Figures of the tools", rows), ("The paths themselves, by plain sockets", checked)):
        if some:
            parts += [f"## {title}", "", _markdown_rows([HEAD, *table(some)]), ""]
    parts += ["## False figures", "", *(f"- {one}" for one in endings(results)), ""]
    cells = [("path", "up / down", "wall time"), *((one.path.name, one.path.words(), f"{one.wall_s:.0f} s") for one in results)]
    return "\n".join([*parts, "## Paths", "", _markdown_rows(cells), ""])


def _markdown_rows(cells: Sequence[Sequence[str]]) -> str:
    head, *body = ["| " + " | ".join(one) + " |" for one in cells]
    return "\n".join([head, "|" + "---|" * len(cells[0]), *body])


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    held, whole = coverage([row for result in results for row in result.rows])
    return {
        "paths": [
            {
                "name": one.path.name,
                "what": one.path.words(),
                "wall_s": round(one.wall_s, 3),
                "rows": [row.as_json() for row in one.rows],
                "checks": [row.as_json() for row in one.checks],
                "problems": one.problems,
            }
            for one in results
        ],
        "intervals": whole,
        "intervals_that_hold": held,
    }


def all_true(results: Sequence[Result]) -> bool:
    return all(row.good for one in results for row in (*one.rows, *one.checks)) and not any(one.problems for one in results)
