# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts the panels of a report in the order of their importance for this run, and folds panels without news. Delays that differ a
hundredfold get a logarithmic axis, the same series has the same colour everywhere, and a note names series that lie on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ktrxer.panels import palette, plots
from ktrxer.panels.build import build
from ktrxer.panels.headline import Headline, three
from ktrxer.panels.makers import others
from ktrxer.panels.model import TIME, Floats, Panel, Series
from ktrxer.panels.parts import ratio
from ktrxer.panels.shapes import LARGEST
from ktrxer.store import Run
from ktrxer.summary import where
from ktrxer.units import delay

BUSY = 90.0  # percent of the processors: more is no calm run
LOG_RATIO = 100.0
DELAYS = ("latency", "oneway-up", "oneway-down", "host-queues", "tcp-rtt")
SMALL_MS = 1.0
SAME, NEARLY_ALL = 0.02, 0.95  # of the axis, of the time: series that differ by less for so long coincide
WINDOWS = 100

ORDER = (
    "latency", "throughput-down", "throughput-up", "oneway-up", "oneway-down", "latency-cdf", "host-queues", "drops", "queue", "lateness",
    "cwnd", "tcp-rtt", "retransmits", "host",
)  # fmt: skip
_FIRST = {
    where.UP: ("latency", "oneway-up", "throughput-up", "queue"),
    where.DOWN: ("latency", "oneway-down", "throughput-down", "queue"),
    where.OWN: ("latency", "host-queues", "queue", "throughput-up"),
    where.FAR: ("latency", "host-queues", "queue", "throughput-down"),
}


def report_panels(run: Run, found: Headline) -> list[Panel]:
    """The panels have the order of their importance for this run."""
    own = plots.of_recipe(run)
    made = [*plots.panels_of(run, plots.REPORT), *(panel for name in own for panel in build(name, own, [run])[0]), *others(run)]
    return arrange(made, found)


def arrange(panels: Sequence[Panel], found: Headline) -> list[Panel]:
    """All panels, those without news at the end."""
    made = [replace(axis_of_delays(panel), folded=no_news(panel, found)) for panel in panels]
    first = _first(found)
    order = [*first, *(key for key in ORDER if key not in first)]

    def place(panel: Panel) -> tuple[bool, int]:
        return bool(panel.folded), order.index(panel.key) if panel.key in order else len(order)

    return [coincident(panel) for panel in same_colours(sorted(made, key=place))]


def _first(found: Headline) -> tuple[str, ...]:
    if found.kind == "invalid":
        return ("lateness", "host", "latency")
    if found.kind == "loss":
        return ("latency", "drops", "retransmits")
    first = _FIRST.get(found.place or "", ("latency",))
    return (*first, "drops", "retransmits") if found.lossy else first


# -------------------------------------------------------------------------------------------------------------------- news


def no_news(panel: Panel, found: Headline) -> str:
    """The reason why a reader does not need the panel; "" if the reader needs it."""
    values = _together(panel)
    if not len(values):
        return ""
    key, top = panel.key, float(values.max())
    if key == "lateness":
        limit = next((float(one.y[0]) for one in panel.series if one.style == "line"), None)
        return "No probe was later than the threshold." if limit is not None and top <= limit and found.kind != "invalid" else ""
    if key == "host-queues" and found.place not in (where.OWN, where.FAR):
        high = float(np.quantile(values, 0.99)) * ratio(panel.y.unit, "ms")
        return f"p99 is {delay(high)}: these queues add almost nothing." if high < SMALL_MS else ""
    if key == "drops":
        return "The queues dropped and marked no packet." if top == 0 else ""
    if key == "queue":
        return "The queues were empty at all samples." if top == 0 else ""
    if key == "retransmits":
        again = sum(float(np.nanmax(one.y) - np.nanmin(one.y)) for one in panel.series if one.samples)
        return "No segment was sent again." if again == 0 else ""
    if key == "host":
        return f"The processors were at most {three(top)} % busy." if top <= BUSY and found.kind != "invalid" else ""
    if key in ("oneway-up", "oneway-down"):
        change = _change(panel)
        small = change is not None and abs(change) < max(SMALL_MS, 0.1 * found.added_ms)
        return f"The delay {key[7:]} changes by {delay(abs(change))} under load." if small and change is not None else ""
    if key == "cwnd":
        return "" if found.lossy or found.kind == "loss" else "The state of the flows."
    if key == "tcp-rtt":
        return "The flows' own estimate of the delay; the probes measure it." if found.kind in ("added", "little", "none") else ""
    return ""


def _together(panel: Panel) -> Floats:
    there = [one.y[np.isfinite(one.y)] for one in panel.series]
    return np.concatenate([np.empty(0), *there])


def _phases(panel: Panel) -> tuple[Floats, Floats]:
    """The values of all series before the load, and under load."""
    load = next((band for band in panel.bands if band.kind == "load"), None)
    idle, loaded = [np.empty(0)], [np.empty(0)]
    for one in panel.series if load is not None else ():
        there = np.isfinite(one.y)
        if load is not None and one.style in ("line", "points"):
            idle.append(one.y[there & (one.x < load.start)])
            loaded.append(one.y[there & (one.x >= load.start) & (one.x < load.end)])
    return np.concatenate(idle), np.concatenate(loaded)


def _change(panel: Panel) -> float | None:
    """The milliseconds that the load adds to the median."""
    idle, loaded = _phases(panel)
    return float(np.median(loaded) - np.median(idle)) * ratio(panel.y.unit, "ms") if len(idle) and len(loaded) else None


# -------------------------------------------------------------------------------------------------------------------- axes


def axis_of_delays(panel: Panel) -> Panel:
    """A logarithmic axis where the median under load is a hundred times the idle one: on a linear axis the idle path would be a line at
    zero."""
    if panel.key not in DELAYS or panel.y.scale == "log":
        return panel
    idle, loaded = _phases(panel)
    idle, loaded = idle[idle > 0], loaded[loaded > 0]
    if not len(idle) or not len(loaded) or np.median(loaded) < LOG_RATIO * np.median(idle):
        return panel
    ratio = float(np.median(loaded) / np.median(idle))
    note = f"The axis is logarithmic, because the delay under load is {ratio:,.0f} times that of the idle path."
    return replace(panel, y=replace(panel.y, scale="log", zero=False), notes=(note, *panel.notes))


# ----------------------------------------------------------------------------------------------------------------- colours


def same_colours(panels: Sequence[Panel]) -> list[Panel]:
    """The colour and dash that a series has in the first panel that shows it, in all further ones. Where two series of a panel would then
    look the same, the later one keeps the colour and gets the next dash."""
    known: dict[str, palette.Look] = {}
    made = []
    for panel in panels:
        taken: set[palette.Look] = set()
        drawn: list[Series] = []
        colors: dict[str, int] = {}
        for one in panel.series:
            look = known[one.key] = palette.free(known.get(one.key, (one.color, one.dash)), taken)
            colors[one.key] = look[0]
            drawn.append(replace(one, color=look[0], dash=look[1]))
        event_rows = tuple(replace(row, color=colors.get(row.key, row.color)) for row in panel.event_rows)
        made.append(replace(panel, series=tuple(drawn), event_rows=event_rows))
    return made


# -------------------------------------------------------------------------------------------------------------- coincidence


def coincident(panel: Panel) -> Panel:
    """Adds a note about series that lie on each other in the whole panel: the one drawn last hides the others."""
    if panel.link != TIME or len(panel.series) < 2:
        return panel
    groups = _coinciding([one for one in panel.series if one.style in ("line", "step") and one.key != "limit of lateness"])
    if not groups:
        return panel
    names = [", ".join(one.label for one in group) for group in groups]
    so = f"for {100 * NEARLY_ALL:g} % of the time they differ by less than {100 * SAME:g} % of the axis"
    notes = [f"{name} coincide: {so}." for name in names]
    return replace(panel, notes=(*panel.notes, *notes))


def _coinciding(drawn: Sequence[Series]) -> list[list[Series]]:
    spans = [(float(one.x[0]), float(one.x[-1])) for one in drawn if len(one.x) > 1 and one.samples]
    drawn = [one for one in drawn if len(one.x) > 1 and one.samples]
    if len(drawn) < 2:
        return []
    start, end = min(a for a, _ in spans), max(b for _, b in spans)
    if not end > start:
        return []
    rows = np.stack([_means(one, start, end) for one in drawn])
    known = rows[np.abs(rows) < LARGEST]
    whole = float(known.max() - min(0.0, float(known.min()))) if len(known) else 0.0
    if whole <= 0:
        return []
    groups: list[list[int]] = []
    for i in range(len(drawn)):
        for group in groups:
            first = rows[group[0]]
            both = np.isfinite(first) & np.isfinite(rows[i])
            same = np.isfinite(first) == np.isfinite(rows[i])
            if both.any() and same.mean() >= NEARLY_ALL and (np.abs(first - rows[i])[both] <= SAME * whole).mean() >= NEARLY_ALL:
                group.append(i)
                break
        else:
            groups.append([i])
    return [[drawn[i] for i in group] for group in groups if len(group) > 1]


def _means(one: Series, start: float, end: float) -> Floats:
    """The mean of each of WINDOWS windows; of a step series at their middles."""
    if one.style == "step":
        at = start + (np.arange(WINDOWS) + 0.5) * (end - start) / WINDOWS
        place = np.searchsorted(one.x, at, "right") - 1
        inside = (place >= 0) & (place < len(one.x) - 1)
        return np.where(inside, one.y[np.clip(place, 0, len(one.y) - 1)], np.nan)
    there = np.isfinite(one.y) & np.isfinite(one.x)
    number = np.clip(((one.x[there] - start) / (end - start) * WINDOWS).astype(np.int64), 0, WINDOWS - 1)
    count = np.bincount(number, minlength=WINDOWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(number, one.y[there], WINDOWS) / np.where(count > 0, count, np.nan))
