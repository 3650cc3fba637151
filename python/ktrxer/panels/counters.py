# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panels of counters: fields of TCP_INFO, queues, drops, processors."""

from __future__ import annotations

import numpy as np

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, Panel, Series
from ktrxer.panels.parts import BYTES, MANY, S, bands, key_of, label_of, time_axis, unit_of, wish_of
from ktrxer.panels.throughput import interval_of
from ktrxer.store import Run


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
    for (series, t_ns, y), (color, dash) in zip(
        found[:most], palette.looks([wish_of(s) if len(ways) < 2 else None for s, _, _ in found[:most]]), strict=True
    ):
        name = series.name if len(ways) > 1 else label_of(series)
        drawn.append(Series(key_of(series), name, "line", t_ns / S, y / scale, color, dash, hint=series.name))
    notes = (f"The first {most} of {len(found)} flows.",) if len(found) > most else ()
    return Panel(key, title, time_axis(), Axis(label, unit), tuple(drawn), bands=bands(run), notes=notes)


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


def queue(run: Run) -> Panel | None:
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"])]
    if not found:
        return None
    scale, unit = unit_of([arrays["backlog_bytes"] for _, arrays in found], BYTES)
    drawn = [
        Series(
            key_of(series), series.name, "line", arrays["t_ns"] / S, np.asarray(arrays["backlog_bytes"], np.float64) / scale, color, dash
        )
        for (series, arrays), (color, dash) in zip(found, palette.looks([None] * len(found)), strict=True)
    ]
    return Panel("queue", "Queue", time_axis(), Axis("Backlog", unit), tuple(drawn), bands=bands(run))


def queue_packets(run: Run) -> Panel | None:
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"])]
    looks = palette.looks([None] * len(found))
    drawn = tuple(
        Series(key_of(series), series.name, "line", arrays["t_ns"] / S, np.asarray(arrays["backlog_packets"], np.float64), color, dash)
        for (series, arrays), (color, dash) in zip(found, looks, strict=True)
    )
    return Panel("queue-packets", "Queue in packets", time_axis(), Axis("Backlog", "packets"), drawn, bands=bands(run)) if drawn else None


def drops(run: Run) -> Panel | None:
    """The packets that the queues dropped and marked, per window."""
    drawn: list[Series] = []
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"]) > 1]
    looks = palette.looks([None] * len(found))
    for (series, arrays), (color, dash) in zip(found, looks, strict=True):
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
    return Panel("drops", "Drops and marks", time_axis(), Axis(f"Packets in {width:.4g} ms", ""), tuple(drawn), bands=bands(run))


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
    made = tuple(Series(k, n, "line", x, y, color, dash) for (k, n, x, y), (color, dash) in zip(drawn, looks, strict=True))
    notes = ("Above 90 % for more than 5 % of the run makes it degraded.",)
    return Panel("host", "Processors", time_axis(), Axis("Of all processors", "%"), made, bands=bands(run), notes=notes)
