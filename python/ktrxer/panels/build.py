# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds panels from a specification and runs. Pure: the same runs, specification and options give the same panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ktrxer.panels import against, axes, curves, places, shapes
from ktrxer.panels.items import Item, Selection, all_items, scaled
from ktrxer.panels.model import Panel
from ktrxer.panels.parts import base_of, ratio
from ktrxer.panels.spec import Options, Spec
from ktrxer.store import Run

MOST_MULTIPLES = 64

Specs = Mapping[str, Spec]


def build(name: str, specs: Specs, runs: Sequence[Run], options: Options | None = None) -> tuple[list[Panel], int]:
    """The panels of a plot, and how many stand side by side. A panel without samples is left out. BuildError: the plot needs more runs.
    SettingError: a setting fits none of the panels."""
    options = options or Options()
    chosen = Selection(runs, options)
    panels, columns = _build(name, specs, chosen)
    chosen.check()
    axes.check(panels, options)
    return [axes.labelled(panel, options) for panel in panels], columns


def _build(name: str, specs: Specs, chosen: Selection) -> tuple[list[Panel], int]:
    spec = specs[name]
    if spec.kind == "stack":
        made = [panel for part in spec.panels for panel in _build(part, specs, chosen)[0]]
        made = made if spec.share_x else [replace(panel, link="") for panel in made]
        return made, max(1, len(made)) if spec.side else 1
    if spec.multiples:
        return _multiples(name, spec, chosen)
    panel = _panel(name, spec, chosen, range(len(chosen.runs)))
    return ([panel], 1) if panel is not None else ([], 1)


def _panel(name: str, spec: Spec, chosen: Selection, numbers: Sequence[int]) -> Panel | None:
    panel = _KINDS[spec.kind](name, spec, chosen, numbers)
    if panel is None or not any(series.samples for series in panel.series):
        return None
    options = chosen.options
    notes = _smoothed(spec, chosen, numbers)
    if options.norm != 1:
        notes.append(f"Values are divided by {options.norm:g}.")
    if notes:
        panel = replace(panel, notes=(*panel.notes, *notes))
    return axes.changed(panel, options, spec.scaling, spec.log)


def _smoothed(spec: Spec, chosen: Selection, numbers: Sequence[int]) -> list[str]:
    widths = {pick: pick.smooth or chosen.options.smooth for pick in spec.picks}
    if max(widths.values(), default=0) <= 1:
        return []
    drawn = {item.pick for item in all_items(spec, chosen, numbers)}
    widths = {pick: width for pick, width in widths.items() if pick in drawn}
    made = []
    for width in sorted({one for one in widths.values() if one > 1}):
        names = [pick.label or pick.data for pick, own in widths.items() if own == width]
        which = "Smoothed" if len(names) == len(widths) else f"Smoothed: {', '.join(names)}"
        made.append(f"{which}; each value is the mean of {width} neighbouring samples.")
    return made


def _multiples(name: str, spec: Spec, chosen: Selection) -> tuple[list[Panel], int]:
    """A small panel for each run, or for each series."""
    one = replace(spec, multiples="")
    parts: list[tuple[str, Panel | None]]
    if spec.multiples == "run":
        parts = [(label, _panel(name, one, chosen, [number])) for number, label in enumerate(chosen.labels[:MOST_MULTIPLES])]
    else:
        labels = list(dict.fromkeys(item.label for number in range(len(chosen.runs)) for item in chosen.items(spec, number)))
        parts = []
        for label in labels[:MOST_MULTIPLES]:
            picks = tuple(pick for pick in spec.picks)
            own = _Labelled(chosen, label)
            parts.append((label, _panel(name, replace(one, picks=picks), own, range(len(chosen.runs)))))
    made = [replace(panel, key=f"{name}-{i}", title=label) for i, (label, panel) in enumerate(parts) if panel is not None]
    if chosen.options.same_axes:
        made = [axes.bounded(panel, chosen.options) for panel in same_axes(_same_units(made))]
    return made, min(4, max(1, round(len(made) ** 0.5)))


class _Labelled(Selection):
    """The same selection with the series of one label only."""

    def __init__(self, whole: Selection, label: str) -> None:
        self.__dict__.update(whole.__dict__)
        self._whole, self._label = whole, label

    def items(self, spec: Spec, number: int) -> list[Item]:
        return [item for item in self._whole.items(spec, number) if item.label == self._label]


def _same_units(panels: Sequence[Panel]) -> list[Panel]:
    """All panels in the largest unit that one of them has."""
    if len({base_of(panel.y.unit)[0] for panel in panels}) != 1:
        return list(panels)
    unit = max((panel.y.unit for panel in panels), key=lambda one: base_of(one)[1])
    made = []
    for panel in panels:
        series = tuple(scaled(one, ratio(unit, panel.y.unit)) for one in panel.series)
        made.append(replace(panel, y=replace(panel.y, unit=unit), series=series))
    return made


def same_axes(panels: Sequence[Panel]) -> list[Panel]:
    """The same range of y in each panel."""
    columns = [column for panel in panels for one in panel.series for column in (one.y, one.low, one.high) if column is not None]
    there = shapes.known(np.concatenate([np.empty(0), *columns]))
    if not len(there):
        return list(panels)
    low, high = float(there.min()), float(there.max())
    made = []
    for panel in panels:
        least = None if panel.y.zero and low >= 0 else low
        made.append(replace(panel, y=replace(panel.y, least=panel.y.least if least is None else least, most=high + (high - low) / 20)))
    return made


_KINDS: dict[str, Callable[[str, Spec, Selection, Sequence[int]], Panel | None]] = {
    "series": curves.series,
    "band": curves.band,
    "cdf": curves.distribution,
    "ccdf": curves.distribution,
    "histogram": curves.distribution,
    "box": places.boxes,
    "violin": places.boxes,
    "bar": places.boxes,
    "line": places.over_places,
    "qq": against.quantiles,
    "ellipse": against.ellipses,
    "heat": curves.heat,
    "difference": places.differences,
}
