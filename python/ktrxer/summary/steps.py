# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of each step of a test whose load changes while it is on (settings.steps, from catalogue/recipe.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import interval_ns
from ktrxer.statistics.latency import delays
from ktrxer.statistics.throughput import bytes_rate, gap_ns, receiver_end, sum_of_flows
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
    groups: dict[str, list[_Counts]] = {}
    flows = [(series, part) for series in run.meta.of_kind("bytes") if (part := _counts(run, series)).within(begin, end)]
    for series, part in flows:
        groups.setdefault(series.name if len(flows) <= FLOWS_MOST else series.group or series.name, []).append(part)
    rates = {name: rate for name, parts in groups.items() if (rate := _rate(parts, begin, end)) is not None}
    return Step(name, begin / 1e9, end / 1e9, found.p50 if found is not None else None, rates)


class _Counts(NamedTuple):
    """The counts at the receiver of a flow."""

    t_ns: NDArray[np.int64]
    bytes: NDArray[np.int64]
    gap_ns: int

    def within(self, begin: int, end: int) -> bool:
        return len(self.t_ns) > 1 and self.t_ns[-1] > begin and self.t_ns[0] < end


def _counts(run: Run, series: Series) -> _Counts:
    arrays = run.arrays(series)
    there = arrays["end"] == receiver_end(series.direction)
    return _Counts(arrays["t_ns"][there], arrays["bytes"][there], gap_ns(interval_ns(run, series)))


def _rate(flows: Sequence[_Counts], begin: int, end: int) -> float | None:
    """Mbit/s over those parts of the step that are covered for each flow. A flow begins some microseconds after its step, so windows begin
    with the flows. None where a flow only ends or begins in the step."""
    first, last = max(begin, *(int(one.t_ns[0]) for one in flows)), min(end, *(int(one.t_ns[-1]) for one in flows))
    if last - first < min(WINDOW_NS, end - begin) / 2:
        return None
    count = max(1, round((last - first) / WINDOW_NS))
    at = np.linspace(first, last, count + 1).astype(np.int64)
    rates = sum_of_flows([bytes_rate(one.t_ns, one.bytes, at, gap_ns=one.gap_ns) for one in flows]).rate_bps()
    known = rates[~np.isnan(rates)]
    return float(known.mean()) / 1e6 if len(known) else None
