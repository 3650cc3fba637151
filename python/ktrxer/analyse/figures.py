# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of one run under stable keys, for comparison and for export."""

from __future__ import annotations

from ktrxer.analyse.figure import Better, Figure, word
from ktrxer.figures.delays import ROUND_TRIP, headline
from ktrxer.statistics.latency import Delays
from ktrxer.store import Run
from ktrxer.summary.figures import COMPARED, compared
from ktrxer.summary.model import Summary

_QUANTILES = ("p50", "p95", "p99")


def of_run(run: Run) -> list[Figure]:
    """Those of its summary, in a third of the time."""
    return of_summary(compared(run))


def narrow(run: Run) -> Run:
    """The run then reads only the columns that `of_run` needs."""
    run.narrow(COMPARED)
    return run


def of_summary(summary: Summary) -> list[Figure]:
    """A figure that a run does not have is absent. The order is that of the summary."""
    made: list[Figure] = []
    first = headline(summary.latency)
    for one in summary.latency:
        probes = f"{one.probes} " if one.probes else ""
        key = f"{word(one.probes or 'probe')}.{word('rtt' if one.name == ROUND_TRIP else one.name)}"
        main = one is first or one.name in ("up", "down")
        if one.idle is not None:
            made += _delays(f"{key}.idle", f"{probes}{one.name}, idle", one.idle, main and one.loaded is None)
        if one.loaded is not None:
            made += _delays(f"{key}.load", f"{probes}{one.name}, loaded", one.loaded, main)
    if summary.grade is not None:
        made.append(Figure("added", "delay that load adds to the p50", "ms", summary.grade.added_ms, "lower"))
    for rate in summary.throughput:
        if rate.mean_mbps is not None:
            made.append(Figure(f"rate.{word(rate.name)}", f"{rate.name}, mean rate", "Mbit/s", rate.mean_mbps, "higher", True))
    for loss in summary.loss:
        lost = 100 * loss.lost / loss.sent
        made.append(Figure(f"loss.{word(loss.name)}", f"probes lost, {loss.name}", "%", lost, "lower", loss.name == "load"))
    if summary.responsiveness is not None:
        made.append(Figure("rpm", "responsiveness", "1/min", summary.responsiveness.rpm, "higher"))
    for estimate in summary.estimates:
        # Delays and shares of lost packets are better when lower, rates when higher.
        wanted: Better = "lower" if estimate.unit in ("ms", "us", "%") else "higher"
        ends = [("", estimate.value)] if estimate.value is not None else [(".low", estimate.low), (".high", estimate.high)]
        for end, value in ends:
            if value is not None:
                label = f"{estimate.name}, {end[1:]} end" if end else estimate.name
                made.append(Figure(f"estimate.{word(estimate.name)}{end}", label, estimate.unit, value, wanted))
    known = {one.key for one in made}
    for series in summary.series:  # of runs without probes and flows of ours: imported ones, and values of other tools
        key = f"value.{word(series.name)}"
        if series.kind == "value" and series.mean is not None and key not in known:
            better: Better = "lower" if series.unit in ("ms", "us", "s") else "higher"
            made.append(Figure(key, f"{series.name}, mean", series.unit, series.mean, better))
            known.add(key)
    return made


def _delays(key: str, label: str, found: Delays, main: bool) -> list[Figure]:
    return [Figure(f"{key}.{name}", f"{label}, {name}", "ms", getattr(found, name), "lower", main and name != "p99") for name in _QUANTILES]

