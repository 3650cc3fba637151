# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels over time, and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ktrxer.panels import events, palette, shapes
from ktrxer.panels.groups import averaged
from ktrxer.panels.items import (
    Item,
    Selection,
    alike,
    all_items,
    axis_of,
    common_bands,
    group_label,
    label_of,
    look,
    measure,
    measures,
    placed,
    scaled,
    title_of,
)
from ktrxer.panels.model import TIME, Axis, EventRow, Floats, Panel, Series
from ktrxer.panels.parts import S
from ktrxer.panels.spec import Spec

STEP_S = 0.2  # windows in which runs are averaged, and quantities are paired
BAND_S = 1.0  # windows of percentile bands


def series(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    if spec.combine == "averaged":
        return _averaged(name, spec, chosen)
    items = all_items(spec, chosen, numbers)
    if not items:
        return None
    axes = measures(spec, items, [item.y for item in items])
    several, mixed = len(numbers) > 1, len({item.track.name for item in items if item.track.computed}) > 1
    begins = _begins(chosen, numbers)
    labels = len({item.label for item in items})
    drawn: list[Series] = []
    event_rows: list[EventRow] = []
    taken: set[palette.Look] = set()
    for item in items:
        color, dash = palette.free(look(item, several, mixed), taken)
        label = label_of(item, chosen, numbers, labels)
        key = item.track.name if not several else f"{item.number}: {item.track.name}"
        key += f" ({item.pick.smooth})" if item.pick.smooth > 1 else ""
        own = item.track.series
        t, y, style = item.t, item.y, own.style
        low = high = None
        if style == "step" and len(t) == len(own.x) - 1 and item.pick.smooth <= 1 and chosen.options.smooth <= 1:
            t, y = own.x, np.append(y, y[-1:])  # the edges of the windows
        elif style == "step":
            style = "line"
        elif len(t) == len(own.x) and item.pick.smooth <= 1 and chosen.options.norm == 1 and own.low is not None and own.high is not None:
            low, high = own.low, own.high
        axis, unit = placed(item, axes)
        wide = 1.8 if item.pick.smooth > 1 or item.track.computed else own.width
        made = Series(key, label, style, t + begins[item.number], y, color, dash, wide, low, high, axis=2 if axis == 2 else 1)
        drawn.append(scaled(replace(made, hint=item.track.name), unit.divisor))
        if len(item.lost_t) and not any(row.key == key for row in event_rows):
            event_rows.append(EventRow(key, label, "lost", item.lost_t + begins[item.number], color))
    if spec.events:
        rows = [(number, row) for number in numbers for row in events.event_rows(chosen.runs[number])]
        event_rows += [replace(row, x=row.x + begins[number]) for number, row in rows]
    x = Axis("Time", "s", zero=False)
    moved = chosen.options.concatenate or chosen.options.absolute_time
    shaded = () if moved and several else common_bands([chosen.runs[number] for number in numbers])
    return Panel(
        name, title_of(spec), x, axis_of(axes[0]), tuple(drawn), TIME if spec.share_x else "", shaded,
        y2=axis_of(axes[1]) if axes[1] is not None else None, event_rows=tuple(event_rows),
    )  # fmt: skip


def _begins(chosen: Selection, numbers: Sequence[int]) -> dict[int, float]:
    """The seconds that are added to the times of each run."""
    runs = [chosen.runs[number] for number in numbers]
    if chosen.options.concatenate:
        ends = np.cumsum([0.0, *(run.meta.length_ns / S for run in runs)])
        return {number: float(ends[i]) for i, number in enumerate(numbers)}
    if chosen.options.absolute_time and runs:
        first = min(run.meta.zero.realtime_ns for run in runs)
        return {number: (run.meta.zero.realtime_ns - first) / S for number, run in zip(numbers, runs, strict=True)}
    return dict.fromkeys(numbers, 0.0)


def _averaged(name: str, spec: Spec, chosen: Selection) -> Panel | None:
    found: list[tuple[Item, str, tuple[Floats, Floats, Floats, Floats]]] = []
    groups = chosen.groups(spec)
    for place, (group, members) in enumerate(groups):
        parts = alike(all_items(spec, chosen, members))
        for items in parts:
            columns = averaged([(item.t, item.y) for item in items], STEP_S)
            if len(columns[0]):
                label = group_label(group, items[0], chosen, alone=len(groups) == 1, single=len(parts) == 1)
                found.append((replace(items[0], number=place), label, columns))
    if not found:
        return None
    axes = measures(spec, [item for item, _, _ in found], [columns[1] for _, _, columns in found])
    drawn = []
    taken: set[palette.Look] = set()
    for item, label, (t, mean, low, high) in found:
        color, dash = palette.free(look(item, len(groups) > 1, True), taken)
        axis, unit = placed(item, axes)
        one = Series(f"{item.number}: {item.track.name} {item.place}", label, "line", t, mean, color, dash, 1.6, low, high)
        drawn.append(scaled(replace(one, axis=2 if axis == 2 else 1), unit.divisor))
    note = f"The mean of the runs of each group in windows of {STEP_S:g} s; the band has the range of the runs."
    return Panel(
        name, title_of(spec), Axis("Time", "s", zero=False), axis_of(axes[0]), tuple(drawn), bands=common_bands(chosen.runs), notes=(note,),
        y2=axis_of(axes[1]) if axes[1] is not None else None,
    )  # fmt: skip


def band(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    items = all_items(spec, chosen, numbers)
    made = [(item, shapes.percentile_band(item.y, item.t, BAND_S)) for item in items]
    made = [(item, columns) for item, columns in made if len(columns[0])]
    if not made:
        return None
    axes = measures(spec, [item for item, _ in made], [columns[3] for _, columns in made])
    drawn, labels = [], len({item.label for item, _ in made})
    taken: set[palette.Look] = set()
    for item, (edges, middle, low, high) in made:
        color, dash = palette.free(look(item, len(numbers) > 1, True), taken)
        label = label_of(item, chosen, numbers, labels)
        one = Series(f"{item.number}: {item.track.name}", label, "step", edges, middle, color, dash, 1.6, low, high, hint=item.track.name)
        drawn.append(scaled(one, placed(item, axes)[1].divisor))
    shaded = common_bands([chosen.runs[number] for number in numbers])
    note = f"The p50 in windows of {BAND_S:g} s; the band goes from p5 to p95. Lost probes are left out."
    return Panel(name, title_of(spec), Axis("Time", "s", zero=False), axis_of(axes[0]), tuple(drawn), bands=shaded, notes=(note,))


def heat(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    items = all_items(spec, chosen, numbers)
    if not items:
        return None
    found = measure(items, items[0].pick.axis, spec.y, [item.y for item in items])
    t, y = (np.concatenate(column) for column in zip(*((item.t, item.y / found.divisor) for item in items), strict=True))
    log = "y" in (spec.log, chosen.options.log)
    made = shapes.heat(t, y, log=log)
    if made is None:
        return None
    labels = ", ".join(dict.fromkeys(item.label for item in items))
    series = Series("heat", labels, "heat", made.x, made.y, palette.FIRST, z=made.z)
    shaded = common_bands([chosen.runs[number] for number in numbers])
    note = "A stronger colour: a larger share of the samples of that time. Lost probes are left out."
    axis = Axis(found.label, found.unit, zero=False, scale="log" if log else "linear")
    return Panel(name, title_of(spec), Axis("Time", "s", zero=False), axis, (series,), bands=shaded, notes=(note,))


def distribution(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    parts = pooled(spec, chosen, numbers)
    if not parts:
        return None
    found = measure([item for item, _, _ in parts], parts[0][0].pick.axis, spec.y, [values for _, _, values in parts])
    drawn, thinned, several = [], False, len({item.number for item, _, _ in parts}) > 1
    taken: set[palette.Look] = set()
    for item, label, values in parts:
        color, dash = palette.free(look(item, several, True), taken)
        if spec.kind == "histogram":
            x, y, left = *shapes.histogram(values / found.divisor), False
        else:
            x, y, left = (shapes.cdf if spec.kind == "cdf" else shapes.ccdf)(values / found.divisor)
            y = y * 100 if spec.kind == "cdf" else y
        thinned |= left
        hint = f"{item.track.name}: {len(values):,} samples"
        drawn.append(Series(f"{item.number}: {item.track.name} {item.place}", label, "step", x, y, color, dash, 1.5, hint=hint))
    y_axis = {
        "cdf": Axis("Share at or below", "%"),
        "ccdf": Axis("Share above", "", scale="log", zero=False, most=1.0),
        "histogram": Axis("Samples in a bin", ""),
    }[spec.kind]
    notes = ["Lost probes have no value and are left out."] if any(len(item.lost_t) for item, _, _ in parts) else []
    if thinned:
        notes.append(f"Each curve has about {shapes.CDF_POINTS} of its points, with all extreme values.")
    # A distribution begins at its smallest value; zero is shown where that costs less than half of the axis.
    least = min((float(one.x.min()) for one in drawn if len(one.x)), default=0.0)
    most = max((float(one.x.max()) for one in drawn if len(one.x)), default=0.0)
    x_axis = Axis(found.label, found.unit, zero=0 <= least < most / 2)
    return Panel(name, title_of(spec), x_axis, y_axis, tuple(drawn), link="", notes=tuple(notes), log="x")


def pooled(spec: Spec, chosen: Selection, numbers: Sequence[int]) -> list[tuple[Item, str, Floats]]:
    """The samples of each curve or box: of each run's series; with `pooled` those of all runs of a group; with `each` one number for each
    run. The item is that of the first run of the group, with the number of the group."""
    if spec.combine is None:
        items = all_items(spec, chosen, numbers)
        labels = len({item.label for item in items})
        made = [(item, label_of(item, chosen, numbers, labels), item.samples()) for item in items]
        return [part for part in made if len(part[2])]
    groups = chosen.groups(spec)
    found = []
    for place, (group, members) in enumerate(groups):
        parts = alike(all_items(spec, chosen, members))
        for items in parts:
            each = [item.samples() for item in items] if spec.combine == "pooled" else [np.array([item.value()]) for item in items]
            values = shapes.known(np.concatenate(each))
            if len(values):
                label = group_label(group, items[0], chosen, alone=len(groups) == 1, single=len(parts) == 1)
                found.append((replace(items[0], number=place), label, values))
    return found
