# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of a run that a person reads first. The samples of the run stay available beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.bound import read as read_bounds
from ktrxer.figures.delays import DIRECTIONS, Direction, headline, idle_and_loaded, latencies, of_phases, pooled
from ktrxer.figures.facts import flow_counts, flow_facts, probes_of, stored_mbps
from ktrxer.figures.throughput import COVERED, TOTAL, imported_mean, sample_gap_ns, throughput
from ktrxer.statistics.latency import Delays, delays, grade, responsiveness_class, responsiveness_rpm, scale_text
from ktrxer.statistics.throughput import bytes_rate, edges, receiver_end
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Series
from ktrxer.summary import VOICE, losses
from ktrxer.summary.byte_outages import ByteOutage, byte_outages, longest_of_all
from ktrxer.summary.findings import Findings
from ktrxer.summary.lateness import first_lateness
from ktrxer.summary.methods import estimates, hops
from ktrxer.summary.model import Grade, Late, Responsiveness, SeriesFigures, Summary
from ktrxer.summary.outages import Outage, capped, outages
from ktrxer.summary.steps import Step, steps
from ktrxer.summary.times import phase_times, processor_times
from ktrxer.summary.where import Part, own_qdisc, parts

if TYPE_CHECKING:  # a comparison does not need them, nor the modules of `ktrxer run` that they import
    from ktrxer.summary.voice import Voice

S = 10**9
FIRST_WINDOW_BYTES = 10 * 1460  # RFC 6928
WINDOW_NS = S  # window of the rates whose p50 and p99 are reported
# The columns of the largest tables that `compared` reads.
COMPARED = {
    "latency": ("series", "t_ns", "state", *(column for _, column in DIRECTIONS)),
    "bytes": ("series", "t_ns", "end", "bytes"),
    "tcp_info": ("series", "t_ns", "end", "rtt_us"),
}


def _voice(run: Run) -> list[Voice]:
    if not any(series.group == VOICE for series in run.meta.of_kind("latency")):
        return []  # without the import of the model
    from ktrxer.summary.voice import ratings

    return ratings(run)


def summarise(run: Run) -> Summary:
    """All figures of a run. A statement that contradicts a figure is left out."""
    from ktrxer.run.contradictions import idle_apart, idle_delayed
    from ktrxer.run.egress import own_drops
    from ktrxer.run.own_load import own_loads
    from ktrxer.summary.changes import changes
    from ktrxer.summary.consistent import consistent
    from ktrxer.summary.policer import policed

    made = compared(run, whole=True)
    facts = (run, *flow_facts(run))
    findings = Findings(list(made.failed))
    take = findings.take
    # A grade without its checks would be a claim that nothing supports.
    doubt = take("doubts of the grade", lambda: any(idle_apart(run)) or any(idle_delayed(run)) or _hosts_limit(run), True)
    full = replace(
        made, grade=None if doubt else made.grade,
        series=[found for series in run.meta.series if (found := take(series.name, partial(_series, run, series), None)) is not None],
        lateness_us=take("lateness", lambda: delays(pooled(run, run.meta.of_kind("latency"), "lateness_ns") / 1e3), None),
        first_lateness_us=take("lateness of trains", lambda: first_lateness(run), None),
        where=take("where load adds delay", lambda: _where(run, made.latency), []),
        own_load=take("measurement load", lambda: own_loads(run), []),
        late=take("late probes", lambda: _late(run), []), left_out=take("answers in no figure", lambda: _left_out(run), {}),
        own_drops=take("this host's own drops", lambda: own_drops(run), None), hops=take("routers", lambda: hops(run), []),
        voice=take("ratings of calls", lambda: _voice(run), []), steps=take("steps", lambda: _steps(run, made.latency), []),
        changes=take("levels", lambda: changes(*facts), []), policed=take("policer", lambda: policed(*facts), []),
        phases=take("phases", lambda: phase_times(run), []), processor_time=take("processor time", lambda: processor_times(run), []),
        loss_of_run=take("loss", lambda: losses.of_run(run), None),
        bounds=read_bounds(run.meta.accounts.get("bounds")), unknown=run.meta.unknown,
    )  # fmt: skip
    return consistent(replace(full, failed=findings.failed), run)


def compared(run: Run, whole: bool = False) -> Summary:
    """The figures that are compared between runs (analyse/figures.py). Without `whole` delays have no interval, no classes and no bound:
    a comparison computes its intervals from whole runs."""
    meta = run.meta
    findings = Findings()
    take = findings.take
    latency: list[Direction] = take("delays", lambda: latencies(run, whole), [])
    loaded = _load_got_through(run)
    dead: list[Outage] = take("outages", lambda: outages(run, flow_facts(run)[2]), [])
    stalled: list[ByteOutage] = take("outages of flows", lambda: byte_outages(run), [])
    outage_ms = longest_of_all(dead, stalled)
    loaded = loaded and not findings.failed  # no grade without the outages that limit it
    return Summary(
        run.name, meta.test, meta.title, meta.created, meta.length_ns / S, meta.targets, meta.verdict, meta.reasons,
        series=[made for series in meta.of_kind("value") if (made := _series(run, series)) is not None],
        latency=latency, throughput=take("throughput", lambda: throughput(run), []), loss=take("loss", lambda: losses.of_phases(run), []),
        responsiveness=take("responsiveness", lambda: _responsiveness(run, latency, outage_ms), None) if loaded else None,
        grade=take("grade", lambda: _grade(latency, outage_ms), None) if loaded else None,
        estimates=take("estimates", lambda: estimates(run), []), outages=dead, byte_outages=stalled, failed=findings.failed,
    )  # fmt: skip


def _ends(run: Run) -> list[dict[str, Any]]:
    """The `end` objects of the processes that sent probes."""
    return [runner.result for runner in run.meta.runners if runner.protocol is not None]


def _late(run: Run) -> list[Late]:
    made: dict[float, Late] = {}
    for end in _ends(run):
        late, sent, after = end.get("late"), end.get("sent"), end.get("late_after_us")
        if late is not None and sent is not None and after is not None:
            before = made.get(after, Late(0, 0, after))
            made[after] = Late(before.count + late, before.sent + sent, after)
    return [made[after] for after in sorted(made)]


def _left_out(run: Run) -> dict[str, int]:
    untimed = sum(end.get("untimed", 0) for end in _ends(run))
    wrong = 0
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        wrong += int(((arrays["state"] == ANSWERED) & np.isnan(arrays["rtt_ns"])).sum())
    return {reason: count for reason, count in (("without stamps", untimed), ("shorter than 0", wrong)) if count}


def _load_got_through(run: Run) -> bool:
    """Whether the flows moved more than their first windows. Without that there is no delay under load. True if a run has no flows."""
    flows = run.meta.of_kind("bytes")
    moved = sum(int(counts.max() - counts.min()) for series in flows if len(counts := flow_counts(run, series)[1]))
    return not flows or moved > FIRST_WINDOW_BYTES * len(flows)


def _hosts_limit(run: Run) -> bool:
    """Whether a host limits all flows of a process, by its sockets or because the sender was stopped, so that the load does not fill the
    path in this direction."""
    flows = [runner.result.get("flows", []) for runner in run.meta.runners if runner.kind == "flow"]
    return any(end and all(one.get("receiver_limited") or one.get("sender_limited") for one in end) for end in flows)


def _grade(latency: list[Direction], outage_ms: float) -> Grade | None:
    trip = headline(latency)
    if trip is None or trip.idle is None or trip.loaded is None or math.isinf(trip.idle.p50):
        return None
    added = max(0.0, trip.loaded.p50 - trip.idle.p50)
    letter = capped(grade(added), outage_ms)
    return Grade(letter, added, scale_text(), trip.probes, trip.idle.p50, outage_ms if letter != grade(added) else 0.0)


def _where(run: Run, latency: list[Direction]) -> list[Part]:
    trip = headline(latency)
    if trip is None or trip.idle is None or trip.loaded is None:
        return []
    members = [series for series in run.meta.of_kind("latency") if probes_of(run, series) == trip.probes]
    idle = "idle_before" if len(pooled(run, members, "rtt_ns", ["idle_before"])) else "idle_after"
    values = [{column: pooled(run, members, column, [phase]) for _, column in DIRECTIONS} for phase in (idle, "load")]
    names = {own_qdisc(runner) for series in members if (runner := run.meta.runner_of(series)) is not None} - {""}
    return parts(values[0], values[1], "/".join(sorted(names)))


def _steps(run: Run, latency: Sequence[Direction]) -> list[Step]:
    trip = headline(latency)
    return steps(run, [series for series in run.meta.of_kind("latency") if trip is not None and probes_of(run, series) == trip.probes])


def _responsiveness(run: Run, latency: list[Direction], outage_ms: float) -> Responsiveness | None:
    load = run.meta.phase("load")
    if load is None:
        return None
    own = [np.empty(0)]
    for series in run.meta.of_kind("tcp_info"):
        if series.direction is None:
            continue  # a socket of another program
        arrays = run.arrays(series)
        sender = arrays["end"] == 1 - receiver_end(series.direction)
        # The first estimate is that of the handshake, before the flow has loaded the path.
        first_ns = np.min(arrays["t_ns"][sender], initial=load.to_ns)
        loaded = sender & (arrays["t_ns"] > max(first_ns, load.from_ns)) & (arrays["t_ns"] < load.to_ns)
        own.append(arrays["rtt_us"][loaded] / 1e3)
    trip = headline(latency)
    kind = trip.probes if trip is not None and trip.loaded is not None else ""
    foreign = [series for series in run.meta.of_kind("latency") if probes_of(run, series) == kind]
    made = responsiveness_rpm(pooled(run, foreign, "rtt_ns", ["load"]) / 1e6, np.concatenate(own))
    if made is None:
        return None
    rpm, foreign_rpm, self_rpm = made
    # A mean of both hides that one of them is slow: 2,809 and 292 round trips a minute have a mean that is called good.
    limits = {"": rpm, "outage": 60_000 / outage_ms if outage_ms else rpm, "probes": foreign_rpm or rpm, "flows": self_rpm or rpm}
    classes = {name: responsiveness_class(value) for name, value in limits.items()}
    least = min(limits, key=lambda name: limits[name])
    by = least if classes[least] != classes[""] else ""
    return Responsiveness(rpm, foreign_rpm, self_rpm, classes[least], kind, outage_ms if by == "outage" else 0.0, by)


def _series(run: Run, series: Series) -> SeriesFigures | None:
    arrays = run.arrays(series)
    common: dict[str, Any] = {"direction": series.direction, "klass": series.klass}
    if series.kind == "latency":
        load = run.meta.phase("load")
        found = of_phases(run, [series], "rtt_ns", ["load"] if load is not None else [], interval=False)
        idle = idle_and_loaded(run, [series], "rtt_ns", interval=False)[0] if load is not None else None
        note = f"and {found.lost} lost" if found is not None and found.lost else ""
        made = _figures(series, "ms", found, found.count if found is not None else 0, note=note, **common)
        return replace(made, idle_p50=idle.p50 if idle is not None else None)
    if series.kind == "bytes":
        t, counts, note = flow_counts(run, series)
        if len(t) < 2:
            return _figures(series, "Mbit/s", None, len(t), note=note or "fewer than two samples", **common)
        windows = bytes_rate(t, counts, edges(int(t[0]), int(t[-1]), WINDOW_NS), gap_ns=sample_gap_ns(run, series))
        found = delays(windows.rate_bps() / 1e6)
        mean = float(counts[-1] - counts[0]) * 8e3 / float(t[-1] - t[0]) if t[-1] > t[0] else None
        p50, p99 = (found.p50, found.p99) if found is not None else (None, None)
        if (total := imported_mean(run, series, t, counts)) is not None:
            mean, note = total[0], "; ".join(filter(None, [note, total[1]]))
        return SeriesFigures(series.name, series.kind, "Mbit/s", mean, p50, p99, len(t), note=note, **common)
    if series.kind == "value":
        runner = run.meta.runner_of(series)
        kind = "state" if runner is not None and runner.auxiliary else "value"
        values, unit = (_growth(arrays), f"{series.unit or 1}/s") if series.count else (arrays["value"], series.unit)
        found = delays(values)
        made = replace(_figures(series, unit, found, found.count if found is not None else 0, **common), kind=kind)
        return _sparse(run, made, series, arrays["t_ns"]) if series.unit == "Mbits/s" and "flent" in run.meta.metadata else made
    return None


def _sparse(run: Run, made: SeriesFigures, series: Series, t: NDArray[Any]) -> SeriesFigures:
    """An imported rate whose points cover only a part of the load: its quantiles are those of another time, and its mean is the total in
    the file, if it has one."""
    load = run.meta.phase("load")
    inside = t[(t >= load.from_ns) & (t <= load.to_ns)] if load is not None else t
    step = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    if load is None or len(inside) * step >= COVERED * (load.to_ns - load.from_ns):
        return made
    total = stored_mbps(run, series)
    note = TOTAL if total is not None else "its points do not cover the load"
    return replace(made, mean=total[0] if total is not None else None, p50=None, p99=None, note=note)


def _growth(arrays: Mapping[str, Any]) -> NDArray[np.float64]:
    """The growth of a count in each second between two samples."""
    passed, grown = np.diff(arrays["t_ns"]), np.diff(arrays["value"])
    ok = (passed > 0) & (grown >= 0)  # a count that decreases was restarted
    return np.asarray(grown[ok] * 1e9 / passed[ok], np.float64)


def _figures(series: Series, unit: str, found: Delays | None, count: int, **more: Any) -> SeriesFigures:
    mean, p50, p99 = (found.mean, found.p50, found.p99) if found is not None else (None, None, None)
    return SeriesFigures(series.name, series.kind, unit, mean, p50, p99, count, **more)
