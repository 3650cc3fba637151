# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of each step of a test whose load changes while it is on (settings.steps, from catalogue/recipe.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ktrxer.estimate.latency import delays
from ktrxer.estimate.throughput import Windows, bytes_rate, edges, gap_ns, receiver_end, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Series

STEPS_MOST = 1000  # of a file that another program may have written
FLOWS_MOST = 16  # of more flows their sums by group are shown
WINDOW_NS = 200_000_000


@dataclass(frozen=True)
class Step:
    name: str
    from_s: float
    to_s: float
    rtt_p50_ms: float | None  # of the answered probes
    rates_mbps: dict[str, float]  # of each flow, or of each group of flows, over the covered part of the step


def steps(run: Run, probes: Sequence[Series]) -> list[Step]:
    """`probes`: the series of one kind whose round trips are shown."""
    return [_step(run, probes, *one) for one in _stored(run)]


def _stored(run: Run) -> Iterator[tuple[str, int, int]]:
    found = run.meta.settings.get("steps")
    for one in found[:STEPS_MOST] if isinstance(found, list) else ():
        if isinstance(one, dict):
            name, begin, end = one.get("name"), one.get("from_ns"), one.get("to_ns")
            if isinstance(name, str) and type(begin) is int and type(end) is int and 0 <= begin < end <= run.meta.length_ns:
                yield name, begin, end


def _step(run: Run, probes: Sequence[Series], name: str, begin: int, end: int) -> Step:
    trips = [np.empty(0)]
    for series in probes:
        arrays = run.arrays(series)
        inside = (arrays["t_ns"] >= begin) & (arrays["t_ns"] < end) & (arrays["state"] == ANSWERED)
        trips.append(arrays["rtt_ns"][inside] / 1e6)
    found = delays(np.concatenate(trips))
    flows = [(series, part) for series in run.meta.of_kind("bytes") if (part := _windows(run, series, begin, end)) is not None]
    groups: dict[str, list[Windows]] = {}
    for series, part in flows:
        groups.setdefault(series.name if len(flows) <= FLOWS_MOST else series.group or series.name, []).append(part)
    rates = {name: rate for name, parts in groups.items() if (rate := _mean(sum_of_flows(parts))) is not None}
    return Step(name, begin / 1e9, end / 1e9, found.p50 if found is not None else None, rates)


def _windows(run: Run, series: Series, begin: int, end: int) -> Windows | None:
    """Counts of the receiver. None where the flow has none in the step."""
    arrays = run.arrays(series)
    there = arrays["end"] == receiver_end(series.direction)
    t, counts = arrays["t_ns"][there], arrays["bytes"][there]
    if len(t) < 2 or t[-1] <= begin or t[0] >= end:
        return None
    runner = run.meta.runner_of(series)
    gap = gap_ns((runner.interval_ns if runner is not None else None) or WINDOW_NS)
    return bytes_rate(t, counts, edges(begin, end, min(WINDOW_NS, end - begin)), gap_ns=gap)


def _mean(windows: Windows) -> float | None:
    """Mbit/s over the windows that are fully covered for each flow."""
    rates = windows.rate_bps()
    known = rates[~np.isnan(rates)]
    return float(known.mean()) / 1e6 if len(known) else None
