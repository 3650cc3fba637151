# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of counters: fields of TCP_INFO, queues, drops, processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, Panel, Series
from ktrxer.panels.parts import BYTES, MANY, S, key_of, label_of, panel_over_time, unit_of, wish_of
from ktrxer.panels.throughput import interval_of
from ktrxer.store import Run
from ktrxer.store import Series as Stored


def tcp(run: Run, column: str, key: str, title: str, label: str, scale: float, unit: str, most: int = MANY) -> Panel | None:
    """A field of the kernel's TCP_INFO: at the sending end, if both ends have samples."""
    stored = run.meta.of_kind("tcp_info")
    found = []
    for series in stored:
        arrays = run.arrays(series)
        sender = 0 if series.direction == "up" else 1
        there = arrays["end"] == sender
        if not there.any():
            there = np.ones(len(there), bool)
        y = arrays[column][there]
        if len(y) and not np.isnan(y).all():
            found.append((series, arrays["t_ns"][there], y))
    if not found:
        return None
    ways = {series.direction for series, _, _ in found}
    drawn = []
    looks = palette.looks([wish_of(s) if len(ways) < 2 else None for s, _, _ in found[:most]])
    for (series, t_ns, y), (color, dash) in zip(found[:most], looks, strict=True):
        name = series.name if len(ways) > 1 else label_of(series)
        drawn.append(Series(key_of(series), name, "line", t_ns / S, y / scale, color, dash, hint=series.name))
    notes = (f"The first {most} of {len(found)} flows.",) if len(found) > most else ()
    return panel_over_time(run, key, title, Axis(label, unit), drawn, notes)


def cwnd(run: Run, most: int = MANY) -> Panel | None:
    return tcp(run, "cwnd_segments", "cwnd", "Congestion window", "Window", 1, "segments", most)


def tcp_rtt(run: Run, most: int = MANY) -> Panel | None:
    return tcp(run, "rtt_us", "tcp-rtt", "TCP's round-trip time", "Smoothed round trip", 1e3, "ms", most)


def delivery(run: Run, most: int = MANY) -> Panel | None:
    return tcp(run, "delivery_rate_bps", "delivery", "TCP's delivery rate", "Delivery rate", 1e6, "Mbit/s", most)


def pacing(run: Run, most: int = MANY) -> Panel | None:
    return tcp(run, "pacing_rate_bps", "pacing", "TCP's pacing rate", "Pacing rate", 1e6, "Mbit/s", most)


def retransmits(run: Run, most: int = MANY) -> Panel | None:
    return tcp(run, "retransmits", "retransmits", "Retransmitted segments so far", "Retransmits", 1, "segments", most)


def _queues(run: Run, least: int = 1) -> list[tuple[Stored, Any, palette.Look]]:
    """The queues with so many samples, and their looks."""
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"]) >= least]
    return [(*one, look) for one, look in zip(found, palette.looks([None] * len(found)), strict=True)]


def _backlog(run: Run, column: str, key: str, title: str, units: Sequence[tuple[float, str]]) -> Panel | None:
    found = _queues(run)
    scale, unit = unit_of([arrays[column] for _, arrays, _ in found], units)
    drawn = [
        Series(key_of(series), series.name, "line", arrays["t_ns"] / S, np.asarray(arrays[column], np.float64) / scale, *look)
        for series, arrays, look in found
    ]
    return panel_over_time(run, key, title, Axis("Backlog", unit), drawn) if drawn else None


def queue(run: Run) -> Panel | None:
    return _backlog(run, "backlog_bytes", "queue", "Queue", BYTES)


def queue_packets(run: Run) -> Panel | None:
    return _backlog(run, "backlog_packets", "queue-packets", "Queue in packets", ((1.0, "packets"),))


def drops(run: Run) -> Panel | None:
    """The packets that the queues dropped and marked, per window."""
    drawn: list[Series] = []
    found = _queues(run, 2)
    for series, arrays, (color, dash) in found:
        for column, how in (("drops", dash), ("marks", (1.0, 2.0))):
            counted = np.asarray(arrays[column], np.float64)
            if np.isnan(counted).all() or (column == "marks" and not np.nanmax(counted)):
                continue
            x = arrays["t_ns"] / S
            y = np.diff(counted)
            y[y < 0] = np.nan  # the counter was restarted
            drawn.append(Series(f"{key_of(series)} {column}", f"{series.name}: {column}", "step", x, np.append(y, y[-1]), color, how))
    if not drawn:
        return None
    width = interval_of(found[0][1]["t_ns"]) / 1e6
    return panel_over_time(run, "drops", "Drops and marks", Axis(f"Packets in {width:.4g} ms", ""), drawn)


def host(run: Run) -> Panel | None:
    drawn = []
    for series in run.meta.of_kind("host"):
        arrays = run.arrays(series)
        for column, name in (("cpu_percent", "busy"), ("steal_percent", "steal")):
            if len(arrays["t_ns"]) and not np.isnan(arrays[column]).all():
                drawn.append((f"{key_of(series)} {name}", f"{series.name}: {name}", arrays["t_ns"] / S, arrays[column]))
    if not drawn:
        return None
    looks = palette.looks([None] * len(drawn))
    made = [Series(key, name, "line", x, y, *look) for (key, name, x, y), look in zip(drawn, looks, strict=True)]
    note = "Above 90 % for more than 5 % of the run makes it degraded."
    return panel_over_time(run, "host", "Processors", Axis("Of all processors", "%"), made, [note])
