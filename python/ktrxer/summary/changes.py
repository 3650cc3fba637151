# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates and round trips that changed from one level to another in mid-run, as when a shaper of a router is added, changed or removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import Counts
from ktrxer.statistics.latency import median
from ktrxer.statistics.levels import SEGMENT_BYTES, Level, levels, window_ns
from ktrxer.statistics.throughput import bytes_rate, edges, gap_ns, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Series
from ktrxer.summary.byte_outages import begin_of

S, MS = 10**9, 10**6
SETTLED_NS = S  # of the load, in which flows begin
WINDOW_NS, BLOCK_NS = 400 * MS, 500 * MS
BLOCKS_MOST = 200
SAMPLES_LEAST = 3


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


def _change(name: str, unit: str, scale: float, found: list[Level]) -> Iterator[Change]:
    if found:
        yield Change(name, unit, [Held(one.from_ns / S, one.to_ns / S, one.median / scale) for one in found])


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
        if any(begin < at < end - SETTLED_NS for at in planned) or begin >= end:
            continue  # other flows begin or end: a change of the plan
        yield from _change(name, "Mbit/s", 1e6, _of_process(run, members) or _of_counts(members, counted, every_ns, begin, end))


def _of_process(run: Run, members: list[Series]) -> list[Level]:
    """The levels that one process has found for all flows of a group: it counts arrivals behind a lost segment, too."""
    runners = {series.runner for series in members}
    runner = run.meta.runner_of(members[0])
    others = [series for series in run.meta.of_kind("bytes") if series.runner in runners]
    if runner is None or len(runners) > 1 or len(others) != len(members) or (begin := begin_of(runner)) is None:
        return []
    found = [Level(begin + one["from_ns"], begin + one["to_ns"], one["rate_bps"]) for one in runner.result.get("levels", ())]
    return [replace(one, from_ns=max(0, one.from_ns)) for one in found]


def _of_counts(
    members: list[Series], counted: Mapping[int, Counts], every_ns: Mapping[int, int], begin: int, end: int
) -> list[Level]:
    window = window_ns(begin, end, max(every_ns[one.id] for one in members))
    whole = received(members, counted, every_ns, edges(begin, end, window)) * 1e6
    first = received(members, counted, every_ns, np.asarray([begin - SETTLED_NS, begin], np.int64)) * 1e6
    known = None if np.isnan(first[0]) else float(first[0])
    return [] if np.isnan(whole).any() else levels(whole, begin, window, SEGMENT_BYTES, known)


def received(
    members: list[Series], counted: Mapping[int, Counts], every_ns: Mapping[int, int], at: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The rate in Mbit/s. NaN: not known."""
    return sum_of_flows([bytes_rate(*counted[one.id], at, gap_ns=gap_ns(every_ns[one.id])) for one in members]).rate_bps() / 1e6


def _trips(run: Run, kind_of: Mapping[int, str]) -> Iterator[Change]:
    phase = run.meta.phase("load")
    begin, end = (phase.from_ns + SETTLED_NS, phase.to_ns) if phase is not None else (0, run.meta.length_ns)
    block = max(BLOCK_NS, -(-(end - begin) // BLOCKS_MOST))
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
            medians = np.asarray([median(some) for some in inside])
            yield from _change(f"round trip, {kind}", "ms", 1, [] if np.isnan(medians).any() else levels(medians, begin, block))
