# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rows of an imported run, column by column, and the numbers of Flent's points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ktrxer.flent.document import Point, finite, show
from ktrxer.flent.errors import FlentError
from ktrxer.store import Series, limits

DAY_S = 86400.0

Columns = dict[str, list[Any]]


@dataclass
class Tables:
    """Rows of each kind, column by column, and their series."""

    t0_s: float
    series: list[Series] = field(default_factory=list)
    columns: dict[str, Columns] = field(default_factory=dict)
    dropped: int = 0  # samples whose time is outside of this run
    last_s: float = 0.0
    interval_s: dict[str, float] = field(default_factory=dict)  # of a flow's samples: a much longer time between two is a gap
    flow_span: tuple[float, float] | None = None  # from the first flow's begin to the last one's end
    probe_times: dict[str, list[float]] = field(default_factory=dict)  # sorted, by series; lost probes are among them

    def add(self, series: Series, rows: Columns) -> bool:
        """Add rows with `t_s`, seconds since the run's zero; rows with an impossible time are left out. False: none is left."""
        times = rows.pop("t_s")
        bound = limits.SPAN_NS / 1e9 - DAY_S
        keep = [i for i, t in enumerate(times) if t is not None and -bound < t < bound]
        if len(keep) < len(times):
            self.dropped += len(times) - len(keep)
            times = [times[i] for i in keep]
            rows = {name: [values[i] for i in keep] for name, values in rows.items()}
        if not times:
            return False
        series.id = len(self.series)
        self.series.append(series)
        self.last_s = max(self.last_s, max(times))
        if series.kind == "latency":
            self.probe_times[series.name] = sorted(times)
        if series.kind == "bytes":
            first, last = self.flow_span or (math.inf, -math.inf)
            self.flow_span = min(first, min(times)), max(last, max(times))
        into = self.columns.setdefault(series.kind, {"series": [], "t_ns": []})
        into["series"].extend([series.id] * len(times))
        into["t_ns"].extend([round(t * 1e9) for t in times])
        for name, values in rows.items():
            into.setdefault(name, []).extend(values)
        return True


def numbers(points: Iterable[Point], key: str, name: str) -> list[float | None]:
    """One number of each point, or None. FlentError for any other value."""
    values: list[Any] = [point.get(key) for point in points]
    kinds = set(map(type, values))
    if not kinds <= {int, float, type(None)}:
        bad = next(value for value in values if type(value) not in (int, float, type(None)))
        raise FlentError(f"`raw_values[{name}]`: `{key}` must be a number, found {show(bad)}")
    if kinds == {float} and math.isfinite(sum(values)):
        return values  # the usual case: no need to check each value
    if int in kinds:
        return [finite(value) for value in values]
    return [None if value is None or not math.isfinite(value) else value for value in values]


def times(points: list[Point], name: str, tables: Tables) -> list[float | None]:
    return [None if t is None else t - tables.t0_s for t in numbers(points, "t", name)]


def whole(values: list[float | None], factor: float) -> list[int | None]:
    return [None if one is None or abs(one) * factor >= 1 << 62 else round(one * factor) for one in values]
