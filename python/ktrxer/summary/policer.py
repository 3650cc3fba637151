# SPDX-License-Identifier: MIT OR Apache-2.0
"""A policer as the cause of losses: it drops what exceeds a rate, and has no queue. No statement where the figures permit another cause.

Each criterion excludes a cause (docs/measurements/2026-11-27-policer.md has the figures that the limits are between):
- Any queue in front of this rate, a fair one too, delays most probes by a part of the time that one packet takes at this rate.
- With random losses the received rate varies, because windows do; and what is lost varies far less than what is received.
- Losses that do not depend on the rate hit probes, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import Counts
from ktrxer.statistics.throughput import edges
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Series
from ktrxer.summary.changes import SETTLED_NS, WINDOW_NS, received
from ktrxer.units import delay

S, MS = 10**9, 10**6
FRAME_BYTES, SEGMENT_BYTES = 1514, 1448
WINDOWS_LEAST, PROBES_LEAST = 8, 50
LOST_LEAST = 0.01  # share of the sent segments
LEVEL = 0.04  # standard deviation of the received rate, of its mean: at most
DROPS_VARY = 0.2  # standard deviation of the lost bytes, of that of the received ones: at least
DELAY_MOST = 0.25  # of the time of one packet at the received rate: p90 under load above the idle p50
PROBES_LOST_MOST = 0.25  # of the segments' share
PROBES_EXPECTED = 5  # lost probes, if they were lost like segments: at least, else their losses prove nothing


@dataclass(frozen=True)
class Policed:
    direction: str
    rate_mbps: float
    lost_share: float  # of the segments
    added_ms: float
    packet_ms: float  # the time of one packet at this rate


def policed(run: Run, counted: Mapping[int, Counts], every_ns: Mapping[int, int], kind_of: Mapping[int, str]) -> list[Policed]:
    """The counts and sample intervals of flows, and the kinds of probes, by the number of the series."""
    flows = [series for series in run.meta.of_kind("bytes") if len(counted[series.id][0]) > 1]
    found = []
    for way in ("up", "down"):
        members = [series for series in flows if series.direction == way]
        if members and (made := _policed(run, way, members, counted, every_ns, kind_of)) is not None:
            found.append(made)
    return found


def _policed(
    run: Run, way: str, members: list[Series], counted: Mapping[int, Counts], every_ns: Mapping[int, int], kind_of: Mapping[int, str]
) -> Policed | None:
    begin = max(int(counted[one.id][0][0]) for one in members) + SETTLED_NS
    end = min(int(counted[one.id][0][-1]) for one in members)
    at = edges(begin, end, max(WINDOW_NS, 2 * max(every_ns[one.id] for one in members)))
    if len(at) <= WINDOWS_LEAST:
        return None
    got, lost = received(members, counted, every_ns, at), _retransmitted(run, way, len(members), at)
    if lost is None or np.isnan(got).any() or not got.any():
        return None
    rate, share = float(got.mean()), float(lost.sum() / (got + lost).sum())
    if share < LOST_LEAST or got.std() > LEVEL * rate or lost.std() < DROPS_VARY * got.std():
        return None
    packet_ms = FRAME_BYTES * 8 / rate / 1e3
    first = min(int(t[0]) for t, _ in counted.values() if len(t))
    added = _added(run, first, (begin, end), kind_of, share)
    if added is None or added > DELAY_MOST * packet_ms:
        return None
    return Policed(way, rate, share, added, packet_ms)


def _retransmitted(run: Run, way: str, flows: int, at: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """The rate in Mbit/s by the counts of the senders' kernels. None: not known of each flow."""
    made, known = np.zeros(len(at) - 1), 0
    for series in run.meta.of_kind("tcp_info"):
        if series.direction == way:
            arrays = run.arrays(series)
            there = ~np.isnan(arrays["retransmits"])
            if there.sum() > 1:
                known += 1
                made += np.diff(np.interp(at, arrays["t_ns"][there], arrays["retransmits"][there]))
    return made * SEGMENT_BYTES * 8e3 / np.diff(at) if known == flows else None


def _added(run: Run, first: int, load: tuple[int, int], kind_of: Mapping[int, str], share: float) -> float | None:
    """The largest delay that the load adds to probes of one kind. None: not known, or the probes were lost like the segments."""
    trips: dict[str, tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]] = {}
    lost = sent = 0
    for series in run.meta.of_kind("latency"):
        if series.klass not in (None, "BE"):
            continue
        arrays = run.arrays(series)
        t, state = arrays["t_ns"], arrays["state"]
        good = (state == ANSWERED) & ~np.isnan(arrays["rtt_ns"])
        gone = np.isin(state, (LOST, LOST_UP, LOST_DOWN))
        parts = trips.setdefault(kind_of[series.id], ([], []))
        for part, inside in zip(parts, (t < first, (t >= load[0]) & (t < load[1])), strict=True):
            part.append(arrays["rtt_ns"][good & inside] / MS)
            lost, sent = lost + int((gone & inside).sum()), sent + int(((gone | good) & inside).sum())
    if sent * share < PROBES_EXPECTED or lost > PROBES_LOST_MOST * share * sent:
        return None
    added = []
    for kind in trips.values():
        idle, loaded = (np.concatenate(part) for part in kind)
        if min(len(idle), len(loaded)) < PROBES_LEAST:
            return None
        added.append(float(np.quantile(loaded, 0.9) - np.median(idle)))
    return max(added, default=None)


def line(one: Policed) -> str:
    delays = f"p90 under load {delay(max(0.0, one.added_ms))} above the idle p50; one packet at this rate takes {delay(one.packet_ms)}"
    lost = f"{one.lost_share:.1%} of the segments are lost"
    return f"{one.rate_mbps:.2f} Mbit/s pass {one.direction} at a level rate, {lost}, and no queue delays the probes ({delays})"
