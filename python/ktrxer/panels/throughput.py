# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of throughput: rates in windows, and sums where all flows have samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, Floats, Panel, Series
from ktrxer.panels.parts import BITS, MANY, S, count_of, key_of, label_of, panel_over_time, unit_of, values, wish_of
from ktrxer.statistics.throughput import Windows, bytes_rate, edges, gap_ns, receiver_end, sum_of_flows
from ktrxer.store import Run
from ktrxer.store import Series as Stored

WINDOW_NS = 200_000_000  # window of rates, unless the samples are further apart
MOST_WINDOWS = 20_000
ROUND_NS = 10_000_000  # windows are multiples of it

DIRECTIONS = {"up": "Upload", "down": "Download"}


@dataclass(frozen=True)
class Flows:
    """The flows of one direction in common windows."""

    series: list[Stored]
    windows: list[Windows]
    sender: int  # number of flows with counts of the sending end only

    @property
    def total(self) -> Windows:
        return sum_of_flows(self.windows)


def interval_of(t_ns: NDArray[Any]) -> int:
    """The usual time between two samples."""
    return int(np.median(np.diff(t_ns))) if len(t_ns) > 1 else 0


def flows(run: Run, direction: str, window_ns: int = WINDOW_NS) -> Flows | None:
    stored = [series for kind in ("bytes", "udp") for series in run.meta.of_kind(kind) if series.direction == direction]
    counted: list[tuple[Stored, NDArray[Any], NDArray[Any]]] = []
    sender = 0
    for series in stored:
        arrays = run.arrays(series)
        end = receiver_end(direction)
        there = arrays["end"] == end
        if not there.any() and len(there):
            there = ~there
            sender += 1
        counted.append((series, arrays["t_ns"][there], arrays["bytes"][there]))
    times = [t for _, t, _ in counted if len(t) > 1]
    if not times:
        return None
    interval = max(interval_of(t) for t in times)
    first, last = min(int(t[0]) for t in times), max(int(t[-1]) for t in times)
    window = max(window_ns, interval, (last - first) // MOST_WINDOWS)
    window = round(window / ROUND_NS) * ROUND_NS
    # Windows begin with the load, so that the windows of both directions and of other runs are aligned.
    load = run.meta.phase("load")
    start = load.from_ns if load is not None else first
    start -= -(-(start - first) // window) * window if first < start else 0
    cuts = edges(start, last + window, window)
    gap = gap_ns(interval)  # the same limit as in the verdict and the summary
    return Flows([series for series, _, _ in counted], [bytes_rate(t, c, cuts, gap_ns=gap) for _, t, c in counted], sender)


def _steps(windows: Windows, scale: float) -> tuple[Floats, Floats]:
    """Edges and values. The last value occurs twice, because the second one ends the last step. Windows before the first and after the last
    sample are left out."""
    rate = windows.rate_bps() / scale
    known = np.nonzero(~np.isnan(rate))[0]
    if not len(known):
        return np.empty(0), np.empty(0)
    a, b = int(known[0]), int(known[-1]) + 1
    return windows.edges_ns[a : b + 1] / S, np.append(rate[a:b], rate[b - 1])


def throughput(run: Run, direction: str) -> Panel | None:
    found = flows(run, direction)
    if found is None:
        return imported_rates(run, direction)
    total = found.total
    several = len(found.series) > 1
    scale, unit = unit_of([w.rate_bps() for w in ([total] if several else []) + found.windows], BITS)
    drawn = _each(found, scale) if len(found.series) <= MANY else [_spread(found, scale)]
    if several:
        x, y = _steps(total, scale)
        label = f"sum of {len(found.series)}"
        drawn.append(Series(f"{direction} sum", label, "step", x, y, palette.INK, width=1.8, hint="bytes of all flows"))
    title, notes = f"{DIRECTIONS[direction]} throughput", _coverage_notes(found, total)
    return panel_over_time(run, f"throughput-{direction}", title, Axis("Throughput", unit), drawn, notes)


def _each(found: Flows, scale: float) -> list[Series]:
    looks = palette.looks([wish_of(series) for series in found.series])
    drawn = []
    for series, windows, (color, dash) in zip(found.series, found.windows, looks, strict=True):
        x, y = _steps(windows, scale)
        drawn.append(Series(key_of(series), label_of(series), "step", x, y, color, dash, hint=series.name))
    return drawn


def rates(run: Run, direction: str) -> Panel | None:
    """Each flow, however many, without sums."""
    found = flows(run, direction)
    if found is None:
        return imported_rates(run, direction)
    title = f"{DIRECTIONS[direction]} rates"
    return panel_over_time(run, f"rates-{direction}", title, Axis("Throughput", "Mbit/s"), _each(found, 1e6))


def _spread(found: Flows, scale: float) -> Series:
    """The mean of many flows, with a band from the slowest to the fastest."""
    rates = np.stack([windows.rate_bps() / scale for windows in found.windows])
    known = ~np.isnan(rates)
    some = known.any(axis=0)
    cuts = found.windows[0].edges_ns / S
    mean, low, high = (np.full(rates.shape[1], np.nan) for _ in range(3))
    mean[some] = np.nanmean(rates[:, some], axis=0)
    low[some], high[some] = np.nanmin(rates[:, some], axis=0), np.nanmax(rates[:, some], axis=0)
    y, low, high = (np.append(values, values[-1:]) for values in (mean, low, high))
    label = f"mean of {len(found.series)}, band: slowest to fastest"
    return Series("mean of flows", label, "step", cuts, y, palette.FIRST, low=low, high=high)


def _coverage_notes(found: Flows, total: Windows) -> tuple[str, ...]:
    width = int(total.edges_ns[1] - total.edges_ns[0]) / 1e6 if len(total.edges_ns) > 1 else 0
    end = "sending" if found.sender == len(found.series) else "receiving"
    notes = [
        f"Bytes that arrived in order at the {end} end, in windows of {width:g} ms. After a retransmission a window also counts "
        "the bytes that waited for the lost segment, so its rate may exceed the rate of the link."
        if end == "receiving"
        else f"Bytes that the sending end counted, in windows of {width:g} ms: there are no counts of the receiving end."
    ]
    if 0 < found.sender < len(found.series):
        notes.append(f"{count_of(found.sender, 'flow')} of {len(found.series)} have counts of the sending end only.")
    if len(found.series) > 1:
        # The share covers the time from the beginning of the first flow to the end of the last one.
        seen = np.stack([windows.coverage > 0 for windows in found.windows]).any(axis=0)
        inside = np.nonzero(seen)[0]
        missing = int(np.isnan(total.bytes[inside[0] : inside[-1] + 1]).sum()) if len(inside) else 0
        edge = int(len(inside) > 0 and np.isnan(total.bytes[inside[0]])) + int(len(inside) > 1 and np.isnan(total.bytes[inside[-1]]))
        if missing > edge:
            share = 100 * (1 - missing / (inside[-1] + 1 - inside[0]))
            notes.append(
                f"The sum is drawn only where all {len(found.series)} flows have samples: {share:.1f} % of the time between the first byte "
                "and the last."
            )
    empty = [label_of(series) for series, windows in zip(found.series, found.windows, strict=True) if np.isnan(windows.bytes).all()]
    if empty:
        notes.append(f"Without any samples: {', '.join(empty[:8])}{' and more' if len(empty) > 8 else ''}.")
    return tuple(notes)


def imported_rates(run: Run, direction: str) -> Panel | None:
    """Rates that another tool has stored. They are drawn unchanged and not added up."""
    found = [
        series
        for series in run.meta.of_kind("value")
        if "bit/s" in series.unit
        and (series.direction == direction or (series.direction is None and f"{direction}load" in series.name.lower()))
    ]
    if not found:
        return None
    panel = values(run, f"throughput-{direction}", f"{DIRECTIONS[direction]} throughput", found, "Throughput")
    note = "Rates from the imported file. They are not counts of bytes, so no sum is drawn."
    return replace(panel, notes=(note, *panel.notes)) if panel is not None else None


def totals(run: Run) -> Panel | None:
    """The sum of each direction."""
    parts = {direction: flows(run, direction) for direction in ("down", "up")}
    there = {direction: found.total for direction, found in parts.items() if found is not None}
    if not there:
        return None
    scale, unit = unit_of([total.rate_bps() for total in there.values()], BITS)
    drawn = []
    for direction, total in there.items():
        x, y = _steps(total, scale)
        count = len(parts[direction].series)  # type: ignore[union-attr]
        label = f"{DIRECTIONS[direction].lower()}, sum of {count_of(count, 'flow')}"
        drawn.append(Series(f"{direction} sum", label, "step", x, y, palette.DIRECTIONS[direction], width=1.6))
    return panel_over_time(run, "totals", "Total throughput", Axis("Throughput", unit), drawn)
