# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of probes: round trips, one-way delays with their uncertainty, distributions, lateness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, EventRow, Floats, Panel, Series
from ktrxer.panels.parts import DELAYS, S, count_of, key_of, label_of, panel_over_time, unit_of, values, wish_of
from ktrxer.panels.shapes import CDF_POINTS, cdf
from ktrxer.store import Run
from ktrxer.store import Series as Stored
from ktrxer.store.columns import ANSWERED, FAILED, LOST, LOST_DOWN, LOST_UP, SKIPPED
from ktrxer.units import share

SILENT_S, SILENT_STEPS = 2.0, 10  # a longer time, and of more usual steps, without a probe of an imported run is a gap
DASHES_OF_LOAD = "Solid: under load. Dotted: idle, before the load."  # not where several runs are drawn: there a dash is a series


def latencies(run: Run) -> list[Stored]:
    return [series for series in run.meta.of_kind("latency") if len(run.arrays(series)["t_ns"])]


def looks_of(found: Sequence[Stored]) -> list[palette.Look]:
    return palette.looks([wish_of(series) for series in found])


def probes_of(found: Sequence[Stored], run: Run, column: str) -> list[tuple[Stored, dict[str, Any], Floats]]:
    """Series with values in that column, and the values; NaN for a probe without an answer."""
    made = []
    for series in found:
        arrays = run.arrays(series)
        value = np.where(arrays["state"] == ANSWERED, arrays[column], np.nan)
        if not np.isnan(value).all():
            made.append((series, arrays, value))
    return made


def broken(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A line with a gap where an imported tool was silent: it was stopped by a lost packet, and sent no probe."""
    steps = np.diff(x)
    after = np.flatnonzero(steps > max(SILENT_S, SILENT_STEPS * float(np.median(steps)))) if len(steps) else np.empty(0, np.int64)
    return np.insert(x, after + 1, (x[after] + x[after + 1]) / 2), np.insert(y, after + 1, np.nan)


def latency(run: Run) -> Panel | None:
    probes = probes_of(latencies(run), run, "rtt_ns")
    if not probes:
        found = [series for series in run.meta.of_kind("value") if series.unit == "ms" and "ping" in series.name.lower()]
        return values(run, "latency", "Round-trip time", found, "Round trip") if found else None
    scale, unit = unit_of([value for _, _, value in probes], DELAYS)
    drawn, event_rows, notes = [], [], []
    for (series, arrays, value), (color, dash) in zip(probes, looks_of([p[0] for p in probes]), strict=True):
        lost = np.isin(arrays["state"], (LOST, LOST_UP, LOST_DOWN))
        kept = lost | (arrays["state"] == ANSWERED)
        x, y = arrays["t_ns"][kept] / S, value[kept] / scale
        if "flent" in run.meta.metadata:
            x, y = broken(x, y)
        drawn.append(Series(key_of(series), label_of(series), "line", x, y, color, dash, 1.0, hint=series.name))
        if lost.any():
            event_rows.append(EventRow(key_of(series), label_of(series), "lost", arrays["t_ns"][lost] / S, color))
        if note := _loss_note(label_of(series), arrays["state"]):
            notes.append(note)
    if event_rows:
        notes.insert(0, "Crosses above the plot: probes without an answer; the line has a gap there.")
    return panel_over_time(run, "latency", "Round-trip time", Axis("Round trip", unit), drawn, notes, event_rows)


def _loss_note(label: str, state: NDArray[Any]) -> str:
    counts = {code: int((state == code).sum()) for code in (LOST, LOST_UP, LOST_DOWN, FAILED, SKIPPED)}
    lost = counts[LOST] + counts[LOST_UP] + counts[LOST_DOWN]
    sent = int((state == ANSWERED).sum()) + lost
    parts = []
    if lost:
        ways = [f"{counts[code]} {where}" for code, where in ((LOST_UP, "up"), (LOST_DOWN, "down")) if counts[code]]
        parts.append(f"{lost:,} of {sent:,} lost ({share(lost, sent)}{': ' + ', '.join(ways) if ways else ''})")
    if counts[FAILED]:
        parts.append(f"{count_of(counts[FAILED], 'probe')} could not be sent")
    if counts[SKIPPED]:
        parts.append(f"{counts[SKIPPED]:,} skipped")
    return f"{label}: {'; '.join(parts)}." if parts else ""


def one_way(run: Run, way: str) -> Panel | None:
    """`way` is up (to the far end) or down."""
    probes = probes_of(latencies(run), run, f"{way}_ns")
    if not probes:
        return None
    scale, unit = unit_of([value for _, _, value in probes], DELAYS)
    drawn: list[Series] = []
    bounds: list[float] = []
    for (series, arrays, value), (color, dash) in zip(probes, looks_of([p[0] for p in probes]), strict=True):
        known = ~np.isnan(value) | np.isin(arrays["state"], (LOST, LOST_UP, LOST_DOWN))
        bound = arrays[f"{way}_bound_ns"][known]
        y = value[known] / scale
        low = high = None
        if not np.isnan(bound).all():
            bounds.append(float(np.nanmax(bound)))
            wide = np.where(np.isnan(bound), 0, bound) / scale
            low, high = y - wide, y + wide
        x = arrays["t_ns"][known] / S
        drawn.append(Series(key_of(series), label_of(series), "line", x, y, color, dash, 1.0, low, high, hint=series.name))
    if bounds:
        size, name = unit_of([np.asarray(bounds)], DELAYS)
        note = f"The offset between the two clocks has an uncertainty of ±{max(bounds) / size:.3g} {name}; the band shows it."
    else:
        note = "The uncertainty of the offset between the two clocks was not recorded."
    return panel_over_time(run, f"oneway-{way}", f"One-way delay {way}", Axis("One-way delay", unit), drawn, [note])


def split_by_load(run: Run, t_ns: NDArray[Any], y: Floats) -> tuple[Floats, Floats]:
    """The values before the load and those under load. In a run without phases all values are idle."""
    load, idle = run.meta.phase("load"), run.meta.phase("idle_before")
    if load is None:
        return y, np.empty(0)
    before = (t_ns < load.from_ns) if idle is None else (t_ns >= idle.from_ns) & (t_ns < idle.to_ns)
    return y[before], y[(t_ns >= load.from_ns) & (t_ns < load.to_ns)]


def latency_cdf(run: Run) -> Panel | None:
    probes = probes_of(latencies(run), run, "rtt_ns")
    parts = [(series, arrays["t_ns"], value, 1.0) for series, arrays, value in probes]
    if not parts:
        found = [series for series in run.meta.of_kind("value") if series.unit == "ms" and "ping" in series.name.lower()]
        parts = [(series, run.arrays(series)["t_ns"], run.arrays(series)["value"], 1e6) for series in found]
    whole = [value * factor for _, _, value, factor in parts]
    if not any(len(v) and not np.isnan(v).all() for v in whole):
        return None
    scale, unit = unit_of(whole, DELAYS)
    drawn = []
    thinned = False
    for (series, t_ns, _, _), value, (color, _dash) in zip(parts, whole, looks_of([p[0] for p in parts]), strict=True):
        idle, loaded = split_by_load(run, t_ns, value / scale)
        for name, some, dash in (("load", loaded, ()), ("idle", idle, (2.0, 2.0))):
            x, share, left_out = cdf(some)
            if not len(x):
                continue
            thinned |= left_out
            kind = "" if run.meta.phase("load") is None else f", {name}"
            key_of_curve = key_of(series) + ("" if name == "load" or not kind else " (idle)")
            hint = f"{series.name}{kind}: {np.count_nonzero(~np.isnan(some)):,} samples"
            look = color, dash if kind else ()
            drawn.append(Series(key_of_curve, label_of(series) + kind, "step", x, share * 100, *look, 1.5, hint=hint))
    if not drawn:
        return None
    notes = ["Lost probes have no delay and are left out."]
    if run.meta.phase("load") is not None:
        notes.insert(0, DASHES_OF_LOAD)
    if thinned:
        notes.append(f"Each curve has about {CDF_POINTS} of its points, with all extreme values.")
    x_axis, y_axis = Axis("Round trip", unit, zero=True), Axis("Share at or below", "%")
    title = "Distribution of round-trip times"
    return Panel("latency-cdf", title, x_axis, y_axis, tuple(drawn), link="", notes=tuple(notes), log="x")


def lateness(run: Run, *, limit: bool = True) -> Panel | None:
    """`limit`: with the verdict's threshold as a line."""
    probes = []
    for series in latencies(run):
        arrays = run.arrays(series)
        if not np.isnan(arrays["lateness_ns"]).all():
            probes.append((series, arrays))
    if not probes:
        return None
    # Lateness is milliseconds on a busy machine, microseconds on an idle one.
    scale, unit = unit_of([arrays["lateness_ns"] / 10 for _, arrays in probes], DELAYS[:2])
    drawn, early, furthest = [], 0, 0.0
    limits = set()
    for (series, arrays), (color, _) in zip(probes, looks_of([p[0] for p in probes]), strict=True):
        late = arrays["lateness_ns"]
        before = late < 0
        early += int(before.sum())
        furthest = max(furthest, float(-late[before].min(initial=0)))
        there = ~np.isnan(late)
        x, y = arrays["t_ns"][there] / S, late[there] / scale
        drawn.append(Series(key_of(series), label_of(series), "points", x, y, color, width=2.0, hint=series.name))
        runner = run.meta.runner_of(series)
        if runner is not None and runner.interval_ns:
            limits.add(max(runner.interval_ns / 10, 100_000))
    notes = ["The send time minus the scheduled time of each probe."]
    if limit and len(limits) == 1:
        threshold = limits.pop() / scale
        span = [s.x for s in drawn if len(s.x)]
        x = np.array([min(v[0] for v in span), max(v[-1] for v in span)])
        drawn.append(Series("limit of lateness", "threshold of late probes", "line", x, np.full(2, threshold), palette.GREY, (6, 3), 1.2))
        notes.append("More than 1 % of the probes above the line makes a run degraded, more than 10 % invalid.")
    if early:
        by = f"{furthest / scale:.3g} {unit}"
        notes.append(f"{count_of(early, 'probe')} left early, by at most {by}; a logarithmic scale cannot show them.")
    return panel_over_time(run, "lateness", "Lateness of the probes", Axis("Lateness", unit, scale="log", zero=False), drawn, notes)
