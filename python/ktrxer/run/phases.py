# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ends of the phases, by the probes. A probe meets the load if it is on its way when the load begins, or while the queue of the load
drains: neither is idle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import median, quantile
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, TOO_LATE
from ktrxer.store.meta import Phase

CALM_NS = 200_000_000  # so long, or a round trip, no probe of any series may wait in the queue
LONG_NS = 1_000_000_000
TOLERANCE_NS, TOLERANCE_SHARE = 1_000_000, 0.1

Ints = NDArray[np.int64]


def as_measured(run: Run) -> list[Phase]:
    """The planned phases: `idle_before` ends a round trip before the load, and `drain` is between `load` and `idle_after` if the queue of
    the load was still there."""
    load = run.meta.phase("load")
    if load is None:
        return run.meta.phases
    trip = _round_trip(run, load.from_ns)
    return with_drain(run, [_before(phase, load.from_ns - trip) for phase in run.meta.phases], trip)


def _before(phase: Phase, end: int) -> Phase:
    return Phase("idle_before", phase.from_ns, max(phase.from_ns, min(phase.to_ns, end))) if phase.name == "idle_before" else phase


def with_drain(run: Run, phases: list[Phase], trip: int = 0) -> list[Phase]:
    load, after = run.meta.phase("load"), run.meta.phase("idle_after")
    end = 0
    if load is not None and after is not None and run.meta.phase("drain") is None:
        end = min(_calm_from(run, phases, load.to_ns, max(CALM_NS, trip)), after.to_ns)
    made: list[Phase] = []
    for phase in phases:
        drains = phase is after and end > after.from_ns
        made += [Phase("drain", phase.from_ns, end), Phase("idle_after", end, phase.to_ns)] if drains else [phase]
    return [phase for phase in made if phase.to_ns > phase.from_ns]


def _round_trip(run: Run, load_ns: int) -> int:
    """The time that almost all answers of the slowest series take while the path is idle: by those that were here before the load began."""
    longest = 0.0
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        times, trips = arrays["t_ns"], arrays["rtt_ns"]  # no answer: NaN, which compares as false
        here = trips[times + trips <= load_ns]
        if len(here):
            longest = max(longest, _level(quantile(here, 0.99)))
        elif (~np.isnan(trips[times < load_ns - LONG_NS])).any():
            longest = load_ns  # all answers came under load
    return round(longest)


def _calm_from(run: Run, phases: list[Phase], begin: int, calm: int) -> int:
    """The first instant from `begin` on after which, for `calm`, no round trip is above the idle level of its series."""
    high: list[Ints] = []
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        known = np.isin(arrays["state"], (ANSWERED, TOO_LATE)) & ~np.isnan(arrays["rtt_ns"])
        times, trips = arrays["t_ns"][known], arrays["rtt_ns"][known]
        level = _idle_level(run, phases, times, trips, begin)
        if level is not None:
            high.append(times[(times >= begin) & (trips > level)].astype(np.int64))
    end = begin
    for at in np.sort(np.concatenate(high)).tolist() if high else ():
        if at > end + calm:
            break
        end = at + 1
    return run.meta.length_ns if begin < end and end + calm >= run.meta.length_ns else end


def _idle_level(run: Run, phases: list[Phase], times: Ints, trips: NDArray[np.float64], begin: int) -> float | None:
    """A round trip above it has waited in a queue: the p99 of the idle time before the load, else the median of the end of the run."""
    before = next((phase for phase in phases if phase.name == "idle_before"), None)
    if before is not None and (inside := (times >= before.from_ns) & (times < before.to_ns)).any():
        idle = quantile(trips[inside], 0.99)
    elif (last := times >= begin + (run.meta.length_ns - begin) * 3 // 4).any():
        idle = median(trips[last])
    else:
        return None
    return _level(idle)


def _level(idle: float) -> float:
    return idle + max(TOLERANCE_NS, TOLERANCE_SHARE * idle)
