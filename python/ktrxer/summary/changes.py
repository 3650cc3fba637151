# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates and round trips that changed from one level to another in mid-run, as when a shaper of a router is added, changed or removed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import Counts
from ktrxer.statistics.latency import median
from ktrxer.statistics.levels import POINTS_MOST, levels
from ktrxer.statistics.throughput import bytes_rate, edges, gap_ns, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Series

S, MS = 10**9, 10**6
LEVEL_S, LEVEL_SHARE = 2.0, 0.1  # a level is at least so long, and this share of the time
SETTLED_NS = S  # of the load, in which flows begin
WINDOW_NS, BLOCK_NS = 400 * MS, 500 * MS
SAMPLES_LEAST = 3
BURST, BURST_WINDOWS_LEAST = 1.3, 8  # the first second's rate, of the highest later one; of so many
LEAST_SHARE = 1e-3  # of the largest value: less is none


@dataclass(frozen=True)
class Held:
    """The median of a level."""

    from_s: float
    to_s: float
    median: float


@dataclass(frozen=True)
class Change:
    name: str
    unit: str
    levels: list[Held]


def changes(run: Run, counted: Mapping[int, Counts], every_ns: Mapping[int, int], kind_of: Mapping[int, str]) -> list[Change]:
    """Nothing of a test whose plan changes the load while it is on. By number of the series: counts and sample intervals of flows, kinds of
    probes."""
    if run.meta.settings.get("steps"):
        return []
    return [*rates(run, counted, every_ns), *_trips(run, kind_of)]


def _found(name: str, unit: str, begin_ns: int, window_ns: int, values: NDArray[np.float64]) -> Iterator[Change]:
    if len(values) and np.nanmax(values) > 0 and not np.isnan(values).any():
        least = math.ceil(max(LEVEL_S * S, LEVEL_SHARE * window_ns * len(values)) / window_ns)
        parts = levels(np.maximum(values, LEAST_SHARE * values.max()), least)
        at = [(begin_ns + edge * window_ns) / S for edge in (0, *(part.last for part in parts))]
        if len(parts) > 1:
            yield Change(name, unit, [Held(at[i], at[i + 1], median(values[p.first : p.last])) for i, p in enumerate(parts)])


def rates(run: Run, counted: Mapping[int, Counts], every_ns: Mapping[int, int]) -> Iterator[Change]:
    flows = run.meta.of_kind("bytes")
    if any(len(t) < 2 for t, _ in counted.values()):
        return
    groups: dict[str, list[Series]] = {}
    for series in flows:
        groups.setdefault(series.group or series.name, []).append(series)
    runners = [one for series in flows if (one := run.meta.runner_of(series)) is not None]
    planned = [at for one in runners for at in (one.from_ns, one.to_ns) if at is not None]
    for name, members in groups.items():
        begin = max(int(counted[one.id][0][0]) for one in members) + SETTLED_NS
        end = min(int(counted[one.id][0][-1]) for one in members)
        if any(begin < at < end - SETTLED_NS for at in planned):
            continue  # other flows begin or end: a change of the plan
        window = max(WINDOW_NS, 2 * max(every_ns[one.id] for one in members), -(-(end - begin) // POINTS_MOST))
        at = edges(begin, end, window)
        whole = received(members, counted, every_ns, at)
        first = received(members, counted, every_ns, np.asarray([begin - SETTLED_NS, begin], np.int64))
        # Flows begin slowly: a first second with a higher rate than any later time is, as a rule, that of a shaper whose bucket was full.
        if len(whole) >= BURST_WINDOWS_LEAST and first[0] > BURST * whole.max():
            parts = (Held(0.0, begin / S, float(first[0])), Held(begin / S, int(at[-1]) / S, median(whole)))
            yield Change(name, "Mbit/s", list(parts))
        yield from _found(name, "Mbit/s", begin, window, whole)


def received(
    members: list[Series], counted: Mapping[int, Counts], every_ns: Mapping[int, int], at: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The rate in Mbit/s. NaN: not known."""
    return sum_of_flows([bytes_rate(*counted[one.id], at, gap_ns=gap_ns(every_ns[one.id])) for one in members]).rate_bps() / 1e6


def _trips(run: Run, kind_of: Mapping[int, str]) -> Iterator[Change]:
    phase = run.meta.phase("load")
    begin, end = (phase.from_ns + SETTLED_NS, phase.to_ns) if phase is not None else (0, run.meta.length_ns)
    block = max(BLOCK_NS, -(-(end - begin) // POINTS_MOST))
    kinds: dict[str, list[Series]] = {}
    for series in run.meta.of_kind("latency"):
        if series.klass in (None, "BE"):
            kinds.setdefault(kind_of[series.id], []).append(series)
    for kind, members in kinds.items():
        arrays = [run.arrays(series) for series in members]
        t, trips = (np.concatenate([one[name][one["state"] == ANSWERED] for one in arrays]) for name in ("t_ns", "rtt_ns"))
        known = ~np.isnan(trips) & (t >= begin)
        where, values = (t[known] - begin) // block, trips[known] / MS
        inside = [values[where == k] for k in range(max(0, (end - begin) // block))]
        if all(len(some) >= SAMPLES_LEAST for some in inside):
            yield from _found(f"round trip, {kind}", "ms", begin, block, np.asarray([median(some) for some in inside]))
