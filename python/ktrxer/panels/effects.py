# SPDX-License-Identifier: MIT OR Apache-2.0
"""The means of the combinations of a factorial design, one line for each combination of the other factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ktrxer.analyse.factorial import Factorial
from ktrxer.analyse.figure import Figure
from ktrxer.analyse.grouping import Group
from ktrxer.panels import palette, shapes
from ktrxer.panels.items import position_axis
from ktrxer.panels.model import Axis, Panel, Series

APART = 0.06  # of the distance of two levels: the intervals of the lines do not cover each other


def panels(made: Factorial, groups: Sequence[Group], known: dict[str, Figure]) -> list[Panel]:
    """One for each figure that has effects. The factor with most levels is the x axis."""
    figures = list(dict.fromkeys(one.key for one in made.effects))
    return [panel for key in figures if (panel := _panel(made, groups, known[key])) is not None]


def _panel(made: Factorial, groups: Sequence[Group], figure: Figure) -> Panel | None:
    across = max(made.factors, key=lambda one: len(one.levels))
    others = [one for one in made.factors if one is not across]
    lines: dict[str, dict[float, shapes.Interval]] = {}
    for group in groups:
        values = np.asarray([one.figures[figure.key] for one in group.members if figure.key in one.figures], np.float64)
        found = shapes.mean_interval(values) if len(values) and np.isfinite(values).all() else None
        if found is None:
            continue
        member = group.members[0]
        name = ", ".join(member.value(one.key) or f"no {one.key}" for one in others)
        lines.setdefault(name, {})[float(across.levels.index(member.value(across.key)))] = found
    if not lines:
        return None
    drawn = []
    for number, (name, means) in enumerate(lines.items()):
        at = sorted(means)
        shift = (number - (len(lines) - 1) / 2) * APART
        x, y = np.asarray(at) + shift, np.asarray([means[one].mean for one in at])
        color = palette.FIRST + number
        drawn.append(Series(name, name, "line", x, y, color))
        ends = [(one + shift, means[one].low, means[one].high) for one in at]
        bars = [(place, low, high) for place, low, high in ends if low is not None and high is not None]
        if bars:
            where = np.repeat([place for place, _, _ in bars], 3)
            heights = np.asarray([value for _, low, high in bars for value in (low, high, math.nan)])
            drawn.append(Series(f"{name} 95 %", "", "line", where, heights, color, width=0.8))
    notes = ("Lines: the means of the combinations. Bars: their 95 % intervals, from three runs on. Parallel lines have no interaction.",)
    axis = position_axis([level or f"no {across.key}" for level in across.levels])
    title = f"{figure.label[:1].upper()}{figure.label[1:]}, by {across.key}"
    return Panel(figure.key, title, axis, Axis("Mean", figure.unit), tuple(drawn), link="", notes=notes, keyed=True)
