# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of a comparison of two groups of runs (analyse/compare.py): the differences with their intervals, and the values of each run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ktrxer.analyse.compare import Comparison, Row, notable, sentences
from ktrxer.panels import palette, shapes
from ktrxer.panels.items import position_axis
from ktrxer.panels.model import Axis, Panel, Series

MOST = 24  # figures of a panel


def panels(made: Comparison) -> list[Panel]:
    """One panel of the relative differences, and one of the values for each unit."""
    rows = [row for row in made.rows if notable(row)][:MOST]
    return [panel for panel in (differences(made, rows), *_values(made, rows)) if panel is not None]


def differences(made: Comparison, rows: Sequence[Row]) -> Panel | None:
    """(B - A) / A of each figure, with its interval. A figure whose mean in A is zero, or that is infinite in a run, is not drawn."""
    drawn: list[Series] = []
    names: list[str] = []
    for row in rows:
        if row.found is None or row.share is None:
            continue
        size = 100 / abs(row.found.mean_a)
        low, high = (None if end is None else np.array([end * size]) for end in (row.found.low, row.found.high))
        at = np.array([float(len(names))])
        better = row.outcome == row.figure.better
        color = palette.GREY if row.outcome in ("unclear", "same", "too few runs") else palette.FIRST + (2 if better else 1)
        hint = f"{row.figure.label}: {row.outcome}"
        drawn.append(Series(row.figure.key, row.figure.label, "bar", at, np.array([100 * row.share]), color, low=low, high=high, hint=hint))
        names.append(row.figure.label)
    if not drawn:
        return None
    left = [row.figure.label for row in rows if row.found is None or row.share is None]
    notes = [*sentences(made), "Line: 95 % interval of the difference, from three runs in each group on. Grey: no difference is shown."]
    if left:
        notes.append(f"Without a relative difference: {', '.join(left)}.")
    title = f"{made.name_b} against {made.name_a}"
    axis = Axis(f"Difference, in % of {made.name_a}", "%", zero=False)
    return Panel("differences", title, position_axis(names), axis, tuple(drawn), link="", notes=tuple(notes))


def _values(made: Comparison, rows: Sequence[Row]) -> list[Panel | None]:
    """The values of the runs of both groups as points, with the mean and its interval, for each unit."""
    units = list(dict.fromkeys(row.figure.unit for row in rows))
    return [_unit(made, unit, [row for row in rows if row.figure.unit == unit]) for unit in units]


def _unit(made: Comparison, unit: str, rows: Sequence[Row]) -> Panel | None:
    drawn: list[Series] = []
    for group, (name, color) in enumerate(((made.name_a, palette.FIRST), (made.name_b, palette.FIRST + 1))):
        for i, row in enumerate(rows):
            values = shapes.known(np.asarray(row.values_b if group else row.values_a, np.float64))
            interval = shapes.mean_interval(values)
            if interval is None:
                continue
            at = i + (group - 0.5) * 0.3
            key = f"{name}: {row.figure.key}"
            drawn.append(Series(key, name, "points", np.full(len(values), at), values, color, width=3.0, hint=row.figure.label))
            low, high = (None if end is None else np.array([end]) for end in (interval.low, interval.high))
            drawn.append(Series(f"{key} mean", "", "points", np.array([at]), np.array([interval.mean]), palette.INK, (), 5.0, low, high))
    if not drawn:
        return None
    notes = (
        f"Left of each pair: {made.name_a}; right: {made.name_b}. Dots: runs. Large dot and line: mean, with its 95 % interval.",
    )
    title = f"Each run, {unit}" if unit else "Each run"
    names = [row.figure.label for row in rows]
    return Panel(f"values-{unit or 'none'}", title, position_axis(names), Axis("Value", unit), tuple(drawn), link="", notes=notes)
