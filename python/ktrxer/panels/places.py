# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels with a place for each series or group: boxes, violins, bars, differences, numbers over a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ktrxer.panels import palette, shapes
from ktrxer.panels.curves import pooled
from ktrxer.panels.errors import BuildError
from ktrxer.panels.items import Item, Selection, alike, all_items, axis_of, look, measures, placed, position_axis, scaled, title_of
from ktrxer.panels.model import Axis, Floats, Panel, Series
from ktrxer.panels.spec import Spec
from ktrxer.statistics.difference import difference


def boxes(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    parts = pooled(spec, chosen, numbers)
    if not parts:
        return None
    axes = measures(spec, [item for item, _, _ in parts], [values for _, _, values in parts])
    several = len({item.number for item, _, _ in parts}) > 1
    drawn: list[Series] = []
    for at, (item, label, values) in enumerate(parts):
        color, _ = look(item, several, True)
        axis, unit = placed(item, axes)
        key, hint = f"{item.number}: {item.track.name} {item.place}", f"{item.track.name}: {len(values):,} values"
        for one in _shape(spec.kind, float(at), values, combined=spec.combine == "each"):
            made = replace(one, key=key, label=label, color=color, axis=2 if axis == 2 else 1, hint=hint)
            drawn.append(scaled(made, unit.divisor))
    return Panel(
        name, title_of(spec), position_axis([label for _, label, _ in parts]), axis_of(axes[0]), tuple(drawn), link="",
        notes=(_SHAPE_NOTES[spec.kind, spec.combine == "each"],), y2=axis_of(axes[1]) if axes[1] is not None else None,
    )  # fmt: skip


_SHAPE_NOTES = {
    ("box", False): "Box: p25 to p75, with p50. Line: p1 to p99.",
    ("box", True): "One value for each run. Box: p25 to p75 of the runs, with p50. Line: p1 to p99.",
    ("violin", False): "The width is the density of the samples. Box: p25 to p75, with p50. Line: p1 to p99.",
    ("violin", True): "One value for each run; the width is their density. Box: p25 to p75, with p50.",
    ("bar", False): "The mean of the samples. Line: one standard deviation of the samples to each side.",
    ("bar", True): "The mean of the runs. Line: 95 % interval of the mean (Student's t), from three runs on.",
}


def _shape(kind: str, at: float, values: Floats, *, combined: bool) -> list[Series]:
    if kind == "bar":
        interval = shapes.mean_interval(values)
        assert interval is not None  # there is a value
        low, high = interval.low, interval.high
        if not combined:
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            low, high = interval.mean - spread, interval.mean + spread
        ends = [None if end is None else np.array([end]) for end in (low, high)]
        return [Series("", "", "bar", np.array([at]), np.array([interval.mean]), low=ends[0], high=ends[1], width=1.5)]
    five = shapes.five(values)
    assert five is not None
    box = Series("", "", "box", np.full(5, at), five, width=0.5 if kind == "violin" else 1.5)
    outline = shapes.violin(values, at) if kind == "violin" else None
    return [box] if outline is None else [Series("", "", "outline", *outline, width=1.0), box]


def over_places(name: str, spec: Spec, chosen: Selection, _numbers_of_runs: Sequence[int]) -> Panel | None:
    """One number from each group over the second part of the group's name."""
    groups = chosen.groups(spec)
    places = list(dict.fromkeys(group.place for group, _ in groups))
    numbers = [float(place) if place.replace(".", "", 1).isdigit() else None for place in places]
    numeric = all(number is not None for number in numbers) and len(places) > 1
    xs = {
        place: (number if numeric and number is not None else float(i))
        for i, (place, number) in enumerate(zip(places, numbers, strict=True))
    }
    found: dict[tuple[str, int, str], list[tuple[float, shapes.Interval, Item]]] = {}
    for group, members in groups:
        for items in alike(all_items(spec, chosen, members)):
            interval = shapes.mean_interval(_numbers(items))
            if interval is not None:
                key = group.name, items[0].place, items[0].label
                found.setdefault(key, []).append((xs[group.place], interval, items[0]))
    if not found:
        return None
    firsts = [points[0][2] for points in found.values()]
    axes = measures(spec, firsts, [np.array([interval.mean for _, interval, _ in points]) for points in found.values()])
    drawn = []
    for i, ((group_name, _, label), points) in enumerate(found.items()):
        points.sort(key=lambda point: point[0])
        x, y = (np.array([one[0] for one in points]), np.array([one[1].mean for one in points]))
        ends = [
            np.array([np.nan if value is None else value for value in row])
            for row in zip(*((p[1].low, p[1].high) for p in points), strict=True)
        ]
        text = f"{group_name}: {label}".strip(": ")
        made = Series(f"{i}", text, "line", x, y, palette.FIRST + i % palette.COUNT, (), 1.5, ends[0], ends[1])
        drawn.append(scaled(made, placed(points[0][2], axes)[1].divisor))
    x_axis = Axis("", "", zero=False) if numeric else position_axis(places)
    return Panel(
        name, title_of(spec), x_axis, axis_of(axes[0]), tuple(drawn), link="", notes=("The band is the 95 % interval of the mean.",)
    )


def _numbers(items: Sequence[Item]) -> Floats:
    """The number of each run, where it has one."""
    return shapes.known(np.array([item.value() for item in items]))


def differences(name: str, spec: Spec, chosen: Selection, _numbers_of_runs: Sequence[int]) -> Panel | None:
    groups = chosen.groups(spec)
    if len(groups) < 2:
        raise BuildError("a difference needs two groups of runs, and all runs are in one")
    values: list[dict[tuple[int, str], tuple[Item, Floats]]] = []
    for _, members in groups:
        parts = alike(all_items(spec, chosen, members))
        values.append({(items[0].place, items[0].label): (items[0], _numbers(items)) for items in parts})
    drawn: list[Series] = []
    names: list[str] = []
    firsts: list[Item] = []
    for (a, _), (b, _), here, there in ((*pair, *found) for pair, found in zip(pairwise(groups), pairwise(values), strict=True)):
        for key in here:
            if key in there and len(here[key][1]) and len(there[key][1]):
                found = difference(here[key][1], there[key][1])
                ends = [None if end is None else np.array([end]) for end in (found.low, found.high)]
                label = f"{key[1]}: {b.name} - {a.name}"
                at = np.array([float(len(names))])
                color = palette.FIRST + key[0] % palette.COUNT
                drawn.append(Series(label, label, "bar", at, np.array([found.difference]), color, low=ends[0], high=ends[1]))
                names.append(label)
                firsts.append(here[key][0])
    if not drawn:
        return None
    axes = measures(spec, firsts, [one.y for one in drawn])
    made = tuple(scaled(one, placed(item, axes)[1].divisor) for one, item in zip(drawn, firsts, strict=True))
    note = "Difference of the means over runs. Line: 95 % interval (over whole runs), from three runs in each group on."
    return Panel(name, title_of(spec), position_axis(names), axis_of(axes[0]), made, link="", notes=(note,))
