# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by all panels: units, labels, the shading of the phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, Band, EventRow, Panel, Series
from ktrxer.store import Run
from ktrxer.store import Series as Stored

S = 1e9
MANY = 24  # the most flows that are drawn one by one; of more, the sum, the mean and the range


def bands(run: Run) -> tuple[Band, ...]:
    names = {"idle_before": "idle", "load": "load", "drain": "drain", "idle_after": "idle"}
    return tuple(
        Band(phase.from_ns / S, phase.to_ns / S, names[phase.name], "load" if phase.name == "load" else "idle") for phase in run.meta.phases
    )


def time_axis() -> Axis:
    return Axis("Time", "s", zero=False)


def panel_over_time(
    run: Run, key: str, title: str, y: Axis, drawn: Sequence[Series], notes: Sequence[str] = (), event_rows: Sequence[EventRow] = ()
) -> Panel:
    return Panel(key, title, time_axis(), y, tuple(drawn), bands=bands(run), notes=tuple(notes), event_rows=tuple(event_rows))


def label_of(series: Stored) -> str:
    """The series' name without the name of its group, which the panel's title contains."""
    group = series.group or ""
    rest = series.name.removeprefix(group).strip(" :") if group else ""
    if rest.lower() in ("upload", "download"):  # of a recipe's own group, as `late upload` of `late`: the title has this word
        rest = ""
    return f"flow {rest}" if rest.isdigit() else rest or series.name


def key_of(series: Stored) -> str:
    return series.name


def wish_of(series: Stored) -> str | None:
    return series.klass or ("ICMP" if "ICMP" in series.name else None)


def unit_of(values: Sequence[NDArray[Any]], steps: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit in which the maximum is at least one; `steps` are (size, name), the smallest first."""
    tops = [float(np.nanmax(np.abs(v))) for v in values if len(v) and not np.isnan(v).all()]
    top = max(tops, default=0.0)
    return next((step for step in reversed(steps) if top >= step[0]), steps[0])


BITS = ((1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"))
DELAYS = ((1e3, "µs"), (1e6, "ms"), (1e9, "s"))  # in nanoseconds
BYTES = ((1.0, "byte"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))

# The units of a quantity, with their sizes in its base unit, in which runs are compared.
UNITS: dict[str, dict[str, float]] = {
    "ms": {"µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3},
    "Mbit/s": {"bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1.0, "Mbits/s": 1.0, "Gbit/s": 1e3},
    "byte": {"byte": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
}
# The units that an axis shows, the smallest first.
SHOWN = {"ms": ("µs", "ms", "s"), "Mbit/s": ("kbit/s", "Mbit/s", "Gbit/s"), "byte": ("byte", "kB", "MB", "GB")}


def base_of(unit: str) -> tuple[str, float]:
    """The base unit of the same quantity, and the size of the unit in it."""
    return next(((base, sizes[unit]) for base, sizes in UNITS.items() if unit in sizes), (unit, 1.0))


def ratio(one: str, other: str) -> float:
    """The size of the first unit in the second one; 1 for units of different quantities."""
    (base, size), (same, other_size) = base_of(one), base_of(other)
    return size / other_size if base == same else 1.0


def count_of(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def values_of(run: Run, series: Stored) -> Panel | None:
    return values(run, "value", series.name, [series], "Value")


def values(run: Run, key: str, title: str, found: Sequence[Stored], label: str) -> Panel | None:
    """A panel of values of one unit."""
    drawn = []
    found = [series for series in found if len(run.arrays(series)["t_ns"])]
    for series, (color, dash) in zip(found[:MANY], palette.looks([wish_of(s) for s in found[:MANY]]), strict=True):
        arrays = run.arrays(series)
        y = arrays["value"]
        if series.count:
            y = y - y[0]  # a count since the start of a host would hide the run
        drawn.append(Series(key_of(series), label_of(series), "line", arrays["t_ns"] / S, y, color, dash, hint=series.name))
    if not drawn:
        return None
    notes = (f"The first {MANY} of {len(found)} series.",) if len(found) > MANY else ()
    if any(series.count for series in found[:MANY]):
        notes = ("Counts: their growth since their first sample of the run.", *notes)
    return panel_over_time(run, key, title, Axis(label, found[0].unit), drawn, notes)
