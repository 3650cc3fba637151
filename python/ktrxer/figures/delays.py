# SPDX-License-Identifier: MIT OR Apache-2.0
"""Delays of the probes of a run, by kind of the probes and phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import STALLED, probes_of
from ktrxer.statistics.latency import Delays, delays, p50_interval
from ktrxer.store import Run
from ktrxer.store.columns import LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Series

MS = 1e6
PREFERRED = ("UDP", "ICMP")
ROUND_TRIP = "round trip"
DIRECTIONS = (
    (ROUND_TRIP, "rtt_ns"), ("up", "up_ns"), ("down", "down_ns"),
    ("own queue", "own_queue_ns"), ("far queue", "far_queue_ns"),
)  # fmt: skip
BOUNDED = {"up_ns": "up_bound_ns", "down_ns": "down_bound_ns"}


@dataclass(frozen=True)
class Direction:
    """Delays in milliseconds of the probes of one kind, idle and under load. Each one-way delay has an uncertainty of at most idle_bound_ms
    while idle, and of bound_ms under load (or in the whole run, where it has no load)."""

    name: str
    idle: Delays | None
    loaded: Delays | None
    bound_ms: float | None = None
    probes: str = ""  # their kind: rows of one kind describe the same packets and can be compared
    idle_bound_ms: float | None = None
    classes_ms: dict[str, float] = field(default_factory=dict)  # if a row has several classes: the median of each


def kinds_of(run: Run) -> list[tuple[str, list[Series]]]:
    """The series of probes by kind: kinds with one-way delays first, then in the order of PREFERRED."""
    kinds: dict[str, list[Series]] = {}
    for series in run.meta.of_kind("latency"):
        kinds.setdefault(probes_of(run, series), []).append(series)

    def rank(item: tuple[str, list[Series]]) -> tuple[bool, bool, int]:
        one_way = any(not np.isnan(run.arrays(series)["up_ns"]).all() for series in item[1])
        kind = item[0].partition(" ")[0].removesuffix(",")
        return STALLED in item[0], not one_way, PREFERRED.index(kind) if kind in PREFERRED else len(PREFERRED)

    return sorted(kinds.items(), key=rank)


def pooled(run: Run, members: Sequence[Series], column: str, phases: Sequence[str] = ()) -> NDArray[np.float64]:
    """A column of these series, in some phases or in the whole run."""
    parts = [np.empty(0)]
    times = sorted((phase.from_ns, phase.to_ns) for phase in run.meta.phases if phase.name in phases)
    for series in members:
        arrays = run.arrays(series)
        if not phases:
            parts.append(arrays[column])
            continue
        end = 0  # of the part before: phases of a file of unknown origin may overlap
        for start, after in np.searchsorted(arrays["t_ns"], times).reshape(-1, 2).tolist():
            parts.append(arrays[column][max(start, end) : after])
            end = max(end, after)
    return np.concatenate(parts)


def idle_and_loaded(run: Run, members: Sequence[Series], column: str, interval: bool = True) -> tuple[Delays | None, Delays | None]:
    """The idle figures come from before the load or, if a test has no such phase, from after it."""
    idle = of_phases(run, members, column, ["idle_before"], interval) or of_phases(run, members, column, ["idle_after"], interval)
    return idle, of_phases(run, members, column, ["load"], interval)


def of_phases(run: Run, members: Sequence[Series], column: str, phases: Sequence[str], interval: bool = True) -> Delays | None:
    """A lost probe counts as an infinite round trip. Its direction of loss is often unknown, so the other columns contain only answered
    probes."""
    values = pooled(run, members, column, phases) / MS
    if column != "rtt_ns":
        return delays(values)
    lost = np.isin(pooled(run, members, "state", phases), (LOST, LOST_UP, LOST_DOWN))
    between = p50_interval(pooled(run, members, "t_ns", phases), np.where(lost, np.inf, values)) if interval else None
    return delays(values[~lost], int(lost.sum()), between)


def latencies(run: Run, whole: bool) -> list[Direction]:
    made = []
    for kind, members in kinds_of(run):
        classes: dict[str, list[Series]] = {}
        for series in members:
            classes.setdefault(series.klass or "unmarked", []).append(series)
        for name, column in DIRECTIONS:
            idle, loaded = idle_and_loaded(run, members, column, whole)
            if idle is None and loaded is None:
                continue
            if not whole:
                made.append(Direction(name, idle, loaded, None, kind))
                continue
            bounds = idle_and_loaded(run, members, BOUNDED[column]) if column in BOUNDED else (None, None)
            worst = [None if bound is None else bound.max for bound in bounds]
            medians: dict[str, float] = {}
            for klass, some in classes.items() if len(classes) > 1 else ():
                own = idle_and_loaded(run, some, column, interval=False)[loaded is not None]
                medians |= {klass: own.p50} if own is not None else {}
            made.append(Direction(name, idle, loaded, worst[0] if loaded is None else worst[1], kind, worst[0], medians))
    return made


def headline(latency: Sequence[Direction]) -> Direction | None:
    """The round trip for the grade and for the tiles of a report: that of the first kind that was answered both idle and under load. A kind
    that stalled stands for another time."""
    trips = [one for one in latency if one.name == ROUND_TRIP and STALLED not in one.probes]
    return next((one for one in trips if one.idle is not None and one.loaded is not None), trips[0] if trips else None)


def round_trips(run: Run, kind: str, phase: str) -> NDArray[np.float64]:
    """The answered round trips of one kind of probes in a phase, in milliseconds."""
    members = [series for series in run.meta.of_kind("latency") if probes_of(run, series) == kind]
    values = pooled(run, members, "rtt_ns", [phase]) / MS
    return values[~np.isnan(values)]
