# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rate of each group of flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ktrxer.figures.facts import flow_counts, interval_ns
from ktrxer.statistics.throughput import bytes_rate, gap_ns, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.meta import Series

S = 10**9


@dataclass(frozen=True)
class Throughput:
    name: str
    direction: str | None
    flows: int
    mean_mbps: float | None  # of all flows together, over the time in which the byte counts of all of them are known
    seconds: float
    note: str = ""


def sample_gap_ns(run: Run, series: Series) -> int:
    return gap_ns(interval_ns(run, series))


def throughput(run: Run) -> list[Throughput]:
    """Of each group of flows, and of all together where there are several."""
    groups: dict[str, list[Series]] = {}
    for series in run.meta.of_kind("bytes"):
        groups.setdefault(series.group or series.name, []).append(series)
    made = [group(run, name, members) for name, members in groups.items()]
    if len(made) > 1:
        name = "totals" if run.meta.of_kind("udp") else "TCP totals"
        made.append(group(run, name, run.meta.of_kind("bytes")))
    return made


def group(run: Run, name: str, members: list[Series]) -> Throughput:
    """The rate of all flows over the time in which the counts of all of them are known. No figure if that time has a gap."""
    direction = members[0].direction if len({series.direction for series in members}) == 1 else "both"
    counted = [flow_counts(run, series) for series in members]
    notes = sorted({note for _, _, note in counted if note})
    too_few = sum(len(t) < 2 for t, _, _ in counted)
    if too_few:
        notes.append(f"{too_few} of {len(members)} flows have fewer than two samples: no sum")
        return Throughput(name, direction, len(members), None, 0.0, "; ".join(notes))
    window = np.asarray([max(int(t[0]) for t, _, _ in counted), min(int(t[-1]) for t, _, _ in counted)], np.int64)
    if window[1] <= window[0]:
        return Throughput(name, direction, len(members), None, 0.0, "; ".join([*notes, "its flows have no common time: no sum"]))
    pairs = zip(counted, members, strict=True)
    total = sum_of_flows([bytes_rate(t, c, window, gap_ns=sample_gap_ns(run, series)) for (t, c, _), series in pairs])
    rate = total.total_rate_bps()
    if rate is None:
        notes.append(f"only {float(total.coverage[0]):.1%} of the time is covered: no sum")
    silent = sum(c[-1] == c[0] for _, c, _ in counted)
    if silent and len(members) > 1:
        notes.append(f"{silent} of {len(members)} flows got no byte")
    mean, seconds = rate / 1e6 if rate is not None else None, float(window[1] - window[0]) / S
    return Throughput(name, direction, len(members), mean, seconds, "; ".join(notes))
