# SPDX-License-Identifier: MIT OR Apache-2.0
"""Columns for a page: numbers in base64 (a report), or behind the JSON that describes them (the explorer). Panels that show the same
column share it. web/src/arrays.ts reads them.

Times are stored as integer microseconds, finer than any screen. Values have 24 bits: as integers of three bytes where a step is at most two
millionths of their median, which is finer than any clock here; as the mantissa of a float where values differ by more.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ktrxer.panels.model import TIME, Axis, Floats, Panel, Series
from ktrxer.statistics.distribution import envelope

NOTHING = -(2**31)
TICK = 1e-6
STEPS = 2**23 - 1  # to each side of the middle; one less is a missing value
FINE = 2e-6  # of the median: the largest step


@dataclass(frozen=True)
class _Column:
    kind: str
    count: int
    base: float
    scale: float
    data: bytes

    def head(self) -> dict[str, Any]:
        return {"type": self.kind, "count": self.count, "base": self.base, "scale": self.scale}


class Pool:
    """The columns of one report, or of one answer of the explorer."""

    def __init__(self) -> None:
        self._columns: dict[_Column, int] = {}

    @property
    def packed(self) -> list[dict[str, Any]]:
        return [one.head() | {"data": base64.b64encode(one.data).decode("ascii")} for one in self._columns]

    def answer(self, data: dict[str, Any]) -> bytes:
        """The length of the JSON (32 bits, little-endian), the JSON with the list `arrays`, and the columns, each at the offset `at` from
        the end of the JSON."""
        heads, at = [], 0
        for one in self._columns:
            heads.append(one.head() | {"at": at})
            at += len(one.data)
        text = json.dumps(data | {"arrays": heads}, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
        return b"".join([len(text).to_bytes(4, "little"), text, *(one.data for one in self._columns)])

    def times(self, values: Floats) -> int:
        """Store times in seconds with a resolution of 1 us, or of 2^-31 of the span if that is longer than half an hour."""
        finite = np.abs(values) < 1e12  # thirty thousand years; a larger value is not a time
        base = float(values[finite].min()) if finite.any() else 0.0
        span = float(values[finite].max()) - base if finite.any() else 0.0
        scale = max(TICK, span / (2**31 - 2))
        raw = np.full(len(values), NOTHING, np.int64)
        raw[finite] = np.rint((values[finite] - base) / scale)
        return self._put("i32", raw.astype("<i4"), base, scale)

    def values(self, values: Floats) -> int:
        given = np.asarray(values, np.float64)
        there = given[~np.isnan(given)]
        if len(there) and np.abs(there).max() < 1e30:
            low, high = float(there.min()), float(there.max())
            middle, step = (low + high) / 2, (high - low) / (2 * STEPS)
            if 0 < step <= FINE * float(np.median(np.abs(there))):
                steps = np.full(len(given), -STEPS - 1, np.int64)
                steps[~np.isnan(given)] = np.rint((there - middle) / step)
                return self._put("i24", steps.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3], middle, step)
        with np.errstate(over="ignore"):
            raw = given.astype("<f4")
        if np.isinf(raw).any():  # beyond the range of a float: keep doubles
            return self._put("f64", np.asarray(values).astype("<f8"), 0.0, 1.0)
        return self._put("f32", raw, 0.0, 1.0)

    def _put(self, kind: str, raw: np.ndarray[Any, Any], base: float, scale: float) -> int:
        return self._columns.setdefault(_Column(kind, len(raw), base, scale, raw.tobytes()), len(self._columns))


def panel(one: Panel, pool: Pool, most: int, window: tuple[float, float] | None = None) -> dict[str, Any]:
    """A panel in the format of web/src/data.ts. A series of more than `most` samples is thinned, and a note of the panel says so. With
    `window`, a series over time has only the samples in it, and the one before and behind it."""
    series: list[dict[str, Any]] = []
    cut: list[tuple[str, int, int]] = []  # label, samples drawn, all samples
    for item in one.series:
        item = _within(item, *window) if window is not None and one.link == TIME else item
        thinned = _thinned(item, most)
        if len(thinned.x) < len(item.x):
            cut.append((item.label, len(thinned.x), len(item.x)))
        series.append(_series(thinned, pool, _lost(one, item.key, most), time=one.link == "time"))
    return {
        "key": one.key,
        "title": one.title,
        "x": _axis(one.x),
        "y": _axis(one.y),
        "y2": None if one.y2 is None else _axis(one.y2),
        "link": one.link,
        "log": one.log,
        "bands": [{"from": band.start, "to": band.end, "label": band.label, "kind": band.kind} for band in one.bands],
        "series": series,
        "rows": [
            {"label": row.label, "kind": row.kind, "color": row.color, "x": pool.times(row.x)}
            for row in one.event_rows
            if row.kind != "lost"
        ],
        "notes": [*one.notes, *_cut(cut, most)],
        "folded": one.folded,
        "legend": one.legend,
    }


def _cut(cut: list[tuple[str, int, int]], most: int) -> list[str]:
    """One line for all of them: of sixty series, sixty lines would hide the other notes."""
    if not cut:
        return []
    label, drawn, samples = max(cut, key=lambda one: one[2])
    extremes = f"the minimum and the maximum of each {max(1, 2 * samples // most)} samples"
    if len(cut) == 1:
        return [f"{label}: drawn with {drawn:,} of its {samples:,} samples, {extremes}."]
    return [f"{len(cut)} series: the longest, {label}, is drawn with {drawn:,} of its {samples:,} samples, {extremes}."]


def _axis(axis: Axis) -> dict[str, Any]:
    made = {"label": axis.label, "unit": axis.unit, "scale": axis.scale, "zero": axis.zero, "names": list(axis.names)}
    return made | {"most": _finite(axis.most), "least": _finite(axis.least)}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _within(series: Series, start: float, end: float) -> Series:
    """NaN and values in no order of time: all samples, because a page sorts them."""
    x = series.x
    if series.style not in ("line", "points", "step") or len(x) < 2 or not (np.diff(x) >= 0).all():
        return series
    at = slice(max(0, int(np.searchsorted(x, start)) - 1), int(np.searchsorted(x, end, "right")) + 1)
    return _taken(series, at)


def _taken(series: Series, at: Any) -> Series:
    return replace(
        series, x=series.x[at], y=series.y[at],
        low=None if series.low is None else series.low[at], high=None if series.high is None else series.high[at],
    )  # fmt: skip


def _thinned(series: Series, most: int) -> Series:
    if most <= 0 or len(series.x) <= most or series.style not in ("line", "points"):
        return series
    columns = [column for column in (series.y, series.low, series.high) if column is not None]
    return _taken(series, np.unique(np.concatenate([envelope(column, most // len(columns)) for column in columns])))


def _lost(panel: Panel, key: str, most: int) -> Floats | None:
    """The times of the lost probes of a series. Of more than `most`, the first in each of `most` equal parts of the time."""
    for row in panel.event_rows:
        if row.key == key and row.kind == "lost":
            if most <= 0 or len(row.x) <= most:
                return row.x
            parts = np.floor((row.x - row.x.min()) / max(float(np.ptp(row.x)), 1e-9) * (most - 1))
            return np.asarray(row.x[np.unique(parts, return_index=True)[1]])
    return None


def _series(one: Series, pool: Pool, lost: Floats | None, *, time: bool) -> dict[str, Any]:
    column = pool.times if time else pool.values
    return {
        "key": one.key,
        "label": one.label,
        "style": one.style,
        "color": one.color,
        "dash": list(one.dash),
        "width": one.width,
        "x": column(one.x),
        "y": pool.values(one.y),
        "low": None if one.low is None else pool.values(one.low),
        "high": None if one.high is None else pool.values(one.high),
        "z": None if one.z is None else pool.values(one.z.ravel()),
        "axis": one.axis,
        "lost": None if lost is None else column(lost),
        "hidden": one.hidden,
        "hint": one.hint,
    }
