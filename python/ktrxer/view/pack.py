# SPDX-License-Identifier: MIT OR Apache-2.0
"""Columns for a page: numbers in base64. Panels that show the same column share it. web/src/arrays.ts reads them.

Times are stored as integer microseconds, finer than any screen. Values keep 24 bits of mantissa: a precision of 1e-7, finer than any clock
here.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ktrxer.estimate.distribution import envelope
from ktrxer.panels.model import Axis, Floats, Panel, Series

NOTHING = -(2**31)
TICK = 1e-6


class Pool:
    """The columns of one report."""

    def __init__(self) -> None:
        self.packed: list[dict[str, Any]] = []
        self._known: dict[tuple[str, float, float, int, bytes], int] = {}

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
        with np.errstate(over="ignore"):
            raw = np.asarray(values, np.float64).astype("<f4")
        if np.isinf(raw).any():  # beyond the range of a float: keep doubles
            return self._put("f64", np.asarray(values).astype("<f8"), 0.0, 1.0)
        return self._put("f32", raw, 0.0, 1.0)

    def _put(self, kind: str, raw: np.ndarray[Any, Any], base: float, scale: float) -> int:
        data = raw.tobytes()
        key = (kind, base, scale, len(raw), data)
        if key not in self._known:
            self._known[key] = len(self.packed)
            self.packed.append(
                {"type": kind, "count": len(raw), "base": base, "scale": scale, "data": base64.b64encode(data).decode("ascii")}
            )
        return self._known[key]


def panel(one: Panel, pool: Pool, most: int) -> dict[str, Any]:
    """A panel in the format of web/src/data.ts. A series of more than `most` samples is thinned, and a note of the panel says so."""
    series, notes = [], list(one.notes)
    for item in one.series:
        thinned = _thinned(item, most)
        if len(thinned.x) < len(item.x):
            notes.append(
                f"{item.label}: drawn with {len(thinned.x):,} of its {len(item.x):,} samples, the minimum and the maximum of each "
                f"{max(1, 2 * len(item.x) // most)} samples."
            )
        series.append(_series(thinned, pool, _lost(one, item.key, most), time=one.link == "time"))
    return {
        "key": one.key,
        "title": one.title,
        "x": _axis(one.x),
        "y": _axis(one.y),
        "link": one.link,
        "log": one.log,
        "bands": [{"from": band.start, "to": band.end, "label": band.label, "kind": band.kind} for band in one.bands],
        "series": series,
        "notes": notes,
        "folded": one.folded,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {"label": axis.label, "unit": axis.unit, "scale": axis.scale, "zero": axis.zero, "most": axis.most, "names": list(axis.names)}


def _thinned(series: Series, most: int) -> Series:
    if most <= 0 or len(series.x) <= most or series.style not in ("line", "points"):
        return series
    at = envelope(series.y, most)
    from dataclasses import replace

    return replace(
        series,
        x=series.x[at],
        y=series.y[at],
        low=None if series.low is None else series.low[at],
        high=None if series.high is None else series.high[at],
    )


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
        "lost": None if lost is None else column(lost),
        "hidden": one.hidden,
        "hint": one.hint,
    }
