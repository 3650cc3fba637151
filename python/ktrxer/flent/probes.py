# SPDX-License-Identifier: MIT OR Apache-2.0
"""The probes of a Flent file: round trips, lost probes, and times without any."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

from ktrxer.flent.document import Document, Point
from ktrxer.flent.tables import Tables, numbers, times
from ktrxer.store import Series

ANSWERED, LOST, LOST_UP, LOST_DOWN = range(4)
LOST_WHERE = {"up": LOST_UP, "down": LOST_DOWN}
SILENT_S, SILENT_STEPS = 2.0, 10  # a longer time, and of more usual steps, without a probe is one in which the tool sent none
STATED = 0.05  # the least silent part of a run that is a reason of the verdict
KEPT = 0.1  # the largest silent part of a load in which a series can still stand for the whole load


def latency(document: Document, name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    at, rtts, sequence = times(points, name, tables), numbers(points, "val", name), numbers(points, "seq", name)
    up, down = numbers(points, "owd_up", name), numbers(points, "owd_down", name)
    rows: list[tuple[Any, ...]] = []
    for i, (t, rtt) in enumerate(zip(at, rtts, strict=True)):
        if t is None:
            tables.dropped += 1
        elif points[i].get("lost"):
            rows.append((t, sequence[i], None, None, None, LOST_WHERE.get(str(points[i].get("lost_dir")), LOST)))
        elif rtt is not None and 0 <= rtt < 1e9:
            rows.append((t - rtt / 1000, sequence[i], _ns(rtt), _ns(up[i]), _ns(down[i]), ANSWERED))
    if None not in sequence and not any("lost" in point for point in points):
        missing = _missing(rows)
        if missing:
            document.notes.append(f"{name}: {len(missing)} lost, counted from the gaps in the sequence numbers")
            rows += missing
    if any("dur" in point for point in points):
        document.notes.append(f"{name}: each value is the mean round trip of an interval, because netperf's UDP_RR has no others")
    rows.sort(key=lambda row: row[0])
    if None in (row[1] for row in rows):
        rows = [(row[0], i, *row[2:]) for i, row in enumerate(rows)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    names = ("t_s", "seq", "rtt_ns", "up_ns", "down_ns", "state")
    table = dict(zip(names, columns, strict=True))
    table["seq"] = [int(number) if abs(number) < 1 << 62 else 0 for number in table["seq"]]
    tables.add(made("latency", "ms"), table)


def call(document: Document, name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    """A call of D-ITG: one-way delays of numbered packets. A lost packet is one without a value; its time is interpolated."""
    found = zip(numbers(points, "seq", name), times(points, name, tables), numbers(points, "val", name), strict=True)
    rows = sorted((seq, t, delay) for seq, t, delay in found if seq is not None and t is not None and delay is not None)
    all_rows: list[tuple[float, float | None]] = [(t, delay) for _, t, delay in rows]
    lost = 0
    for (number, t, _), (number_next, t_next, _) in itertools.pairwise(rows):
        between = int(number_next - number) - 1 if number_next < 1 << 53 else 0
        if 0 < between <= max(100, len(rows)):
            lost += between
            all_rows += [(t + (t_next - t) * k / (between + 1), None) for k in range(1, between + 1)]
    if lost:
        document.notes.append(f"{name}: {lost} lost, counted from the gaps in the sequence numbers")
    all_rows.sort(key=lambda row: row[0])
    tables.add(made("value", "ms"), {"t_s": [t for t, _ in all_rows], "value": [delay for _, delay in all_rows]})


def _missing(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Probes that are missing in ping's sequence numbers. Their times are interpolated."""
    found: list[tuple[Any, ...]] = []
    ordered = sorted(rows, key=lambda row: row[1])
    for (t, number, *_), (t_next, number_next, *_) in itertools.pairwise(ordered):
        lost = int(number_next - number) - 1 if abs(number_next) < 1 << 53 else 0
        if t_next < t or lost > max(100, len(rows)):
            return []  # these are not sequence numbers
        found += [(t + (t_next - t) * k / (lost + 1), number + k, None, None, None, LOST) for k in range(1, lost + 1)]
    return found


def _ns(ms: float | None) -> int | None:
    return None if ms is None or abs(ms) >= 1e9 else round(ms * 1e6)


def silences(at: list[float], end_s: float) -> list[tuple[float, float]]:
    """Times without a probe, answered or lost, from the begin of the run to its end."""
    usual = statistics.median(b - a for a, b in itertools.pairwise(at)) if len(at) > 1 else 0.0
    least = max(SILENT_S, SILENT_STEPS * usual)
    return [(a, b) for a, b in itertools.pairwise([0.0, *at, end_s]) if b - a > least]


def unnumbered(document: Document, name: str) -> bool:
    """Whether a lost probe leaves no trace in the samples: those of netperf's UDP_RR, and values on a grid."""
    points = document.raw.get(name, [])
    return document.made_up or not any("seq" in point or "lost" in point for point in points)


def stalled(document: Document, tables: Tables, end_s: float, load: tuple[float, float] | None) -> tuple[list[str], dict[str, float]]:
    """A sentence for each series of probes that was silent, and the silent seconds of those that do not stand for the load, because a
    figure of them would be one of another time. netperf's UDP_RR is silent when a packet is lost: if one of its series is left out, all
    that were silent are."""
    silent, out = {}, set()
    for name, at in tables.probe_times.items():
        found = silences(at, end_s)
        whole = sum(b - a for a, b in found)
        if whole > STATED * end_s:
            silent[name] = whole
            of_load = sum(max(0.0, min(b, load[1]) - max(a, load[0])) for a, b in found) if load else whole
            if of_load > KEPT * (load[1] - load[0] if load else end_s):
                out.add(name)
    if any(unnumbered(document, name) for name in out):
        out |= {name for name in silent if unnumbered(document, name)}
    sentences = [
        f"{name} stalled: no round trips in {whole:.1f} of {end_s:.1f} s{'; it is in no headline' if name in out else ''}"
        for name, whole in silent.items()
    ]
    return sentences, {name: silent[name] for name in sorted(out)}
