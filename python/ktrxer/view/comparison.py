# SPDX-License-Identifier: MIT OR Apache-2.0
"""A comparison of two groups of runs for a page: the differences as a table and as panels, and the run of each group that stands for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ktrxer.analyse.compare import Comparison, Row, amount, notable, sentences
from ktrxer.analyse.grouping import Group, Member
from ktrxer.panels import comparison as panels
from ktrxer.store import Run
from ktrxer.view import report


def front(made: Comparison, groups: tuple[Group, Group], opened: Callable[[Path], Run]) -> report.Front:
    """The files are opened one after the other, so that not all runs are in memory at once."""
    a, b = groups
    kind, first = panels.round_trips_of(opened(Path(one.name)) for one in a.members)
    kind, second = panels.round_trips_of((opened(Path(one.name)) for one in b.members), kind)
    shown = panels.panels(made)
    if kind is not None:
        shown[1:1] = panels.distributions((made.name_a, made.name_b), kind, first, second)
    title = f"{made.name_b} against {made.name_a}: {len(b.members)} and {len(a.members)} runs"
    return report.Front(title, sentences(made), [_differences(made), *_left_out(made)], shown)


def _differences(made: Comparison) -> dict[str, Any]:
    rows = [_cells(row) for row in made.rows if notable(row)]
    columns = ["figure", made.name_a, made.name_b, "difference", "95 % interval", "p", "outcome"]
    notes = [*(f"{note[:1].upper()}{note[1:]}." for note in made.notes)]
    notes += [f"They differ in {key}: {of_a} and {of_b}." for key, (of_a, of_b) in made.differ_in.items()]
    return report.table(f"Differences: {made.name_b} against {made.name_a}", columns, rows, notes)


def _cells(row: Row) -> list[str]:
    label, found = f"{row.figure.label} ({row.figure.unit})", row.found
    if found is None:
        return [label, *([report.NONE] * 5), row.outcome]
    bounded = found.low is not None and found.high is not None
    half = (found.high - found.low) / 2 if found.low is not None and found.high is not None else abs(found.difference) / 20
    values = [amount(value, half) for value in (found.mean_a, found.mean_b, found.difference)]
    between = f"{amount(found.low or 0.0, half)} to {amount(found.high or 0.0, half)}" if bounded else report.NONE
    return [label, *values, between, f"{row.p_corrected:.2g}" if row.p_corrected is not None else report.NONE, row.outcome]


def _left_out(made: Comparison) -> list[dict[str, Any]]:
    groups = ((made.name_a, made.left_out_a), (made.name_b, made.left_out_b))
    rows = [[name, Path(one.run).name, one.text] for name, out in groups for one in out]
    notes = [f"The first {report.MOST_SERIES} of {len(rows):,}."] if len(rows) > report.MOST_SERIES else []
    title = "Runs and figures that were left out"
    return [report.table(title, ["group", "run", "reason"], rows[: report.MOST_SERIES], notes)] if rows else []


def typical(group: Group, made: Comparison) -> Member:
    """The run whose first main figure is the median of its group."""
    key = next((row.figure.key for row in made.rows if row.figure.main), "")
    ranked = sorted(group.members, key=lambda one: one.figures.get(key, math.inf))
    return ranked[(len(ranked) - 1) // 2]
