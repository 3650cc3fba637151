# SPDX-License-Identifier: MIT OR Apache-2.0
"""Valid, degraded or invalid, and why: the design's table. Loss, delay and low throughput are results and no reasons here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ktrxer.figures.bounds import CONNECT_NS, Judged
from ktrxer.run.contradictions import contradictions, idle_apart, idle_delayed, losses_apart
from ktrxer.run.egress import changed, changed_elsewhere, routed_apart
from ktrxer.run.own_load import too_heavy
from ktrxer.runners import NAMES, defect, find
from ktrxer.runners import Runner as RunnerType
from ktrxer.runners.runner import Ended
from ktrxer.statistics.throughput import bytes_rate, gap_ns, receiver_end
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, TOO_LATE
from ktrxer.store.errors import one_line
from ktrxer.store.meta import Runner, Series, Verdict
from ktrxer.store.reason_table import COVERAGE_PERCENT, MARKS_CHANGED_PERCENT
from ktrxer.store.reasons import Reason, listed, reason, together

EARLY_NS = 1_000_000_000
REASONS_MOST = 40
# The process judges its whole time. The run judges its own figures, by phases and directions.
OF_PROCESS = ("bound_wide", "bound_unknown")
COUNTED = ("value", "range", "pair", "ip_capacity", "hop")

_ORDER: dict[str, int] = {"valid": 0, "degraded": 1, "invalid": 2}


@dataclass
class VerdictBuilder:
    verdict: Verdict = "valid"
    found: list[Reason] = field(default_factory=list)
    measured: bool = False  # a process, except those that record the state of a host, has a result

    def add(self, one: Reason, name: str = "") -> None:
        """`name`: of the process or series, unless the reason has one."""
        if _ORDER[one.severity] > _ORDER[self.verdict]:
            self.verdict = one.severity
        if (one := one.named(name)) not in self.found:
            self.found.append(one)

    def reasons(self) -> list[Reason]:
        made = together(self.found)
        more = len(made) - REASONS_MOST
        return made if more <= 0 else [*made[:REASONS_MOST], reason("more_reasons", more=more)]


def judge(
    run: Run, noted: Iterable[Reason] = (), runners: Mapping[str, RunnerType] | None = None, bounds: Iterable[Judged] = ()
) -> VerdictBuilder:
    """`noted`: reasons found while it ran. `runners`: those of the run, by name; without them those of ktrxer, because a file must not
    choose which program of a user is executed. `bounds`: those of the headline figures."""
    built, judged = VerdictBuilder(), list(bounds)
    rated = {bound.figure for bound in judged}
    for one in noted:
        built.add(one)
    known = runners if runners is not None else {name: find(name) for name in NAMES}
    samples = {runner.id: _samples(run, runner) for runner in run.meta.runners}
    built.measured = any(samples[runner.id] for runner in run.meta.runners if not runner.auxiliary) or any(
        samples[runner.id] for runner in run.meta.runners if all(one.auxiliary for one in run.meta.runners)
    )
    for runner in run.meta.runners:
        _runner(built, runner, samples[runner.id], known.get(runner.kind))
    for kind in dict.fromkeys(runner.kind for runner in run.meta.runners):
        of_kind = [runner for runner in run.meta.runners if runner.kind == kind]
        # A run is complete without the state of a host, and a host may have nothing of a kind.
        if not any(samples[runner.id] for runner in of_kind) and not all(runner.auxiliary for runner in of_kind):
            built.add(_nothing(run, kind, of_kind), listed(r.name for r in of_kind))
    if samples and not any(samples.values()) and all(runner.auxiliary for runner in run.meta.runners):
        built.add(reason("nothing_recorded"))
    for series in run.meta.series:
        if series.kind == "latency":
            _probes(built, run, series)
        elif series.kind == "bytes":
            _flow(built, run, series, f"rate_{series.direction}" in rated)
    for finding, check in CHECKS:
        for each in _checked(finding, check, run):
            built.add(each)
    for bound in judged:
        if not bound.holds:
            built.add(_doubtful(bound))
    return built


def _doubtful(one: Judged) -> Reason:
    if one.bound is None:
        return reason("bound_unknown", figure=one.name, why=one.why)
    size, bound, allowed = one.text(one.value), one.text(one.bound), one.text(one.tolerance)
    return reason("bound_wide", figure=one.name, value=size, bound=bound, tolerance=allowed, why=one.why)


def _one(check: Callable[[Run], Reason | None]) -> Callable[[Run], Iterable[Reason]]:
    return lambda run: [found] if (found := check(run)) is not None else []


CHECKS: tuple[tuple[str, Callable[[Run], Iterable[Reason | None]]], ...] = (
    ("the load of the measurement", too_heavy), ("contradictions of probes", contradictions), ("losses by protocol", losses_apart),
    ("idle delays by protocol", idle_apart), ("idle delays", idle_delayed), ("changed qdiscs", _one(changed)),
    ("routes of flows and probes", _one(routed_apart)),
    ("changed qdiscs of other places", changed_elsewhere),
)  # fmt: skip


def _checked(finding: str, check: Callable[[Run], Iterable[Reason | None]], run: Run) -> list[Reason]:
    """A defect of a check must not lose the run, nor the other checks."""
    try:
        return [each for each in check(run) if each is not None]
    except Exception as error:
        return [reason("check_failed", finding=finding, error=one_line(f"{type(error).__name__}: {error}", 200))]


def _samples(run: Run, runner: Runner) -> int:
    """Answered probes, flows that moved bytes, rows of the tables in which each row is a result, and all samples
    of a host's state."""
    count = 0
    for series in run.meta.series:
        if series.runner != runner.id:
            continue
        arrays = run.arrays(series)
        if runner.auxiliary:
            count += len(arrays["t_ns"])
        elif series.kind == "latency":
            count += int((arrays["state"] == ANSWERED).sum())
        elif series.kind == "bytes" and len(arrays["bytes"]):
            count += int(arrays["bytes"].max() > 0)
        elif series.kind in COUNTED:
            count += len(arrays["t_ns"])
    return count


def _nothing(run: Run, kind: str, of_kind: list[Runner]) -> Reason:
    """The reason, if no process of this kind has a result."""
    series = next((series.kind for series in run.meta.series if series.runner == of_kind[0].id), "")
    what = {"latency": "no probe was answered", "bytes": "no byte arrived"}.get(series, "no result came")
    count = len(of_kind)
    if count == 1:
        return reason("measured_nothing", kind=kind, result=what)
    return reason("none_measured", processes=count, kind=kind, result=what)


def _runner(built: VerdictBuilder, runner: Runner, samples: int, known: RunnerType | None) -> None:
    if known is not None and runner.status != "planned":
        for one in _health(known, Ended(runner, samples)):
            if one.id not in OF_PROCESS:
                built.add(one, runner.name)
    if runner.status == "failed" and not runner.argv:
        stated = runner.stderr_tail.strip() or "no reason is known"
        built.add(reason("not_recorded", error=stated), runner.name)
    elif runner.status in ("failed", "killed", "planned", "running"):
        built.add(reason("process_failed", ending=_how(runner)), runner.name)
    elif (known is not None and known.ends_itself) or runner.to_ns == runner.from_ns:  # or stopped before its time
        return
    elif runner.ended_ns is not None and runner.to_ns is not None and runner.ended_ns < runner.to_ns - EARLY_NS:
        built.add(reason("ended_before_time", early_s=(runner.to_ns - runner.ended_ns) / 1e9), runner.name)


def _health(runner: RunnerType, ended: Ended) -> list[Reason]:
    try:
        return list(runner.health(ended))
    except (Exception, SystemExit) as error:  # a defect of a runner must not lose the run
        return [reason("runner_defect", error=defect(runner, error))]


def _how(runner: Runner) -> str:
    """How it ended."""
    words = runner.stderr_tail.strip().splitlines()
    stated = f": {words[-1]}" if words else ""
    if runner.status == "planned":
        return "never began" + stated
    if runner.exit_status is None:
        return "was cut off" + stated
    if runner.exit_status < 0:
        return f"was killed by signal {-runner.exit_status}{stated}"
    return f"ended without a result (exit status {runner.exit_status}){stated}"


def _probes(built: VerdictBuilder, run: Run, series: Series) -> None:
    arrays, runner = run.arrays(series), run.meta.runner_of(series)
    if runner is None or not runner.interval_ns:
        return
    late = int((arrays["state"] == TOO_LATE).sum())
    if late and not runner.result.get("too_late"):  # else a reason of the process, with the same remedy
        longest = float(np.nanmax(arrays["rtt_ns"][arrays["state"] == TOO_LATE])) / 1e9
        built.add(reason("answers_too_late", too_late=late, longest_s=longest), series.name)
    end = _end_of(run, runner, series)
    received, rows = end.get("received"), int((arrays["state"] == ANSWERED).sum())
    # An object that found no room held many of them, and is complained of by itself.
    dropped = runner.result.get("output", {}).get("dropped")
    if received is not None and not dropped and rows + end.get("untimed", 0) < received:
        built.add(reason("answers_missing", received=received, recorded=rows), series.name)
    for way in ("up", "down"):
        # A small `ktrxer stamp` has the counts, and neither marks nor a reason of its own.
        if f"marks_{way}" in end:
            continue
        changed = end.get(f"mark_changed_{way}", 0)
        known = any(one.id == "marks_changed" and one.name == runner.name and one.values.get("direction") == way for one in built.found)
        if received is not None and 100 * changed > MARKS_CHANGED_PERCENT * received and not known:
            built.add(reason("marks_changed", changed_percent=100 * changed / received, direction=way, of_class=""), series.name)


def _end_of(run: Run, runner: Runner, series: Series) -> dict[str, Any]:
    """The figures of this series in the last object of its process: each class has its own."""
    classes: list[dict[str, Any]] | None = runner.result.get("classes")
    if classes is None:
        return runner.result
    mine = [one.id for one in run.meta.of_kind("latency") if one.runner == runner.id]
    place = mine.index(series.id)
    return classes[place] if place < len(classes) else {}


def _flow(built: VerdictBuilder, run: Run, series: Series, rated: bool) -> None:
    """`rated`: the bound of the rate of its direction contains what is missing."""
    runner, arrays = run.meta.runner_of(series), run.arrays(series)
    if runner is None or runner.from_ns is None or runner.to_ns is None or not runner.interval_ns or runner.to_ns <= runner.from_ns:
        return
    end = receiver_end(series.direction)
    there = arrays["end"] == end
    side = "receiver"
    if not there.any() and (arrays["end"] == 1 - end).any():
        there, side = arrays["end"] == 1 - end, "sender"
        built.add(reason("receiver_counts_missing"), series.name)
    if rated:
        return
    span = np.asarray([runner.from_ns, runner.to_ns], np.int64)
    seen = bytes_rate(arrays["t_ns"][there], arrays["bytes"][there], span, gap_ns=gap_ns(runner.interval_ns)).coverage[0]
    missing = (1 - float(seen)) * (runner.to_ns - runner.from_ns)
    if missing > (1 - COVERAGE_PERCENT / 100) * (runner.to_ns - runner.from_ns) + CONNECT_NS:
        built.add(reason("counts_missing", covered_percent=100 * float(seen), side=side), series.name)
