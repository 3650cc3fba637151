# SPDX-License-Identifier: MIT OR Apache-2.0
"""Relations between the statements and the figures of one run. They are checked before any text is made: a statement that contradicts a
figure is withdrawn, and the summary names both. A relation that does not hold is a defect of this program, or of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ktrxer.figures.delays import ROUND_TRIP, Direction
from ktrxer.figures.facts import flow_counts, interval_ns
from ktrxer.statistics.latency import RESPONSIVENESS, Delays, grade, responsiveness_class
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.summary.byte_outages import longest_of_all
from ktrxer.summary.losses import Loss
from ktrxer.summary.model import Summary
from ktrxer.summary.outages import capped
from ktrxer.summary.where import MEASURABLE
from ktrxer.units import delay as ms

NEAR = 1e-6  # of a figure that is computed twice
STORED_DIGITS = 3  # of a figure of the file
FLOW_RATES = 1.05  # of the levels of a rate: the mean of the whole time contains the first second, too
NOISE_MS = 1.0  # of the mean delay of a place without a queue
SHORTER = 0.05  # of the added delay: a queue without a load may be a little longer than under it, so that the others exceed 1 together
S, MINUTE_MS = 1e9, 60_000.0


def consistent(summary: Summary, run: Run) -> Summary:
    """The summary without the statements that contradict a figure. `contradicted` names each of them and the figure."""
    relations = Relations(summary, run)
    found: list[str] = []
    kept: dict[str, Any] = {}
    for name, broken in RELATIONS.items():
        value = getattr(summary, name)
        statements = value if isinstance(value, list) else [] if value is None else [value]
        texts = [[f"{name}: {text}" for text in broken(relations, one)] for one in statements]
        if any(texts):
            true = [one for one, its in zip(statements, texts, strict=True) if not its]
            kept[name] = true if isinstance(value, list) else None
            found += [text for its in texts for text in its]
    return replace(summary, **kept, contradicted=found)


def _near(a: float, b: float) -> bool:
    return a == b or math.isclose(a, b, rel_tol=NEAR, abs_tol=10**-STORED_DIGITS)


def _ordered(what: str, *values: float | None) -> Iterator[str]:
    known = [value for value in values if value is not None]
    if any(a > b and not _near(a, b) for a, b in pairwise(known)):
        yield f"{what}: {', '.join(f'{value:.6g}' for value in known)} are not in ascending order"


def _delays(what: str, one: Delays | None) -> Iterator[str]:
    if one is None:
        return
    # Quantiles contain the lost probes, and the largest value does not.
    finite = [value for value in (one.p50, one.p95, one.p99) if math.isfinite(value)]
    yield from _ordered(what, one.min, *finite, one.max)
    yield from _ordered(f"{what}, interval of the p50", one.p50_low, one.p50, one.p50_high)
    yield from _ordered(f"{what}, mean", one.min, one.mean, one.max)
    if math.isinf(one.p50) and one.lost < one.count:
        yield f"{what}: the p50 is that of a lost probe, and {one.lost} of {one.lost + one.count} were lost"


def _rank(rating: str) -> int:
    names = [name for _, name in RESPONSIVENESS]  # the worst first
    return names.index(rating) if rating in names else len(names)


class Relations:
    """Each method has the statement, and yields the contradictions."""

    def __init__(self, summary: Summary, run: Run) -> None:
        self.summary, self.run = summary, run

    def _trip(self, probes: str) -> Direction | None:
        return next((one for one in self.summary.latency if one.name == ROUND_TRIP and one.probes == probes), None)

    def direction(self, one: Direction) -> Iterator[str]:
        for phase, found in (("idle", one.idle), ("loaded", one.loaded)):
            what = f"{one.name} {one.probes}, {phase}".replace(" ,", ",")
            yield from _delays(what, found)
            if found is not None and one.name == ROUND_TRIP and found.min < 0:
                yield f"{what}: a round trip of {ms(found.min)}"

    def grade(self, one: Any) -> Iterator[str]:
        trip = self._trip(one.probes)
        if trip is None or trip.idle is None or trip.loaded is None:
            yield f"{one.letter} of {one.probes} probes, which have no round trips idle and under load"
            return
        added = max(0.0, trip.loaded.p50 - trip.idle.p50)
        if not _near(added, one.added_ms):
            yield f"it is of {ms(one.added_ms)}, and the load adds {ms(added)} to the p50"
        letter = capped(grade(added), longest_of_all(self.summary.outages, self.summary.byte_outages))
        if letter != one.letter:
            yield f"{one.letter}, and the figures give {letter}"

    def responsiveness(self, one: Any) -> Iterator[str]:
        trip = self._trip(one.probes)
        if one.foreign_rpm is not None and trip is not None and trip.loaded is not None and trip.loaded.min > 0:
            yield from _ordered(
                "round trips a minute of the probes", MINUTE_MS / trip.loaded.max, one.foreign_rpm, MINUTE_MS / trip.loaded.min
            )
        rates = [value for value in (one.foreign_rpm, one.self_rpm) if value is not None]
        if rates:
            yield from _ordered("round trips a minute", min(rates), one.rpm, max(rates))
        dead = longest_of_all(self.summary.outages, self.summary.byte_outages)
        worst = min([*rates, *([MINUTE_MS / dead] if dead else [])], default=one.rpm)
        if _rank(one.rating) > _rank(responsiveness_class(worst)):
            yield f"{one.rating}, and {worst:.0f} round trips a minute are {responsiveness_class(worst)}"

    def loss(self, one: Loss) -> Iterator[str]:
        yield from _ordered(f"{one.name or 'run'}: lost up and down, lost, sent", one.lost_up + one.lost_down, one.lost, one.sent)
        if one is not self.summary.loss_of_run:
            return
        for name in ("sent", "lost"):
            yield from _ordered(
                f"{name} in the phases, and in the run", sum(getattr(part, name) for part in self.summary.loss), getattr(one, name)
            )

    def outage(self, one: Any) -> Iterator[str]:
        """No answer at all: so no answered probe was sent between the first and the last lost one."""
        from_ns, to_ns = one.from_s * S, one.from_s * S + one.low_ms * 1e6
        inside = 0
        for series in self.run.meta.of_kind("latency"):
            rows = self.run.arrays(series)
            inside += int(((rows["state"] == ANSWERED) & (rows["t_ns"] > from_ns + 1) & (rows["t_ns"] < to_ns - 1)).sum())
        if inside:
            yield f"no answer for {ms(one.low_ms)} from {one.from_s:.2f} s on, and {inside} probes of this time were answered"
        yield from _ordered("bounds of an outage", one.low_ms, one.high_ms)

    def byte_outage(self, one: Any) -> Iterator[str]:
        """The counts of the receivers of so many flows are the same in this time."""
        moved: list[int] = []
        for series in self.run.meta.of_kind("bytes"):
            if series.direction != one.direction:
                continue
            times, counts, note = flow_counts(self.run, series)
            every = interval_ns(self.run, series)
            inside = counts[(times > one.from_s * S + every) & (times < one.from_s * S + one.low_ms * 1e6 - every)]
            if not note and len(inside) and inside[0] != inside[-1]:
                moved.append(inside[-1] - inside[0])
        if len(moved) > one.of_flows - one.flows:
            flows = f" in {one.flows} of {one.of_flows} flows" if one.flows < one.of_flows else ""
            yield f"no byte {one.direction}{flows} for {ms(one.low_ms)} from {one.from_s:.2f} s on, and {sum(moved)} bytes arrived"
        yield from _ordered("bounds of an outage of flows", one.low_ms, one.high_ms)

    def where(self, one: Any) -> Iterator[str]:
        whole = sum(part.share for part in self.summary.where)
        delay_ms = max((part.added_ms / part.share for part in self.summary.where if part.share > MEASURABLE), default=0.0)
        beyond = max(-one.share, one.share - 1 - SHORTER, whole - 1 - SHORTER, 0.0)
        if beyond * delay_ms > max(NOISE_MS, SHORTER * delay_ms):
            yield f"{one.place} has {one.share:.0%} of the delay of {ms(delay_ms)}, and all places together {whole:.0%}"

    def policed(self, one: Any) -> Iterator[str]:
        """A policer drops and has no queue."""
        if one.lost_share <= 0:
            yield f"{one.direction}, and no segment was lost"
        added = sum(part.added_ms for part in self.summary.where if part.place == one.direction)
        if added > one.packet_ms + one.added_ms + 1:
            yield f"{one.direction}, and the load adds {ms(added)} {one.direction}"
        fastest = max((flow.mean_mbps or 0.0 for flow in self.summary.throughput if flow.direction == one.direction), default=0.0)
        levels = [held.median for change in self.summary.changes if change.unit == "Mbit/s" for held in change.levels]
        if fastest > FLOW_RATES * max(one.rate_mbps, *levels, 0.0) * sum(
            flow.direction == one.direction for flow in self.summary.throughput
        ):
            yield f"{one.rate_mbps:.2f} Mbit/s {one.direction}, and {fastest:.2f} Mbit/s were received"

    def change(self, one: Any) -> Iterator[str]:
        if any(part.from_s > part.to_s for part in one.levels):
            yield f"{one.name}: a level ends before it begins"
        for before, after in pairwise(one.levels):
            yield from _ordered(f"{one.name}: times of the levels", before.to_s, after.from_s)
            if before.median == after.median:
                yield f"{one.name}: two levels of {before.median:.4g} {one.unit}"

    def step(self, one: Any) -> Iterator[str]:
        yield from _ordered(f"{one.name}: begin and end", one.from_s, one.to_s)

    def voice(self, one: Any) -> Iterator[str]:
        yield from _ordered(f"call {one.name} {one.direction}, MOS", 1.0, one.mos_low, one.mos, one.mos_high, 4.5)
        if one.loss + one.late > 1 + NEAR:
            yield f"call {one.name} {one.direction}: {one.loss:.0%} lost and {one.late:.0%} late"

    def estimate(self, one: Any) -> Iterator[str]:
        yield from _ordered(one.name, one.low, one.value, one.high)

    def hop(self, one: Any) -> Iterator[str]:
        yield from _ordered(f"router {one.address}", one.min_ms, one.p50_ms)
        if one.answers == 0 and one.p50_ms is not None:
            yield f"router {one.address}: no answer, and a p50 of {ms(one.p50_ms)}"

    def bound(self, one: Any) -> Iterator[str]:
        """The file keeps the value that the verdict has judged; the table shows the value of this version."""
        shown: float | None = None
        if one.figure in ("idle_p50", "loaded_p50"):
            trip = self._trip(one.probes)
            found = (trip.idle if one.figure == "idle_p50" else trip.loaded) if trip is not None else None
            shown = found.p50 * 1e3 if found is not None and math.isfinite(found.p50) else None
        elif one.figure.startswith("rate_"):
            rates = [flow.mean_mbps for flow in self.summary.throughput if flow.direction == one.figure.removeprefix("rate_")]
            shown = rates[0] if len(rates) == 1 else None
        if shown is not None and one.value is not None and not _near(round(shown, STORED_DIGITS), one.value):
            yield f"{one.name}: the verdict is of {one.text(one.value)}, and the figure is {one.text(shown)}"
        if self.summary.verdict == "valid" and not one.holds:
            yield f"{one.name}: the verdict is valid, and the bound {one.text(one.bound)} exceeds {one.text(one.tolerance)}"

    def drops(self, one: Any) -> Iterator[str]:
        if min(one.dropped, one.left) < 0:
            yield f"{one.dropped} packets dropped and {one.left} left"

    def lateness(self, one: Delays) -> Iterator[str]:
        yield from _delays("lateness", one)


# By the field of the summary, in this order.
RELATIONS: dict[str, Callable[[Relations, Any], Iterator[str]]] = {
    "latency": Relations.direction, "loss": Relations.loss, "loss_of_run": Relations.loss, "bounds": Relations.bound,
    "responsiveness": Relations.responsiveness, "grade": Relations.grade, "lateness_us": Relations.lateness, "where": Relations.where,
    "own_drops": Relations.drops, "estimates": Relations.estimate, "outages": Relations.outage,
    "byte_outages": Relations.byte_outage, "hops": Relations.hop,
    "voice": Relations.voice, "steps": Relations.step, "changes": Relations.change, "policed": Relations.policed,
}  # fmt: skip
