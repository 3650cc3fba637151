# SPDX-License-Identifier: MIT OR Apache-2.0
"""The load by the measurement itself: delay probes and control connections, in bytes of IP packets, against the rate of the run.

That is what its flows got, with the measurement's own packets: the rate of the path, if the flows fill it and no other traffic is on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ktrxer.run.schedule import SHARE_GOAL
from ktrxer.statistics.throughput import receiver_end
from ktrxer.store import Run
from ktrxer.store.meta import Runner, Series
from ktrxer.store.reason_table import OWN_LOAD_PERCENT
from ktrxer.store.reasons import Reason, reason

S = 10**9
WIRE = 1.036  # TCP's bytes of data as IP packets: 52 bytes of headers on 1448

Way = Literal["up", "down"]


@dataclass(frozen=True)
class OwnLoad:
    """The load of one direction in bit/s."""

    direction: Way
    probes_bps: float
    control_bps: float
    run_bps: float | None  # None: no flow in this direction

    @property
    def share(self) -> float | None:
        """The load of the probes and of the control traffic together."""
        return (self.probes_bps + self.control_bps) / self.run_bps if self.run_bps else None


def own_loads(run: Run) -> list[OwnLoad]:
    probes = sum(_probe_bps(run, series) for series in run.meta.of_kind("latency"))
    ways: tuple[Way, Way] = ("up", "down")
    made = []
    for way in ways:
        control = sum(_control_bps(runner, way) for runner in run.meta.runners)
        flows = _flows_bps(run, way)
        made.append(OwnLoad(way, probes, control, flows * WIRE + probes + control if flows else None))
    return made if probes or any(one.control_bps for one in made) else []


def longest_interval(run: Run) -> int | None:
    """The probes' interval at which they would take SHARE_GOAL of the run's rate in the slower direction, in nanoseconds."""
    loads = [one for one in own_loads(run) if one.run_bps]
    intervals = [runner.interval_ns for runner in run.meta.runners if runner.protocol is not None and runner.interval_ns]
    if not loads or not intervals:
        return None
    worst = max(one.probes_bps / one.run_bps for one in loads if one.run_bps)
    return round(max(intervals) * worst / SHARE_GOAL)


def too_heavy(run: Run) -> Iterator[Reason]:
    """A reason for each direction in which the probes or the control traffic take too much of the run's rate."""
    interval = longest_interval(run)
    remedies = {
        "delay probes": f"--interval {-(-interval // 10**6)}ms would take 1 %" if interval else "",
        "control traffic": "fewer flows, or a longer --sample-interval, take less",
    }
    for one in own_loads(run):
        for what, bps in (("delay probes", one.probes_bps), ("control traffic", one.control_bps)):
            if one.run_bps is not None and 100 * bps > OWN_LOAD_PERCENT * one.run_bps:
                yield reason(
                    "own_load", traffic=what, own_percent=100 * bps / one.run_bps, direction=one.direction,
                    own_kbit_s=round(bps / 1e3), run_kbit_s=round(one.run_bps / 1e3), advice=remedies[what],
                )  # fmt: skip


def _probe_bps(run: Run, series: Series) -> float:
    """Each probe and its answer are equally long."""
    runner = run.meta.runner_of(series)
    if runner is None or runner.protocol is None or not runner.interval_ns:
        return 0.0
    payload: int | None = runner.result.get("payload_bytes")
    if payload is None:
        return 0.0
    headers = (40 if ":" in runner.result.get("to", "") else 20) + 8
    return (payload + headers) * 8 * S / runner.interval_ns


def _control_bps(runner: Runner, way: Way) -> float:
    count: int | None = runner.result.get(f"control_{way}_bytes")
    if count is None or runner.from_ns is None or runner.to_ns is None or runner.to_ns <= runner.from_ns:
        return 0.0
    return count * 8 * S / (runner.to_ns - runner.from_ns)


def _flows_bps(run: Run, way: Way) -> float:
    """The rate of all flows of one direction together, each over the time from its first to its last count."""
    total = 0.0
    for series in run.meta.of_kind("bytes"):
        arrays = run.arrays(series)
        end = receiver_end(series.direction)
        t, counts = (arrays[name][arrays["end"] == end] for name in ("t_ns", "bytes"))
        if series.direction == way and len(t) > 1 and t[-1] > t[0]:
            total += float(np.max(counts) - counts[0]) * 8e9 / float(t[-1] - t[0])
    return total
