# SPDX-License-Identifier: MIT OR Apache-2.0
"""Facts about the series of a run that several figures need: counts and sample intervals of flows, kinds of probes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.throughput import receiver_end
from ktrxer.store import Run
from ktrxer.store.meta import Runner, Series

STALLED = ", stalled"  # of probes without round trips in a part of the load
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]  # times, received bytes so far


def probes_of(run: Run, series: Series) -> str:
    """The kind of a series' probes. The hosts process each kind differently: a kernel answers an ICMP echo request, a program or XDP
    answers a datagram. So the round trips of two kinds cannot be compared and are never pooled."""
    runner = run.meta.runner_of(series)
    stalled = STALLED if series.name in _names(run.meta.metadata.get("stalled")) else ""
    if runner is not None and runner.protocol is not None:
        return runner.protocol + _path(run, runner) + stalled
    named = re.search(r"\b(UDP|ICMP|TCP|HTTP|DNS|VoIP)(?=6?\d*\b)", series.name)
    return (named[1] if named else "other") + stalled


def counts_losses(run: Run, series: Series) -> bool:
    """Whether the samples show lost probes of the path. Those of netperf's UDP_RR in a file of Flent, and pings to other hosts, do not."""
    runner = run.meta.runner_of(series)
    return series.name not in _names(run.meta.metadata.get("unnumbered")) and not (runner is not None and beside(run, runner))


def _names(found: object) -> dict[object, object]:
    return found if isinstance(found, dict) else {}


def stored_mbps(run: Run, series: Series) -> tuple[float, float | None] | None:
    """The mean rate of a flow, and the seconds that it ran, as Flent stored them from its tool's own total."""
    flent = run.meta.metadata.get("flent")
    described = flent.get("SERIES_META") if isinstance(flent, dict) else None
    one = described.get(series.data_name or series.name) if isinstance(described, dict) else None
    if not isinstance(one, dict) or not isinstance(flent, dict):
        return None
    mean: Any = one.get("MEAN_VALUE")
    seconds: Any = one.get("ELAPSED_TIME")
    if not _positive(seconds):
        found = re.search(r" -l (\d+(?:\.\d+)?)\b", command) if isinstance(command := one.get("COMMAND"), str) else None
        seconds = float(found[1]) if found else flent.get("LENGTH")
    return (float(mean), float(seconds) if _positive(seconds) else None) if _positive(mean) else None


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def _path(run: Run, runner: Runner) -> str:
    """The far end where a run has several, and the family where the test gives one: round trips of two paths are never pooled, either."""
    family = {"-4": " over IPv4", "-6": " over IPv6"}.get(str(runner.parameters.get("family")), "")
    return (f" to {runner.host}" if runner.host and (len(run.meta.targets) > 1 or beside(run, runner)) else "") + family


def beside(run: Run, runner: Runner) -> bool:
    """Whether its probes go to a host that is no far end of the test (`run --ping-host`)."""
    return bool(run.meta.targets) and bool(runner.host) and runner.host not in run.meta.targets


def flow_counts(run: Run, series: Series) -> tuple[NDArray[np.int64], NDArray[np.int64], str]:
    """Times, received bytes so far, and a note if only the sender's counts exist."""
    arrays = run.arrays(series)
    end = receiver_end(series.direction)
    there, note = arrays["end"] == end, ""
    if not there.any():
        there, note = arrays["end"] == 1 - end, "bytes that the sender counted"
        # iperf's last count may come seconds later.
        if (runner := run.meta.runner_of(series)) is not None and runner.to_ns:
            there &= arrays["t_ns"] <= runner.to_ns + interval_ns(run, series)
    return arrays["t_ns"][there], arrays["bytes"][there], note


def interval_ns(run: Run, series: Series) -> int:
    """The time between its samples; that of Flent where the run does not have it."""
    runner = run.meta.runner_of(series)
    return (runner.interval_ns if runner is not None else None) or 200_000_000


def flow_facts(run: Run) -> tuple[dict[int, Counts], dict[int, int], dict[int, str]]:
    """The counts and sample intervals of flows, and the kinds of probes, by the number of the series."""
    flows = run.meta.of_kind("bytes")
    return (
        {one.id: flow_counts(run, one)[:2] for one in flows},
        {one.id: interval_ns(run, one) for one in flows},
        {one.id: probes_of(run, one) for one in run.meta.of_kind("latency")},
    )
