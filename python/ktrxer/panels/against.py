# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of one quantity against another: quantiles of two runs, and throughput against delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ktrxer.panels import palette, shapes
from ktrxer.panels.curves import STEP_S
from ktrxer.panels.errors import BuildError
from ktrxer.panels.items import Item, Selection, look, measure, title_of
from ktrxer.panels.model import Axis, Floats, Panel, Series
from ktrxer.panels.spec import Spec


def quantiles(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    if len(numbers) < 2:
        raise BuildError("a Q-Q plot compares two runs, and one is given")
    first, second = (chosen.items(spec, number) for number in numbers[:2])
    both = [(a, b) for a in first for b in second if (a.place, a.track.name) == (b.place, b.track.name)]
    if not both:
        return None
    found = measure([a for a, _ in both], both[0][0].pick.axis, "", [one.samples() for pair in both for one in pair])
    drawn = []
    for i, (a, b) in enumerate(both):
        x, y = shapes.qq(a.samples() / found.divisor, b.samples() / found.divisor)
        drawn.append(Series(a.track.name, a.label, "points", x, y, palette.FIRST + i % palette.COUNT, width=2.5))
    ends = shapes.known(np.concatenate([column for one in drawn for column in (one.x, one.y)]))
    if len(ends):
        line = np.array([ends.min(), ends.max()])
        drawn.append(Series("equal", "equal distributions", "line", line, line, palette.GREY, (6, 3), 1.0))
    labels = [chosen.labels[number] for number in numbers[:2]]
    notes = (f"Quantiles of {labels[1]} over the same quantiles of {labels[0]}.",)
    axis_x, axis_y = (Axis(f"{label}, {found.label}", found.unit, zero=False) for label in labels)
    return Panel(name, title_of(spec), axis_x, axis_y, tuple(drawn), link="", notes=notes)


def ellipses(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    """The first pick on x, which is delay, against each further one."""
    found: list[tuple[Item, str, Floats, Floats]] = []
    if spec.combine is not None:
        groups = [(group.label if chosen.options.count else group.name, members) for group, members in chosen.groups(spec)]
    else:
        groups = [(chosen.labels[number], [number]) for number in numbers]
    for place, (label, members) in enumerate(groups):
        columns: dict[str, list[tuple[Floats, Floats]]] = {}
        items: dict[str, Item] = {}
        for number in members:
            there = chosen.items(spec, number)
            base = next((item for item in there if item.place == 0), None)
            for item in there if base is not None else ():
                if item.place and base is not None:
                    pair = (np.array([base.value()]), np.array([item.value()]))
                    pair = pair if spec.combine == "each" else shapes.pairs(base.t, base.y, item.t, item.y, STEP_S)
                    columns.setdefault(item.label, []).append(pair)
                    items.setdefault(item.label, replace(item, number=place))
        for text, parts in columns.items():
            x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
            if len(x):
                found.append((items[text], label if len(columns) == 1 else f"{label}: {text}", x, y))
    if not found:
        return None
    first = next(item for number in range(len(chosen.runs)) for item in chosen.items(spec, number) if item.place == 0)
    across = measure([first], first.pick.axis, spec.y, [x for _, _, x, _ in found])
    upward = measure([item for item, *_ in found], found[0][0].pick.axis, spec.y2, [y for *_, y in found])
    drawn = []
    taken: set[palette.Look] = set()
    for item, label, x, y in found:
        color, dash = palette.free(look(replace(item, place=item.place - 1), True, True), taken)
        shape = shapes.ellipse(x / across.divisor, y / upward.divisor)
        if shape is not None:
            key = f"{item.number}: {item.label}"
            drawn.append(Series(key, label, "outline", shape.x, shape.y, color, dash, 1.4, hint=f"{len(x):,} pairs"))
            centre = np.array([shape.centre[0]]), np.array([shape.centre[1]])
            drawn.append(Series(f"{key} mean", "", "points", *centre, color, width=5.0))
    note = f"Each ellipse covers {100 * shapes.COVERED:g} % of the pairs if they are normally distributed; the point is their mean."
    return Panel(
        name, title_of(spec), Axis(across.label, across.unit), Axis(upward.label, upward.unit), tuple(drawn), link="", notes=(note,)
    )
