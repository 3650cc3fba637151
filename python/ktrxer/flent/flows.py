# SPDX-License-Identifier: MIT OR Apache-2.0
"""A flow of a Flent file: rates over intervals become counts of bytes."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable

from ktrxer.flent.document import Document, Point
from ktrxer.flent.errors import FlentError
from ktrxer.flent.tables import Tables, numbers, times
from ktrxer.statistics.throughput import gap_ns
from ktrxer.store import Series

CLOSE_S, SHARE = 0.02, 0.01  # limits of uncounted time between intervals that nothing is said about
OVERLAP = 1.5  # intervals that add up to more than this part of the time are not those of one flow

Rows = list[tuple[float, float, float]]


def flow(document: Document, name: str, points: list[Point], made: Callable[..., Series], tables: Tables, step_s: float | None) -> None:
    """`step_s`: the length of each interval, where the points do not have it. Without both, it is the time since the point before."""
    ends, rates = times(points, name, tables), numbers(points, "val", name)
    lengths = numbers(points, "dur", name) if step_s is None else [step_s] * len(points)
    if all(one is None for one in lengths):
        lengths = _since_before(ends)
    found = zip(ends, lengths, rates, strict=True)
    rows = sorted((t, dur, rate) for t, dur, rate in found if t is not None and dur is not None and rate is not None and dur > 0)
    if not rows:
        return
    for _, dur, rate in rows:
        if not abs(rate * 125_000 * dur) < 1 << 62:
            raise FlentError(f"`raw_values[{name}]`: more bytes than a link can carry: a rate of {rate:g} Mbit/s")
    span = rows[-1][0] - rows[0][0] + rows[0][1]
    if any(rate < 0 for _, _, rate in rows) or sum(dur for _, dur, _ in rows) > OVERLAP * span:
        document.notes.append(f"{name}: its intervals are not those of one flow, so its rates are kept unchanged")
        tables.add(made("value", "Mbits/s"), {"t_s": [t for t, _, _ in rows], "value": [rate for _, _, rate in rows]})
        return
    _counted(document, name, rows, span, made, tables, step_s is not None)


def _since_before(ends: list[float | None]) -> list[float | None]:
    known = sorted(t for t in ends if t is not None)
    steps = [b - a for a, b in itertools.pairwise(known) if b > a]
    usual = statistics.median(steps) if steps else None
    before = dict(zip(known[1:], known[:-1], strict=False))
    return [None if t is None or usual is None else (t - before[t] or None) if t in before else usual for t in ends]


def _counted(document: Document, name: str, rows: Rows, span: float, made: Callable[..., Series], tables: Tables, grid: bool) -> None:
    """`grid`: a short time without values has the mean rate, so that the mean is that of the values. Otherwise it has the rate of the
    interval behind, because netperf's interval begins with its report before."""
    mean = sum(rate * dur for _, dur, rate in rows) / sum(dur for _, dur, _ in rows)
    lengths = [dur for _, dur, _ in rows]
    interval = max(statistics.median(lengths), max(lengths) / 5)
    limit = gap_ns(round(interval * 1e9)) / 1e9  # readers take a longer time between two counts for a gap
    total, close, gaps = 0.0, 0.0, 0.0
    counted, counts = [rows[0][0] - rows[0][1]], [0]
    for t, dur, rate in rows:
        apart = t - dur - counted[-1]
        if apart > limit:  # no byte is counted in it
            gaps += apart
        elif apart > CLOSE_S:
            close += apart
            total += 125_000 * apart * (mean if grid else rate)
        if apart > CLOSE_S:
            counted.append(t - dur)
            counts.append(round(total))
        total += 125_000 * rate * (dur + max(0.0, apart) if apart <= CLOSE_S else dur)
        if not total < 1 << 62:
            raise FlentError(f"`raw_values[{name}]`: more bytes than a link can carry")
        counted.append(max(t, counted[-1]))
        counts.append(round(total))
    if gaps:
        document.notes.append(f"{name}: its intervals have gaps of {gaps:.1f} of {span:.1f} s, for which it has no rate")
    if close > SHARE * span:
        used = "mean rate" if grid else "rate of the interval behind"
        document.notes.append(f"{name}: {close:.1f} of {span:.1f} s are between its intervals; the {used} is used for them")
    tables.interval_s[name] = interval
    tables.add(made("bytes", "bytes"), {"t_s": counted, "end": [0] * len(counted), "bytes": counts})
