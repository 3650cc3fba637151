# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rate of each group of flows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import flow_counts, interval_ns, stored_mbps
from ktrxer.statistics.throughput import bytes_rate, gap_ns, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.meta import Series

S = 10**9
TOTAL = "mean from the totals in Flent's file, because its samples do not cover the load"
COVERED = 0.9  # the least part of a load that samples of an imported run cover


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
        udp = run.meta.of_kind("udp") or any(series.name.startswith("UDP ") for series in run.meta.of_kind("bytes"))
        name = "totals" if udp else "TCP totals"
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
        return _of_the_load(run, members, Throughput(name, direction, len(members), None, 0.0, "; ".join(notes)))
    window = np.asarray([max(int(t[0]) for t, _, _ in counted), min(int(t[-1]) for t, _, _ in counted)], np.int64)
    if window[1] <= window[0]:
        notes.append("its flows have no common time: no sum")
        return _of_the_load(run, members, Throughput(name, direction, len(members), None, 0.0, "; ".join(notes)))
    pairs = zip(counted, members, strict=True)
    total = sum_of_flows([bytes_rate(t, c, window, gap_ns=sample_gap_ns(run, series)) for (t, c, _), series in pairs])
    rate = total.total_rate_bps()
    if rate is None:
        notes.append(f"only {float(total.coverage[0]):.1%} of the time is covered: no sum")
    silent = sum(c[-1] == c[0] for _, c, _ in counted)
    if silent and len(members) > 1:
        notes.append(f"{silent} of {len(members)} flows got no byte")
    mean, seconds = rate / 1e6 if rate is not None else None, float(window[1] - window[0]) / S
    return _of_the_load(run, members, Throughput(name, direction, len(members), mean, seconds, "; ".join(notes)))


def imported_mean(run: Run, series: Series, t: NDArray[Any], counts: NDArray[Any]) -> tuple[float, str] | None:
    """The mean rate of an imported flow where its samples have gaps or do not cover the load, and the reason: from its tool's total or, if
    the file has none, of the covered time."""
    load = run.meta.phase("load")
    if "flent" not in run.meta.metadata or load is None:
        return None
    ends = np.asarray([int(t[0]), int(t[-1])], np.int64)
    if ends[1] <= ends[0]:
        return None
    found = bytes_rate(t, counts, ends, gap_ns=sample_gap_ns(run, series))
    whole, covered = not np.isnan(found.bytes).any(), float(found.coverage[0] * (ends[1] - ends[0]))
    stored = stored_mbps(run, series)
    if stored is None:
        moved = float(counts[-1] - counts[0])
        return None if whole or not covered else (moved * 8e3 / covered, f"mean of {covered / S:.1f} s with samples")
    length = min(stored[1] or np.inf, (load.to_ns - load.from_ns) / S)
    return None if whole and ends[1] - ends[0] >= COVERED * length * S else (stored[0], TOTAL)


def _of_the_load(run: Run, members: list[Series], found: Throughput) -> Throughput:
    """An imported run has samples when its tool reported some. Where they do not cover the load, the rate is that of the totals that the
    tool gave at the end, or there is none."""
    load = run.meta.phase("load")
    if "flent" not in run.meta.metadata or load is None:
        return found
    length = (load.to_ns - load.from_ns) / S
    if found.mean_mbps is not None and found.seconds >= COVERED * length:
        return found
    totals = [stored_mbps(run, series) for series in members]
    known = [(mean, min(seconds, length)) for mean, seconds in (one or (0.0, None) for one in totals) if seconds is not None]
    if len(known) == len(members):
        mean = sum(rate * seconds for rate, seconds in known) / length
        return replace(found, mean_mbps=mean, seconds=length, note=TOTAL)
    if found.mean_mbps is None:
        return found
    note = f"the samples of all flows cover only {found.seconds:.1f} of {length:.1f} s of load: no sum"
    return replace(found, mean_mbps=None, seconds=0.0, note="; ".join(filter(None, [found.note, note])))
