# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every series of a run under the name that Flent has for it, in one unit for each quantity: milliseconds, Mbit/s, packets, bytes, percent.

A name is that of the stored series, with `::` and a key for each further column: `Ping (ms) UDP BE::owd_up`, `TCP upload BE::tcp_rtt`. The
computed series of Flent's tests (`TCP upload sum`, `avg`, `fairness`, `TCP totals`, `Ping (ms) avg`) are made here from bytes and
probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ktrxer.panels import counters
from ktrxer.panels.host_queues import host_queues
from ktrxer.panels.latency import latency, lateness, one_way
from ktrxer.panels.model import Axis, Floats, Panel, Series
from ktrxer.panels.parts import S, base_of, values_of
from ktrxer.panels.throughput import DIRECTIONS, Flows, flows, rates
from ktrxer.store import Run
from ktrxer.summary import VOICE

EVERY = 1 << 30  # no limit of flows
AVERAGE_S = 0.2  # windows of averages of probes: Flent's step


@dataclass(frozen=True)
class Track:
    name: str
    label: str
    unit: str
    series: Series  # as a panel of the run has it: times in seconds, values in `unit`, colour, dash, band
    lost: Floats  # times of lost probes
    computed: bool = False  # not measured as it is, but computed from other tracks

    @property
    def t(self) -> Floats:
        """The times of the samples; of windows the middles."""
        x = self.series.x
        return (x[:-1] + x[1:]) / 2 if self.series.style == "step" else x

    @property
    def y(self) -> Floats:
        """The values at these times: without the end of the last step, which repeats a value."""
        return self.series.y[:-1] if self.series.style == "step" else self.series.y


def _tracks(panel: Panel | None, suffix: str = "") -> list[Track]:
    if panel is None:
        return []
    made = []
    for one in panel.series:
        axis: Axis | None = panel.y if one.axis == 1 else panel.y2
        unit, factor = base_of(axis.unit if axis is not None else "")
        lost = next((row.x for row in panel.event_rows if (row.key, row.kind) == (one.key, "lost")), np.empty(0))
        made.append(Track(one.key + suffix, one.label, unit, one.times(factor), lost))
    return made


def _measured(run: Run) -> list[Track]:
    """The series that the panels of a run draw, under its own names."""
    made = [*_tracks(latency(run)), *_tracks(rates(run, "up")), *_tracks(rates(run, "down"))]
    sources: tuple[tuple[Panel | None, str], ...] = (
        (one_way(run, "up"), "::owd_up"),
        (one_way(run, "down"), "::owd_down"),
        (lateness(run, limit=False), "::lateness"),
        (counters.cwnd(run, EVERY), "::tcp_cwnd"),
        (counters.tcp_rtt(run, EVERY), "::tcp_rtt"),
        (counters.delivery(run, EVERY), "::tcp_delivery_rate"),
        (counters.pacing(run, EVERY), "::tcp_pacing_rate"),
        (counters.retransmits(run, EVERY), "::retransmits"),
        (counters.queue(run), "::backlog_bytes"),
        (counters.queue_packets(run), "::backlog_pkts"),
    )
    for panel, suffix in sources:
        made += _tracks(panel, suffix)
    for track in _tracks(host_queues(run)):
        name, far, _ = track.name.partition(", far host")
        made.append(replace(track, name=f"{name}::{'far_queue' if far else 'own_queue'}"))
    for track in _tracks(counters.drops(run)):
        name, _, kind = track.name.rpartition(" ")
        made.append(replace(track, name=f"{name}::{'dropped' if kind == 'drops' else 'ecn_mark'}"))
    for track in _tracks(counters.host(run)):
        name, _, kind = track.name.rpartition(" ")
        made.append(replace(track, name=f"{name}::{'load' if kind == 'busy' else kind}"))
    there = {track.name for track in made}
    for series in run.meta.of_kind("value"):
        if series.name not in there:
            made += _tracks(values_of(run, series))
            if series.group == VOICE:  # of an imported call: a packet without a value is lost
                made[-1:] = [replace(track, lost=track.t[np.isnan(track.y)]) for track in made[-1:]]
    return made


def _windows(name: str, label: str, unit: str, found: Flows, value: Floats) -> Track | None:
    if np.isnan(value).all():
        return None
    edges = found.windows[0].edges_ns / S
    step = Series(name, label, "step", edges, np.append(value, value[-1]))
    return Track(name, label, unit, step, np.empty(0), computed=True)


def fairness(rates: Floats) -> Floats:
    """Jain's index of each window, from rates by flow and window: 1 is equal, 1/n is one flow alone. NaN where a flow has no rate."""
    total, squares = rates.sum(axis=0), (rates**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, total**2 / (len(rates) * squares), np.nan)


def _of_flows(run: Run) -> list[Track]:
    made: list[Track | None] = []
    parts = {way: flows(run, way) for way in DIRECTIONS}
    for way, found in parts.items():
        if found is None:
            continue
        protocol = "UDP" if all(series.kind == "udp" for series in found.series) else "TCP"
        name, word = f"{protocol} {way}load", DIRECTIONS[way]
        each = np.stack([windows.rate_bps() / 1e6 for windows in found.windows])
        total = found.total.rate_bps() / 1e6
        made.append(_windows(f"{name} sum", f"{word} sum", "Mbit/s", found, total))
        made.append(_windows(f"{name} avg", f"{word} mean", "Mbit/s", found, total / len(each)))
        if len(each) > 1:
            made.append(_windows(f"{name} fairness", f"{word} fairness", "", found, fairness(each)))
    both = [found for found in parts.values() if found is not None]
    if len(both) == 2:
        step = max(float(one.windows[0].edges_ns[1] - one.windows[0].edges_ns[0]) / S for one in both)
        columns = [(one.windows[0].edges_ns[:-1] / S + step / 2, one.total.rate_bps() / 1e6) for one in both]
        t, y = sum_at(columns[0], columns[1], step)
        if len(t):
            series = Series("TCP totals", "sum of both directions", "step", np.append(t, t[-1] + step), np.append(y, y[-1]))
            made.append(Track("TCP totals", series.label, "Mbit/s", series, np.empty(0), computed=True))
    return [track for track in made if track is not None]


def sum_at(a: tuple[Floats, Floats], b: tuple[Floats, Floats], step: float) -> tuple[Floats, Floats]:
    """The sum of two rates in the windows in which both are known; NaN in between."""
    numbers = [np.floor(t / step + 1e-9).astype(np.int64) for t, _ in (a, b)]
    first, last = max(int(n[0]) for n in numbers), min(int(n[-1]) for n in numbers)
    if last < first:
        return np.empty(0), np.empty(0)
    total = np.zeros(last - first + 1)
    for (_, y), number in zip((a, b), numbers, strict=True):
        row = np.full(len(total), np.nan)
        inside = (number >= first) & (number <= last)
        row[number[inside] - first] = y[inside]
        total += row
    return np.asarray((first + np.arange(len(total))) * step, np.float64), total


def _average(tracks: Mapping[str, Track]) -> Track | None:
    """The mean of the round trips of all kinds of probes, in windows in which each kind has an answer."""
    probes = [track for track in tracks.values() if track.name.startswith("Ping (ms)") and "::owd" not in track.name and track.unit == "ms"]
    probes = [track for track in probes if track.name.rpartition("::")[2] not in ("lateness", "own_queue", "far_queue")]
    if len(probes) < 2:
        return None
    from ktrxer.panels.groups import averaged

    t, mean, _, _ = averaged([(track.t, track.y) for track in probes], AVERAGE_S)
    if not len(t):
        return None
    return Track("Ping (ms) avg", "mean", "ms", Series("Ping (ms) avg", "mean", "line", t, mean), np.empty(0), computed=True)


def tracks(run: Run) -> dict[str, Track]:
    """All tracks of a run by name, the measured ones first."""
    made = {track.name: track for track in _measured(run)}
    for track in _of_flows(run):
        made.setdefault(track.name, track)
    if "Ping (ms) avg" not in made and (mean := _average(made)) is not None:
        made[mean.name] = mean
    return made
