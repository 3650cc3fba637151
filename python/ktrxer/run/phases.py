# SPDX-License-Identifier: MIT OR Apache-2.0
"""The drain: after the load has ended, its packets still wait in the queue. That time is a phase of its own, and not idle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import median, quantile
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, TOO_LATE
from ktrxer.store.meta import Phase

CALM_NS = 200_000_000  # so long no probe of any series may wait in the queue
TOLERANCE_NS, TOLERANCE_SHARE = 1_000_000, 0.1

Ints = NDArray[np.int64]


def with_drain(run: Run) -> list[Phase]:
    """The phases, with `drain` between `load` and `idle_after` if the queue of the load was still there."""
    load, after = run.meta.phase("load"), run.meta.phase("idle_after")
    if load is None or after is None or run.meta.phase("drain") is not None:
        return run.meta.phases
    end = min(_calm_from(run, load.to_ns), after.to_ns)
    if end <= after.from_ns:
        return run.meta.phases
    made: list[Phase] = []
    for phase in run.meta.phases:
        made += [Phase("drain", phase.from_ns, end), Phase("idle_after", end, phase.to_ns)] if phase is after else [phase]
    return [phase for phase in made if phase.to_ns > phase.from_ns]


def _calm_from(run: Run, begin: int) -> int:
    """The first instant from `begin` on after which, for CALM_NS, no round trip is above the idle level of its series."""
    high: list[Ints] = []
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        known = np.isin(arrays["state"], (ANSWERED, TOO_LATE)) & ~np.isnan(arrays["rtt_ns"])
        times, trips = arrays["t_ns"][known], arrays["rtt_ns"][known]
        level = _idle_level(run, times, trips, begin)
        if level is not None:
            high.append(times[(times >= begin) & (trips > level)].astype(np.int64))
    end = begin
    for at in np.sort(np.concatenate(high)).tolist() if high else ():
        if at > end + CALM_NS:
            break
        end = at + 1
    return run.meta.length_ns if begin < end and end + CALM_NS >= run.meta.length_ns else end


def _idle_level(run: Run, times: Ints, trips: NDArray[np.float64], begin: int) -> float | None:
    """A round trip above it has waited in a queue: the p99 of the idle time before the load, else the median of the end of the run."""
    before = run.meta.phase("idle_before")
    if before is not None and (inside := (times >= before.from_ns) & (times < before.to_ns)).any():
        idle = quantile(trips[inside], 0.99)
    elif (last := times >= begin + (run.meta.length_ns - begin) * 3 // 4).any():
        idle = median(trips[last])
    else:
        return None
    return idle + max(TOLERANCE_NS, TOLERANCE_SHARE * idle)
