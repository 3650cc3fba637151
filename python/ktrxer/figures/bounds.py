# SPDX-License-Identifier: MIT OR Apache-2.0
"""The headline figures of a run with their error bounds: rate of each direction; idle and loaded p50, delay that load adds, and loss of
each kind of probes (docs/decisions/0077). The verdict is made of them, and the file of the run keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.bound import Bound, number
from ktrxer.figures.delays import kinds_of, pooled
from ktrxer.figures.throughput import group
from ktrxer.statistics.error_bounds import of_loss, of_median, of_rate, tolerances
from ktrxer.statistics.latency import delays, p50_interval
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, DUPLICATE, FAILED, LOST, LOST_DOWN, LOST_UP, SKIPPED, TOO_LATE
from ktrxer.store.meta import Phase, Runner, Series

CONNECT_NS = 500_000_000  # a flow may take so long to be there: handshakes, and the first sample
PROBERS = ("ping", "stamp")  # kinds of processes that keep the schedule of the run, and stamp their probes with the clock of this host
SLACK = 2  # probes at the two ends of a phase


@dataclass(frozen=True)
class Judged(Bound):
    why: str = ""  # the cause of the bound, as a clause


def of_run(run: Run) -> list[Judged]:
    """`run` is closed, and has its phases."""
    allowed = tolerances()
    share = (number(run.meta.settings.get("tolerance_percent")) or allowed.default_percent) / 100
    made = list(_rates(run, share))
    for kind, members in kinds_of(run):
        idle, loaded = _median(run, kind, members, "idle_p50", share), _median(run, kind, members, "loaded_p50", share)
        made += [one for one in (idle, loaded) if one is not None]
        if idle is not None and loaded is not None and idle.value is not None and loaded.value is not None:
            made.append(_added(idle, loaded, share))
        if (loss := _loss(run, kind, members, allowed.loss_points)) is not None:
            made.append(loss)
    return made


def _tolerance_us(value: float, share: float) -> float:
    return max(abs(value) * share, tolerances().least_ns / 1e3)


# ----------------------------------------------------------------------------------------------------------------- rates


def _rates(run: Run, share: float) -> Iterator[Judged]:
    flows = run.meta.of_kind("bytes")
    for way in ("up", "down", "both"):
        members = [series for series in flows if series.direction == way]
        made = group(run, way, members) if members else None
        if made is None or made.mean_mbps is None:
            continue  # no figure is printed: a reason of a flow says why
        planned = _common_ns(run, members)
        missing = max(0, planned - round(made.seconds * 1e9) - CONNECT_NS)
        # The offset of the far clock is the same for all counts, so its error does not change the time between two of them.
        bound = of_rate(made.mean_mbps, missing, planned) if planned else 0.0
        why = f"{missing / 1e9:.1f} s of {planned / 1e9:.1f} s have no byte counts"
        cause = _largest({"coverage": bound})
        yield Judged(f"rate_{way}", "", "Mbit/s", made.mean_mbps, bound, made.mean_mbps * share, cause, why=why if missing else "")


def _common_ns(run: Run, members: Sequence[Series]) -> int:
    """The planned time that all these flows have in common; 0: it is not known."""
    runners = [run.meta.runner_of(series) for series in members]
    if not all(one is not None and one.from_ns is not None and one.to_ns is not None for one in runners):
        return 0
    return max(0, min(one.to_ns or 0 for one in runners if one) - max(one.from_ns or 0 for one in runners if one))


# ----------------------------------------------------------------------------------------------------------------- delays


@dataclass
class _Seen:
    """The probes of a phase. `missing`: skipped, or due and without a row; `unsent`: refused; `untimed`: answered, without a time."""

    missing: int = 0
    unsent: int = 0
    untimed: int = 0
    dropped: int = 0  # answers that this host's socket dropped: these count as lost


def _median(run: Run, kind: str, members: Sequence[Series], figure: str, share: float) -> Judged | None:
    name = _phase(run, members, figure)
    phase = run.meta.phase(name) if name is not None else None
    if phase is None:
        return None
    lost = np.isin(pooled(run, members, "state", [phase.name]), (LOST, LOST_UP, LOST_DOWN))
    us = np.where(lost, np.inf, pooled(run, members, "rtt_ns", [phase.name]) / 1e3)
    known = us[~np.isnan(us)]
    found = delays(us[~lost], int(lost.sum()))
    if found is None:
        return None
    seen, (waited, waits) = _seen(run, members, phase), _waited(run, phase)
    dropped, delayed = min(len(known), seen.dropped), min(len(known), math.ceil(waited * len(known)))
    bounds = {
        "skipped": of_median(known, seen.missing), "unsent": of_median(known, seen.unsent), "left_out": of_median(known, seen.untimed),
        "receive_buffer": of_median(known, 0, dropped), "receive_time": of_median(known, 0, delayed),
    }  # fmt: skip
    whole = of_median(known, seen.missing + seen.unsent + seen.untimed, min(len(known), dropped + delayed))
    due = len(known) + seen.missing + seen.unsent + seen.untimed
    words = {**_words(run, phase, seen, due), "receive_time": waits}
    cause = _largest(bounds) if whole != 0 else "none"
    low, high = p50_interval(pooled(run, members, "t_ns", [phase.name]), us) or (None, None)
    return Judged(
        figure, kind, "us", _finite(found.p50), whole, _tolerance_us(found.p50, share) if math.isfinite(found.p50) else 0.0, cause,
        _finite(low), _finite(high), words.get(cause, ""),
    )  # fmt: skip


def _words(run: Run, phase: Phase, seen: _Seen, due: int) -> dict[str, str]:
    return {
        "skipped": f"{seen.missing} of {due} probes did not leave or are not recorded{_busy(run, phase)}",
        "unsent": f"{seen.unsent} of {due} probes could not be sent",
        "left_out": f"{seen.untimed} of {due} answers have no usable time stamp and are left out",
        "receive_buffer": f"the receive buffer of this host was full and dropped {seen.dropped} packets",
    }


def _phase(run: Run, members: Sequence[Series], figure: str) -> str | None:
    """The phase that the summary takes the figure from."""
    for name in ("load",) if figure == "loaded_p50" else ("idle_before", "idle_after"):
        if run.meta.phase(name) is not None and not np.isnan(pooled(run, members, "rtt_ns", [name])).all():
            return name
    return None


def _seen(run: Run, members: Sequence[Series], phase: Phase) -> _Seen:
    made = _Seen()
    for series in members:
        arrays, runner = run.arrays(series), run.meta.runner_of(series)
        here = (arrays["t_ns"] >= phase.from_ns) & (arrays["t_ns"] < phase.to_ns) & (arrays["state"] != DUPLICATE)
        state = arrays["state"][here]
        made.unsent += int((state == FAILED).sum())
        made.missing += int((state == SKIPPED).sum())
        made.untimed += int((np.isin(state, (ANSWERED, TOO_LATE)) & np.isnan(arrays["rtt_ns"][here])).sum())
        if runner is None:
            continue
        untimed, share = runner.result.get("untimed", 0), _share(run, runner)
        missing = max(0, _due(runner, phase) - len(state) - SLACK) if runner.kind in PROBERS else _gaps(arrays["seq"][here])
        # Answers without stamps have no rows.
        known = min(missing, math.ceil(untimed * share))
        made.untimed += known
        made.missing += missing - known
        made.dropped += math.ceil(_dropped(runner.result) * share)
    return made


def _due(runner: Runner, phase: Phase) -> int:
    """Probes that were to leave in the phase; 0: it is not known, or the process did not end by itself (a reason of its own)."""
    if not runner.interval_ns or runner.from_ns is None or runner.to_ns is None or runner.status != "ended":
        return 0
    late: int = runner.result.get("unanswered_at_end", 0) * runner.interval_ns  # the last ones have no result yet
    span = min(phase.to_ns, runner.to_ns - late) - max(phase.from_ns, runner.from_ns)
    return max(0, span) // runner.interval_ns


def _gaps(seq: NDArray[Any]) -> int:
    """Numbers that are missing between the first and the last one. A program of others begins when it can, and keeps its own interval:
    the time says nothing of probes that did not leave."""
    return int(seq.max() - seq.min()) + 1 - len(np.unique(seq)) if len(seq) else 0


def _share(run: Run, runner: Runner) -> float:
    """A series has this share of the counts of its process."""
    return 1 / max(1, sum(one.runner == runner.id for one in run.meta.of_kind("latency")))


def _dropped(end: Mapping[str, Any]) -> int:
    """Answers that the socket of the process dropped: the part of its bound of the loss that the other counts do not explain."""
    found = [one for one in end.get("bounds", ()) if one.get("figure") == "loss" and one.get("bound")]
    sent, unsent = end.get("sent", 0), end.get("skipped", 0) + end.get("failed", 0)
    return max((max(0, round(one["bound"] / 100 * (sent + unsent)) - unsent) for one in found), default=0)


def _waited(run: Run, phase: Phase) -> tuple[float, str]:
    """The share of the time in which the softirqs that stamp packets had no processor, and the cause: a stamp of that time is late."""
    stolen = max(_processors(run, phase, "steal_percent"), default=0.0) / 100
    waited = min(1.0, softirq_wait_ns(run)[1] / max(1, phase.to_ns - phase.from_ns)) if phase.name == "load" else 0.0
    if waited > stolen:
        return waited, f"the softirqs that receive and stamp packets waited for a processor for {waited:.1%} of the time"
    return stolen, f"the hypervisor gave this host's processors to others for {stolen:.1%} of the time"


def softirq_wait_ns(run: Run) -> tuple[str, int]:
    """The processor whose thread of softirqs (ksoftirqd) was ready and had no processor for the longest time, and that time."""
    looks = [look.get("softirq_wait_ns") if isinstance(look := run.meta.metadata.get(when), dict) else None for when in ("before", "after")]
    before, after = (look if isinstance(look, dict) else {} for look in looks)
    waits = {
        str(name): last - first for name, first in before.items() if isinstance(first, int) and isinstance(last := after.get(name), int)
    }
    worst = max(waits, key=lambda name: waits[name], default="")
    return worst, max(0, waits.get(worst, 0))


def _busy(run: Run, phase: Phase) -> str:
    """The use of this host's processors in the phase, as the explanation of probes that did not leave."""
    used = next(_processors(run, phase, "cpu_percent"), None)
    return f"; this host's processors were used to {used:.0f} %" if used is not None else ""


def _processors(run: Run, phase: Phase, column: str) -> Iterator[float]:
    """The mean of a column of the processors of this host, by series."""
    for series in run.meta.of_kind("host"):
        runner = run.meta.runner_of(series)
        if runner is None or runner.place == "local":
            arrays = run.arrays(series)
            here = arrays[column][(arrays["t_ns"] >= phase.from_ns) & (arrays["t_ns"] < phase.to_ns)]
            if (~np.isnan(here)).any():
                yield float(here[~np.isnan(here)].mean())


def _added(idle: Judged, loaded: Judged, share: float) -> Judged:
    assert idle.value is not None and loaded.value is not None
    value = loaded.value - idle.value
    bound = idle.bound + loaded.bound if idle.bound is not None and loaded.bound is not None else None
    worse = max((idle, loaded), key=lambda one: math.inf if one.bound is None else one.bound)
    low = loaded.low - idle.high if loaded.low is not None and idle.high is not None else None
    high = loaded.high - idle.low if loaded.high is not None and idle.low is not None else None
    # A small difference of two figures that hold holds, too.
    allowed = max(_tolerance_us(value, share), idle.tolerance + loaded.tolerance)
    return Judged("added_p50", idle.probes, "us", value, bound, allowed, worse.cause, low, high, worse.why)


# ------------------------------------------------------------------------------------------------------------------ loss


def _loss(run: Run, kind: str, members: Sequence[Series], allowed: float) -> Judged | None:
    state = pooled(run, members, "state")
    lost = int(np.isin(state, (LOST, LOST_UP, LOST_DOWN)).sum())
    sent = lost + int(np.isin(state, (ANSWERED, TOO_LATE)).sum())
    whole = Phase("load", 0, run.meta.length_ns)
    seen = _seen(run, members, whole)
    dropped = min(lost, seen.dropped)
    found = of_loss(sent, lost, dropped, seen.missing + seen.unsent)
    if found is None:
        return None
    counts = {"skipped": seen.missing, "unsent": seen.unsent, "receive_buffer": dropped}
    words = _words(run, whole, seen, sent + seen.missing + seen.unsent)
    cause = _largest(counts)
    return Judged("loss", kind, "percent", found.value, found.bound, allowed, cause, found.low, found.high, words.get(cause, ""))


# ------------------------------------------------------------------------------------------------------------------ parts


def _largest(parts: Mapping[str, float | None]) -> str:
    """The name of the largest part; a part without a bound is the largest."""
    sizes = {name: math.inf if part is None else part for name, part in parts.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    return largest if sizes[largest] else "none"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
