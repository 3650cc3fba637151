# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of a comparison of two groups of runs (analyse/compare.py): the differences with their intervals, the values of each run, and the
distributions of the round trips side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ktrxer.analyse.compare import Comparison, Row, notable
from ktrxer.figures.delays import headline, round_trips
from ktrxer.panels import palette, shapes
from ktrxer.panels.items import position_axis
from ktrxer.panels.model import Axis, Floats, Panel, Series
from ktrxer.store import Run
from ktrxer.summary.figures import compared

MOST = 24  # figures of a panel
QUANTILES = 1000  # of a run, in the distribution of its group: all runs have the same weight


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
        low, high = (None if end is None else end * size for end in (row.found.low, row.found.high))
        better = row.outcome == row.figure.better
        color = palette.GREY if row.outcome in ("unclear", "same", "too few runs") else palette.FIRST + (2 if better else 1)
        hint = f"{row.figure.label}: {row.outcome}"
        at, value, label = float(len(names)), 100 * row.share, _numbered(len(names), row)
        if low is None or high is None:
            drawn.append(Series(row.figure.key, label, "points", np.array([at]), np.array([value]), color, width=5.0, hint=hint))
        else:
            five = np.array([low, low, value, high, high])
            drawn.append(Series(row.figure.key, label, "box", np.full(5, at), five, color, width=1.0, hint=hint))
        names.append(str(len(names) + 1))
    if not drawn:
        return None
    left = [row.figure.label for row in rows if row.found is None or row.share is None]
    notes = [
        "Line: the difference. Box: its 95 % interval, from three runs in each group on. Grey: no difference is shown.",
        "; ".join(one.label for one in drawn),
    ]
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
    means: list[tuple[float, shapes.Interval]] = []
    for group, (name, color) in enumerate(((made.name_a, palette.FIRST), (made.name_b, palette.FIRST + 1))):
        values = [shapes.known(np.asarray(row.values_b if group else row.values_a, np.float64)) for row in rows]
        at = [i + (group - 0.5) * 0.3 for i in range(len(rows))]
        if not any(map(len, values)):
            continue
        x = np.repeat(at, [len(some) for some in values])
        drawn.append(Series(name, name, "points", x, np.concatenate(values), color, width=3.0))
        means += [(place, found) for place, some in zip(at, values, strict=True) if (found := shapes.mean_interval(some)) is not None]
    if not drawn:
        return None
    crosses = np.concatenate([_cross(place, found) for place, found in sorted(means, key=lambda one: one[0])])
    drawn.append(Series("means", "mean, 95 % interval", "line", crosses[:, 0], crosses[:, 1], palette.INK, width=1.2))
    notes = (
        f"Left of each pair: {made.name_a}; right: {made.name_b}. Lines: their mean and its 95 % interval.",
        "; ".join(_numbered(i, row) for i, row in enumerate(rows)),
    )
    axis = position_axis([str(i + 1) for i in range(len(rows))])
    title = f"Each run, {unit}" if unit else "Each run"
    return Panel(f"values-{unit or 'none'}", title, axis, Axis("Value", unit), tuple(drawn), link="", notes=notes)


def _cross(at: float, found: shapes.Interval) -> Floats:
    """The mean as a short level line, and its interval as an upright one. NaN ends the line."""
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    y = np.array([found.mean, found.mean, low, high, found.mean, found.mean, np.nan])
    return np.column_stack([at + 0.1 * np.array([-1, 0, 0, 0, 0, 1, 1]), y])


def _numbered(i: int, row: Row) -> str:
    """The names of figures are too long for an axis."""
    return f"{i + 1}: {row.figure.label}"


# ------------------------------------------------------------------------------------------------------------ distributions


def round_trips_of(runs: Iterable[Run], kind: tuple[str, str] | None = None) -> tuple[tuple[str, str] | None, Floats]:
    """The round trips of all runs together, and their kind: the probes and the phase, which the first run that has some decides. A run with
    many round trips has QUANTILES of them. Runs without this kind are left out."""
    parts = [np.empty(0)]
    for run in runs:
        if kind is None and (trip := headline(compared(run).latency)) is not None:
            kind = trip.probes, "load" if trip.loaded is not None else "idle_before"
        if kind is not None:
            values = round_trips(run, *kind)
            parts.append(np.quantile(values, (np.arange(QUANTILES) + 0.5) / QUANTILES) if len(values) > QUANTILES else values)
    return kind, np.concatenate(parts)


def distributions(names: tuple[str, str], kind: tuple[str, str], a: Floats, b: Floats) -> list[Panel]:
    """The distribution functions of both groups, and the quantiles of B over those of A."""
    probes, phase = kind
    what = f"{probes} round trip, {'under load' if phase == 'load' else 'idle'}"
    notes = (f"Answered probes of all runs of a group; a run with more than {QUANTILES:,} of them counts with that many quantiles.",)
    curves = []
    for i, (name, values) in enumerate(zip(names, (a, b), strict=True)):
        x, share, _ = shapes.cdf(values)
        if len(x):
            curves.append(Series(f"cdf {name}", name, "line", x, 100 * share, palette.FIRST + i, width=1.6))
    x, y = shapes.qq(a, b)
    if len(curves) < 2 or not len(x):
        return []
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    drawn = (
        Series("qq", f"{names[1]} over {names[0]}", "points", x, y, palette.FIRST, width=2.5),
        Series("equal", "equal distributions", "line", ends, ends, palette.GREY, (6, 3), 1.0),
    )
    across = Axis("Round trip", "ms")
    first = Panel(
        "group-cdf", f"Distribution: {what}", across, Axis("At or below", "%", most=100), tuple(curves), link="", notes=notes, log="x"
    )
    x_axis, y_axis = (Axis(f"{name}, round trip", "ms", zero=False) for name in names)
    return [
        first,
        Panel("group-qq", f"Quantiles of {names[1]} over those of {names[0]}: {what}", x_axis, y_axis, drawn, link="", notes=notes),
    ]
