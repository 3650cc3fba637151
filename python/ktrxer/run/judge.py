# SPDX-License-Identifier: MIT OR Apache-2.0
"""Valid, degraded or invalid, and why: the design's table. Loss, delay and low throughput are results and no reasons here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ktrxer.estimate.throughput import bytes_rate, gap_ns, receiver_end
from ktrxer.places import LOCAL
from ktrxer.run.contradictions import contradictions, idle_apart, idle_delayed, losses_apart
from ktrxer.run.egress import changed, changed_elsewhere, routed_apart, softirqs_waited
from ktrxer.run.own_load import too_heavy
from ktrxer.runners import NAMES, defect, find
from ktrxer.runners import Runner as RunnerType
from ktrxer.runners.runner import Ended, Reason, Severity
from ktrxer.store import Run, one_line
from ktrxer.store.columns import ANSWERED, DUPLICATE, TOO_LATE
from ktrxer.store.meta import Runner, Series, Verdict

LATE_FLOOR_NS = 100_000  # late is later than a tenth of the interval, and than this
LATE_DEGRADED, LATE_INVALID = 0.01, 0.10
COVERAGE = 0.99
CHANGED = 0.01  # of the probes: so many may have lost their mark, of a path that changes for a moment
MARKS = "the DSCP or ECN"
CONNECT_NS = 500_000_000  # a flow may take so long to be there: handshakes, and the first sample
BUSY_PERCENT, BUSY_SHARE = 90, 0.05
EARLY_NS = 1_000_000_000
REASONS_MOST = 40
COUNTED = ("value", "range", "pair", "ip_capacity", "hop")

_ORDER: dict[str, int] = {"valid": 0, "degraded": 1, "invalid": 2}


@dataclass
class Book:
    verdict: Verdict = "valid"
    lines: list[tuple[str, str]] = field(default_factory=list)  # (subject, text)

    def say(self, severity: Severity, what: str, who: str = "") -> None:
        if _ORDER[severity] > _ORDER[self.verdict]:
            self.verdict = severity
        if (who, what) not in self.lines:
            self.lines.append((who, one_line(what)))

    def reasons(self) -> list[str]:
        """The same complaint of several processes once, with all their names, and with the figures of the worst."""
        grouped: dict[str, list[tuple[str, str]]] = {}
        for who, what in self.lines:
            grouped.setdefault(re.sub(r"[\d.]+ ?([mun]?s\b)?", "#", what), []).append((who, what))
        told = [_told([who for who, _ in like if who], [what for _, what in like]) for like in grouped.values()]
        return told[:REASONS_MOST] + ([f"and {len(told) - REASONS_MOST} more reasons"] if len(told) > REASONS_MOST else [])


def _told(names: list[str], texts: list[str]) -> str:
    worst = max(texts, key=_share)
    more = "" if len(set(texts)) == 1 else " (figures of the worst)" if len(set(map(_share, texts))) > 1 else " (figures of the first)"
    return f"{_list(names)}: {worst}{more}" if names else worst


def _share(what: str) -> float:
    found = re.search(r"([\d.]+) %", what)
    return float(found[1]) if found else 0.0


def _list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def judge(run: Run, noted: Iterable[tuple[Severity, str, str]] = (), runners: Mapping[str, RunnerType] | None = None) -> Book:
    """`noted`: reasons found while it ran (severity, text, name). `runners`: those of the run, by name; without them those of ktrxer,
    because a file must not choose which program of a user is executed."""
    book = Book()
    for severity, what, who in noted:
        book.say(severity, what, who)
    known = runners if runners is not None else {name: find(name) for name in NAMES}
    samples = {runner.id: _samples(run, runner) for runner in run.meta.runners}
    for runner in run.meta.runners:
        _runner(book, runner, samples[runner.id], known.get(runner.kind))
    for kind in dict.fromkeys(runner.kind for runner in run.meta.runners):
        of_kind = [runner for runner in run.meta.runners if runner.kind == kind]
        # A run is complete without the state of a host, and a host may have nothing of a kind.
        if not any(samples[runner.id] for runner in of_kind) and not all(runner.auxiliary for runner in of_kind):
            book.say("invalid", _nothing(run, kind, of_kind), _list([r.name for r in of_kind]))
    if samples and not any(samples.values()) and all(runner.auxiliary for runner in run.meta.runners):
        book.say("invalid", "nothing at all was recorded")
    for series in run.meta.series:
        if series.kind == "latency":
            _probes(book, run, series)
        elif series.kind == "bytes":
            _flow(book, run, series)
    for text in too_heavy(run):
        book.say("degraded", text)
    for text in (*contradictions(run), *losses_apart(run), *idle_apart(run), *idle_delayed(run)):
        book.say("degraded", text)
    for reason in (changed(run), routed_apart(run), softirqs_waited(run)):
        if reason is not None:
            book.say("degraded", reason)
    for text in changed_elsewhere(run):
        book.say("degraded", text)
    _host(book, run)
    return book


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


def _nothing(run: Run, kind: str, of_kind: list[Runner]) -> str:
    """The reason, if no process of this kind has a result."""
    series = next((series.kind for series in run.meta.series if series.runner == of_kind[0].id), "")
    what = {"latency": "no probe was answered", "bytes": "no byte arrived"}.get(series, "no result came")
    count = len(of_kind)
    return f"{kind} measured nothing: {what}" if count == 1 else f"none of the {count} processes of {kind} measured anything: {what}"


def _runner(book: Book, runner: Runner, samples: int, known: RunnerType | None) -> None:
    if known is not None and runner.status != "planned":
        for reason in _health(known, Ended(runner, samples)):
            book.say(reason.severity, reason.text, reason.name or runner.name)
    if runner.status == "failed" and not runner.argv:
        said = runner.stderr_tail.strip() or "no reason is known"
        book.say("degraded", f"it was no longer recorded: {said}", runner.name)
    elif runner.status in ("failed", "killed", "planned", "running"):
        book.say("degraded", f"the process {_how(runner)}", runner.name)
    elif known is not None and known.ends_itself:
        return
    elif runner.ended_ns is not None and runner.to_ns is not None and runner.ended_ns < runner.to_ns - EARLY_NS:
        book.say("degraded", f"it ended {(runner.to_ns - runner.ended_ns) / 1e9:.1f} s before its time", runner.name)


def _health(runner: RunnerType, ended: Ended) -> list[Reason]:
    try:
        return list(runner.health(ended))
    except (Exception, SystemExit) as error:  # a defect of a runner must not lose the run
        return [Reason("degraded", defect(runner, error))]


def _how(runner: Runner) -> str:
    """How it ended."""
    words = runner.stderr_tail.strip().splitlines()
    said = f": {words[-1]}" if words else ""
    if runner.status == "planned":
        return "never began" + said
    if runner.exit_status is None:
        return "was cut off" + said
    if runner.exit_status < 0:
        return f"was killed by signal {-runner.exit_status}{said}"
    return f"ended without a result (exit status {runner.exit_status}){said}"


def _probes(book: Book, run: Run, series: Series) -> None:
    arrays, runner = run.arrays(series), run.meta.runner_of(series)
    if runner is None or not runner.interval_ns:
        return
    first = arrays["state"] != DUPLICATE
    late_ns = arrays["lateness_ns"][first]
    late_ns = late_ns[~np.isnan(late_ns)]
    if len(late_ns) and runner.end is None:  # else the process has judged it, with the lost probes
        limit = max(runner.interval_ns / 10, LATE_FLOOR_NS)
        share = float((late_ns > limit).mean())
        if share > LATE_DEGRADED:
            severity: Severity = "invalid" if share > LATE_INVALID else "degraded"
            book.say(severity, f"{share:.1%} of the probes left more than {limit / 1000:.0f} us late", series.name)
    late = int((arrays["state"] == TOO_LATE).sum())
    if late and not _number(runner.end, "too_late"):  # else a reason of the process, with the same remedy
        longest = np.nanmax(arrays["rtt_ns"][arrays["state"] == TOO_LATE]) / 1e9
        remedy = "they are not among the lost, and their delays are recorded; a longer --timeout has them in the statistics"
        book.say("degraded", f"{late} answers came after the time-out, the last after {longest:.1f} s: {remedy}", series.name)
    end = _end_of(run, runner, series)
    received, rows = end.get("received"), int((arrays["state"] == ANSWERED).sum())
    # An object that found no room held many of them, and is complained of by itself.
    dropped = _number((runner.end or {}).get("output", {}), "dropped")
    if isinstance(received, int) and not dropped and rows + _number(end, "untimed") < received:
        book.say("invalid", f"the accounts do not close: {received} probes were answered, but {rows} answers are recorded", series.name)
    for way in ("up", "down"):
        # A small `ktrxer stamp` has the counts, and no reason of its own.
        changed = _number(end, f"mark_changed_{way}")
        said = any(who == runner.name and MARKS in line and f"probes {way}" in line for who, line in book.lines)
        if isinstance(received, int) and changed > CHANGED * received and not said:
            what = "routers behind that place see another mark than was sent"
            book.say("degraded", f"{MARKS} of {changed / received:.0%} of the probes {way} was changed on the path: {what}", series.name)
    if runner.from_ns is not None and runner.to_ns is not None and runner.status == "ended":
        due = (runner.to_ns - runner.from_ns) // runner.interval_ns
        there = int(first.sum()) + _number(end, "unanswered_at_end")
        if due and there < COVERAGE * due - 1:
            why = "the process stood still, or ended early"
            book.say("degraded", f"only {there} of {due} probes are recorded ({there / due:.1%}): {why}", series.name)


def _end_of(run: Run, runner: Runner, series: Series) -> dict[str, Any]:
    """The figures of this series in the last object of its process: each class has its own."""
    end = runner.end or {}
    classes = end.get("classes")
    if not isinstance(classes, list):
        return end
    mine = [one.id for one in run.meta.of_kind("latency") if one.runner == runner.id]
    place = mine.index(series.id)
    own = classes[place] if place < len(classes) else None
    return own if isinstance(own, dict) else {}


def _number(made: Any, name: str) -> int:
    value = made.get(name) if isinstance(made, dict) else None
    return value if isinstance(value, int) else 0


def _flow(book: Book, run: Run, series: Series) -> None:
    runner, arrays = run.meta.runner_of(series), run.arrays(series)
    if runner is None or runner.from_ns is None or runner.to_ns is None or not runner.interval_ns or runner.to_ns <= runner.from_ns:
        return
    end = receiver_end(series.direction)
    there = arrays["end"] == end
    side = "receiver"
    if not there.any() and (arrays["end"] == 1 - end).any():
        there, side = arrays["end"] == 1 - end, "sender"
        what = "its throughput is of the bytes that the sender counted"
        book.say("degraded", f"the byte counts of the receiver are missing: {what}", series.name)
    span = np.asarray([runner.from_ns, runner.to_ns], np.int64)
    seen = bytes_rate(arrays["t_ns"][there], arrays["bytes"][there], span, gap_ns=gap_ns(runner.interval_ns)).coverage[0]
    missing = (1 - float(seen)) * (runner.to_ns - runner.from_ns)
    if missing > (1 - COVERAGE) * (runner.to_ns - runner.from_ns) + CONNECT_NS:
        why = "the flow began late, or counts are missing"
        book.say("degraded", f"only {seen:.1%} of its time is covered by byte counts of the {side}: {why}", series.name)


def _host(book: Book, run: Run) -> None:
    said = any("processors of this host" in what for _, what in book.lines)
    for series in run.meta.of_kind("host"):
        arrays, runner = run.arrays(series), run.meta.runner_of(series)
        local = runner is None or runner.place == LOCAL
        if local and said:
            continue  # the processes have said it themselves
        where = f"host {run.meta.host.name}" if runner is None or local else runner.place
        for name, what in (("cpu_percent", "its processors were busy"), ("steal_percent", "its hypervisor gave its processors to others")):
            known = arrays[name][~np.isnan(arrays[name])]
            share = float((known > BUSY_PERCENT).mean()) if len(known) else 0
            if share > BUSY_SHARE:
                book.say("degraded", f"{what} to more than {BUSY_PERCENT} % for {share:.0%} of the run", where)
