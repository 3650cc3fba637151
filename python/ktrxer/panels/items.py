# SPDX-License-Identifier: MIT OR Apache-2.0
"""The series that a specification selects from runs, with their samples in one part of the time, smoothed and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ktrxer.panels import palette, reduce, shapes
from ktrxer.panels.errors import SettingError
from ktrxer.panels.groups import Group, distinct, grouped
from ktrxer.panels.model import Axis, Band, Floats, Series
from ktrxer.panels.parts import SHOWN, S, bands, base_of
from ktrxer.panels.select import chosen, relabelled
from ktrxer.panels.spec import Options, Part, Pick, Spec
from ktrxer.panels.tracks import Track, tracks
from ktrxer.store import Run

# Further columns of a series, after the last `::` of a name. A name that ends in another word is the name of a series.
COLUMNS = frozenset((
    "owd_up", "owd_down", "own_queue", "far_queue", "lateness", "tcp_cwnd", "tcp_rtt", "tcp_delivery_rate", "tcp_pacing_rate", "tcp_bbr_bw",
    "retransmits",
))  # fmt: skip

LABELS = {"ms": "Delay", "Mbit/s": "Throughput", "byte": "Bytes", "segments": "Segments", "packets": "Packets", "%": "Share"}


@dataclass(frozen=True)
class Item:
    """One selected series of one run."""

    pick: Pick
    place: int  # of the pick in the plot
    track: Track
    run: Run
    number: int  # of the run
    label: str
    t: Floats
    y: Floats
    lost_t: Floats

    def least(self) -> float:
        """The smallest value of the whole run: the delay of empty queues, also where the part that is drawn has none."""
        there = shapes.known(self.track.y)
        return float(there.min()) if len(there) else 0.0

    def value(self) -> float:
        if self.pick.reduce == "mean_span":
            return reduce.reduce("mean", self.t, self.y) - self.least()
        return reduce.reduce(self.pick.reduce, self.t, self.y, len(self.lost_t))

    def samples(self) -> Floats:
        """The finite values; with `span` and `mean_span` above the smallest one, as the delay that queues add."""
        there = shapes.known(self.y)
        return there - self.least() if self.pick.reduce in ("span", "mean_span") else there


class Selection:
    """The series of the runs by pick, and the groups of the runs. Each run's tracks are made once."""

    def __init__(self, runs: Sequence[Run], options: Options) -> None:
        self.runs = list(runs)
        self.options = options
        titles = [run.meta.title or run.name for run in runs]
        given = list(options.labels[: len(titles)])
        self.labels = [*given, *distinct(titles, runs)[len(given) :]]
        self._tracks: dict[int, dict[str, Track]] = {}
        self._seen: dict[str, None] = {}  # names of series that the picks select
        self._found: set[str] = set()  # patterns of the user that are those of a series

    def check(self) -> None:
        """Call it when all items are selected. SettingError: a pattern of the user is that of no series."""
        for name, patterns in (("series", self.options.only), ("filter-series", self.options.drop)):
            unknown = [pattern for pattern in patterns if pattern not in self._found]
            if unknown and self._seen:
                known = ", ".join(list(self._seen)[:12]) + (", ..." if len(self._seen) > 12 else "")
                raise SettingError(f"{name}: this plot has no series {unknown[0][:60]!r}; valid: {known}")

    def _has(self, names: Sequence[str], patterns: Sequence[str]) -> bool:
        found = [pattern for pattern in patterns if chosen(names, pattern)]
        self._found.update(found)
        return bool(found)

    def tracks_of(self, number: int) -> dict[str, Track]:
        if number not in self._tracks:
            self._tracks[number] = tracks(self.runs[number])
        return self._tracks[number]

    def groups(self, spec: Spec) -> list[tuple[Group, list[int]]]:
        """Groups and the numbers of their runs."""
        numbers = {id(run): number for number, run in enumerate(self.runs)}
        found = grouped(self.runs, self.options.by or spec.by, self.options.drop_names)
        return [(group, [numbers[id(run)] for run in group.runs]) for group in found]

    def items(self, spec: Spec, number: int) -> list[Item]:
        """The items of one run, in the order of the picks. A series that two picks select is there twice."""
        made = []
        for place, pick in enumerate(spec.picks):
            names = picked(self.tracks_of(number), pick)
            found = (self._item(spec, pick, place, number, name, alone=len(names) == 1) for name in names)
            made += [item for item in found if item is not None]
        return made

    def _item(self, spec: Spec, pick: Pick, place: int, number: int, name: str, *, alone: bool) -> Item | None:
        """`alone`: the pick selects no other series, so its label is that of the series."""
        options, run, track = self.options, self.runs[number], self.tracks_of(number)[name]
        own = track.label or name
        names = [name, name.rpartition("::")[0], own]
        self._seen[name] = None
        dropped = self._has(names, options.drop)
        if dropped or (options.only and not self._has(names, options.only)):
            return None
        label = relabelled(own if not pick.label else pick.label if alone else f"{own}, {pick.label}", options.relabel)
        part = pick.part or options.part or spec.part
        inside = _inside(run, track.t, part)
        t, y = track.t[inside], track.y[inside] / options.norm
        width = pick.smooth or options.smooth
        if width > 1:  # within the part: the mean of an idle and a loaded sample is the delay of neither
            y = reduce.smooth(y, width)
        lost = track.lost[_inside(run, track.lost, part)]
        return Item(pick, place, track, run, number, label, t, y, lost)


def picked(there: dict[str, Track], pick: Pick) -> list[str]:
    if pick.column:
        stems = {name.rpartition("::")[0]: name for name in there if name.rpartition("::")[2] == pick.column}
        return [stems[stem] for stem in chosen(stems, pick.data, pick.exclude)]
    plain = [name for name in there if name == pick.data or name.rpartition("::")[2] not in COLUMNS]
    return chosen(plain, pick.data, pick.exclude)


def _inside(run: Run, t: Floats, part: Part) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    load = run.meta.phase("load")
    if isinstance(part, tuple):
        return reduce.cut(t, part[0], part[1], run.meta.length_ns / S)
    if part == "whole" or load is None:
        return np.ones(len(t), bool)
    if part == "idle":
        return np.asarray(t < load.from_ns / S)
    return np.asarray((t >= load.from_ns / S) & ((t < load.to_ns / S) | (part == "from load")))


# ------------------------------------------------------------------------------------------------------------------- looks


def look(item: Item, several: bool, mixed: bool) -> palette.Look:
    """`several` runs: a colour for each run and a dash for each pick. Else the series' own; a sum is drawn in ink, and with the other
    direction's sum beside it (`mixed`) in the colour of its direction."""
    if several:
        return palette.FIRST + item.number % palette.COUNT, palette.DASHES[item.place % len(palette.DASHES)]
    if not item.track.computed:
        return item.track.series.color, item.track.series.dash
    for way, color in palette.DIRECTIONS.items():
        if mixed and f" {way}load" in item.track.name:
            return color, ()
    return palette.INK, ()


def shown(unit: str, values: Sequence[Floats]) -> tuple[float, str]:
    """The size and the name of the largest unit of the quantity in which the largest value is at least one."""
    top = max((float(np.abs(there).max()) for one in values if len(there := shapes.known(one))), default=0.0)
    names = SHOWN.get(unit, (unit,))
    name = next((name for name in reversed(names) if top >= base_of(name)[1]), names[0] if top > 0 else unit)
    return base_of(name)[1], name


@dataclass(frozen=True)
class Measure:
    """The label and the unit of an axis of values, and the divisor of its values."""

    label: str
    unit: str
    divisor: float


def measure(items: Sequence[Item], axis: int, label: str, columns: Sequence[Floats]) -> Measure:
    units = list(dict.fromkeys(item.track.unit for item in items if item.pick.axis == axis))
    reducers = {item.pick.reduce for item in items if item.pick.axis == axis}
    if len(units) != 1:  # series of several units on one axis, as the plot specifies: each keeps its unit
        return Measure(label or "Value", ", ".join(units), 1.0)
    divisor, unit = shown(units[0], columns)
    if reducers <= {reduce.MOS, reduce.SEQ_LOSS} and reducers:
        return Measure(label or ("MOS" if reduce.MOS in reducers else "Lost"), "", 1.0)
    return Measure(f"{label[:1].upper()}{label[1:]}" or LABELS.get(units[0], "Value"), unit, divisor)


def scaled(series: Series, divisor: float) -> Series:
    if divisor == 1.0:
        return series
    return replace(
        series, y=series.y / divisor, low=None if series.low is None else series.low / divisor,
        high=None if series.high is None else series.high / divisor,
    )  # fmt: skip


def common_bands(runs: Sequence[Run]) -> tuple[Band, ...]:
    first = bands(runs[0]) if runs else ()
    return first if all(bands(run) == first for run in runs) else ()


def position_axis(names: Sequence[str]) -> Axis:
    return Axis("", "", zero=False, names=tuple(names))


# ---------------------------------------------------------------------------------------------------- shared by all kinds


def alike(items: Sequence[Item]) -> list[list[Item]]:
    """The items of the same pick and label, of several runs, together."""
    parts: dict[tuple[int, str], list[Item]] = {}
    for item in items:
        parts.setdefault((item.place, item.label), []).append(item)
    return list(parts.values())


def group_label(group: Group, item: Item, chosen: Selection, *, alone: bool, single: bool) -> str:
    """The label of a group's series: the series if the group is `alone`, the group if it has a `single` series, or both."""
    text = group.label if chosen.options.count else group.name
    return item.label if alone or not text else text if single else f"{text}: {item.label}"


def label_of(item: Item, chosen: Selection, numbers: Sequence[int], picks: int) -> str:
    """The series, the run, or both, whichever tells it from the others."""
    if len(numbers) == 1:
        return item.label
    return chosen.labels[item.number] if picks == 1 else f"{chosen.labels[item.number]}: {item.label}"


def measures(spec: Spec, items: Sequence[Item], columns: Sequence[Floats]) -> tuple[Measure, Measure | None]:
    """The measures of the two axes. `columns`: what is drawn of each item."""
    left = [column for item, column in zip(items, columns, strict=True) if item.pick.axis == 1]
    right = [column for item, column in zip(items, columns, strict=True) if item.pick.axis == 2]
    if not left:  # only series of the right axis are there: it becomes the left one
        return measure(items, 2, spec.y2, right), None
    return measure(items, 1, spec.y, left), measure(items, 2, spec.y2, right) if right else None


def axis_of(found: Measure) -> Axis:
    return Axis(found.label, found.unit)


def placed(item: Item, axes: tuple[Measure, Measure | None]) -> tuple[int, Measure]:
    first, second = axes
    return (2, second) if item.pick.axis == 2 and second is not None else (1, first)


def all_items(spec: Spec, chosen: Selection, numbers: Sequence[int]) -> list[Item]:
    return [item for number in numbers for item in chosen.items(spec, number)]


def title_of(spec: Spec) -> str:
    return spec.summary[:1].upper() + spec.summary[1:]
