# SPDX-License-Identifier: MIT OR Apache-2.0
"""The summary as text for a terminal: each figure with its unit, each estimate with its uncertainty."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from ktrxer.figures.bound import Bound, widest
from ktrxer.figures.delays import ROUND_TRIP, Direction
from ktrxer.store import one_line
from ktrxer.store.reason_table import BOUND_CAUSES
from ktrxer.summary.byte_outages import line as byte_outage
from ktrxer.summary.losses import unplaced
from ktrxer.summary.methods import Hop
from ktrxer.summary.model import Responsiveness, Summary
from ktrxer.summary.outages import line as outage
from ktrxer.summary.steps import Step
from ktrxer.summary.table import table
from ktrxer.summary.where import PLACES, Part
from ktrxer.units import delay as ms
from ktrxer.units import share

if TYPE_CHECKING:
    from ktrxer.run.egress import OwnDrops
    from ktrxer.run.own_load import OwnLoad
    from ktrxer.summary.changes import Change
    from ktrxer.summary.voice import Voice

OUTAGES_SHOWN = 5
_COLOURS = {"valid": "32", "degraded": "33", "invalid": "31"}


def show(summary: Summary, to: TextIO | None = None) -> None:
    stream = sys.stdout if to is None else to
    colour = stream.isatty() and "NO_COLOR" not in os.environ
    stream.write("\n".join(lines(summary, colour)) + "\n")


def lines(s: Summary, colour: bool = False) -> list[str]:
    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if colour else text

    title = f" ({one_line(s.title, 80)})" if s.title else ""
    made = [paint(f"{one_line(s.test, 80)}{title} to {', '.join(map(one_line, s.targets)) or '?'}, {s.length_s:g} s", "1")]
    made += [f"outage  {outage(one)}" for one in s.outages[:OUTAGES_SHOWN]]
    made += [f"outage  {byte_outage(one)}" for one in s.byte_outages[:OUTAGES_SHOWN]]
    for kind, found in (("answer", s.outages), ("byte", s.byte_outages)):
        if len(found) > OUTAGES_SHOWN:
            length = ms(sum(one.low_ms for one in found))
            made.append(f"outage  and {len(found) - OUTAGES_SHOWN} more times without any {kind}, {length} together at least")
    if s.throughput:
        made += ["", *table(["throughput", "mean", "flows", ""], [
            [t.name, mbps(t.mean_mbps), str(t.flows), f"over {t.seconds:.1f} s" + (f"; {t.note}" if t.note else "")] for t in s.throughput
        ])]  # fmt: skip
    if s.latency:
        loaded = any(one.loaded is not None for one in s.latency)
        head = ["latency", "idle: p50", "p99", *(["loaded: p50", "p99", "max"] if loaded else ["max"]), ""]
        made += ["", *table(head, [_direction(one, loaded) for one in s.latency])]
        made += [f"  {by_class(one)}" for one in s.latency if one.name == ROUND_TRIP and one.classes_ms]
        made += [f"  {text}" for one in s.latency if (text := left_out(one))]
    made += [changed(one) for one in s.changes]
    if s.policed:
        from ktrxer.summary.policer import line  # a comparison does not need its imports

        made += [f"policer  {line(one)}" for one in s.policed]
    if s.steps:
        made += ["", *table(["step", "time", "p50", "rates"], [step(one) for one in s.steps])]
    if s.where:
        made.append(f"mean delay that load adds: {places(s.where)}")
    whole = [s.loss_of_run] if s.loss_of_run is not None and s.loss_of_run.lost else []
    for loss in (*s.loss, *whole):
        where = f" ({loss.lost_up} up, {loss.lost_down} down, {loss.unknown} unknown)" if loss.lost else ""
        after = f"; {loss.too_late} answered after the time-out" if loss.too_late else ""
        made.append(f"{'loss, ' + one_line(loss.name):<12}  {loss.lost} of {loss.sent} probes, {share(loss.lost, loss.sent)}{where}{after}")
    if more := unplaced(s.loss, s.loss_of_run):
        made.append(f"              the counts of the far end give {more} more of the losses a direction, but not a phase")
    if s.own_drops is not None and s.own_drops.dropped:
        made.append(dropped_here(s.own_drops))
    if s.left_out:
        made.append(not_in_figures(s))
    if s.unknown:
        made.append(not_known(s))
    if s.failed:
        made.append(not_computed(s))
    if s.contradicted:
        made.append(withdrawn(s))
    if s.estimates:
        made += ["", *table(["estimate", "value", "low", "high", ""], [
            [e.name, *(f"{number(x)} {e.unit}" if x is not None else "-" for x in (e.value, e.low, e.high)), ""] for e in s.estimates
        ])]  # fmt: skip
    if s.hops:
        loaded = any(hop.loaded_p50_ms is not None for hop in s.hops)
        head = ["router", "hop", "answers", "min", "p50", *(["loaded: p50"] if loaded else []), ""]
        made += ["", *table(head, [_hop(hop, loaded, len({one.name for one in s.hops}) > 1) for hop in s.hops])]
    if s.responsiveness is not None:
        r = s.responsiveness
        both = ((f"{r.probes} probes".lstrip(), r.foreign_rpm), ("the flows' own", r.self_rpm))
        parts = [f"{name} {value:.0f}" for name, value in both if value is not None]
        limited = limited_by(r)
        made += ["", f"responsiveness  {r.rpm:.0f} round trips a minute under load: {r.rating}{limited} ({', '.join(parts)})"]
    if s.grade is not None:
        g = s.grade
        what = f"{g.probes} round trip".lstrip()
        lost = "half of the probes are lost under load, so there is no p50"
        added = lost if math.isinf(g.added_ms) else f"load adds {ms(g.added_ms)} to the p50"
        dead = f"an outage of {ms(g.outage_ms)}; " if g.outage_ms else ""
        made.append(f"grade  {paint(g.letter, '1')}: {dead}{added} of the {what} ({g.scale})")
        idle = f"the idle p50 is {ms(g.idle_ms)}"
        made.append(f"       {idle}; a queue that other traffic fills in the whole run is part of it, not of the grade")
    made += [call(one) for one in s.voice]
    if s.own_load:
        made.append(f"measurement load  {'; '.join(map(load_of, s.own_load))}")
    if s.lateness_us is not None:
        late = s.lateness_us
        counted = f"; {late_of(s)}" if s.late else ""
        made.append(f"probe lateness  p50 {late.p50:.1f} us, p99 {late.p99:.1f} us, max {late.max:.0f} us{counted}")
        if (first := s.first_lateness_us) is not None:
            firsts = f"p50 {first.p50:.1f} us, p99 {first.p99:.1f} us"
            made.append(f"  first of each train  {firsts}; the others wait for the send calls of the earlier probes")
    if (wide := widest(s.bounds)) is not None:
        made.append(f"error bounds  {bound(wide)}")
    if s.verdict is None:
        return [*made, "", "The run is not finished: if no `ktrxer run` writes to it, `ktrxer recover` closes it."]
    made += ["", paint(f"verdict: {s.verdict}", _COLOURS.get(s.verdict, "0"))]
    return made + [f"  - {one_line(one.text, 1000)}" for one in s.reasons]


def bound(one: Bound) -> str:
    """The widest bound, beside its tolerance."""
    if not one.bound:
        return "none of the headline figures has an error of this host"
    words = BOUND_CAUSES.get(one.cause, one_line(one.cause, 40))
    cause = f" ({words})" if words else ""
    return f"widest: {one.name} {one.text(one.value)} +- {one.text(one.bound)}{cause}; the tolerance is {one.text(one.tolerance)}"


def series_lines(s: Summary) -> list[str]:
    """One line for each series."""
    head = ["series", "idle p50", "mean", "p50", "p99", "unit", "samples", ""]
    return table(head, [
        [x.name, number(x.idle_p50), number(x.mean), number(x.p50), number(x.p99), x.unit, str(x.count), x.note] for x in s.series
    ])  # fmt: skip


def _direction(one: Direction, loaded: bool) -> list[str]:
    idle = [ms(one.idle.p50), ms(one.idle.p99)] if one.idle is not None else ["-", "-"]
    both = one.loaded or one.idle
    load = [ms(one.loaded.p50), ms(one.loaded.p99)] if one.loaded is not None else ["-", "-"]
    bound = f"each +- {ms(one.bound_ms)}" if one.bound_ms is not None else ""
    if one.bound_ms is not None and one.idle_bound_ms is not None and one.loaded is not None:
        bound = f"+- {ms(one.idle_bound_ms)} idle, {ms(one.bound_ms)} loaded"
    largest = ms(both.max) if both is not None else "-"
    if both is not None and math.isinf(both.p99):
        largest += " of those answered"
    return [named(one), *idle, *(load if loaded else []), largest, bound]


def _hop(one: Hop, loaded: bool, several: bool) -> list[str]:
    """`several`: the run has more than one trace, so the line names it."""
    times = [one.min_ms, one.p50_ms, *([one.loaded_p50_ms] if loaded else [])]
    return [one.address, str(one.hop), str(one.answers), *(ms(x) if x is not None else "-" for x in times), one.name if several else ""]


def step(one: Step) -> list[str]:
    rates = ", ".join(f"{one_line(name, 40)} {mbps(rate)}" for name, rate in one.rates_mbps.items())
    trip = ms(one.rtt_p50_ms) if one.rtt_p50_ms is not None else "-"
    return [one_line(one.name, 60), f"{one.from_s:g} to {one.to_s:g} s", trip, rates]


def limited_by(r: Responsiveness) -> str:
    """Why the rating is worse than that of the mean of both rates."""
    slow = {"probes": f"the {r.probes} probes", "flows": "the flows' own round trips"}
    if r.limited_by == "outage":
        return f", because of an outage of {ms(r.outage_ms)}"
    return f", because of {slow[r.limited_by]}" if r.limited_by in slow else ""


def call(one: Voice) -> str:
    """A rating of a call, with what it comes from."""
    when = {"idle": ", idle", "load": ", under load"}.get(one.phase, "")
    range_ = f", {one.mos_low:.2f} to {one.mos_high:.2f} by the uncertainty of the delay" if one.mos_high - one.mos_low >= 0.005 else ""
    lost = f"{one.loss:.1%} lost, {one.late:.1%} late for a jitter buffer of {one.buffer_ms:g} ms"
    unknown = f" ({one.unknown} of unknown direction)" if one.unknown else ""
    name = f"call {one_line(one.name, 40)} {one.direction}{when}"
    return f"{name}  MOS {one.mos:.2f} of 4.5 (R {one.r:.0f}{range_}): {ms(one.delay_ms)} from mouth to ear, {lost}{unknown} ({one.codec})"


def load_of(one: OwnLoad) -> str:
    unknown = "share of the path's rate unknown, because no flow measured it"
    share = unknown if one.share is None else f"{one.share:.1%} of the rate that the run got"
    control = f" and control traffic {one.control_bps / 1e3:.1f} kbit/s" if one.control_bps else ""
    return f"{one.direction}: probes {one.probes_bps / 1e3:.1f} kbit/s{control}, {share}"


def changed(one: Change) -> str:
    """The cause may be the path, other traffic or the flows themselves: the levels do not show it."""
    size = mbps if one.unit == "Mbit/s" else ms
    parts = [f"{size(part.median)} until {part.to_s:.1f} s" for part in one.levels[:-1]]
    whole = "mean" if one.unit == "Mbit/s" else "p50"
    then = f"then {size(one.levels[-1].median)}"
    return f"changed in mid-run  {one_line(one.name, 60)}: {', '.join(parts)}, {then} (medians); the {whole} above is of the whole time"


def late_of(s: Summary) -> str:
    """The number of late probes and the threshold, for each threshold."""
    return ", ".join(f"{one.count} of {one.sent} late (by more than {one.after_us:g} us)" for one in s.late)


def dropped_here(drops: OwnDrops) -> str:
    packets = "packet" if drops.dropped == 1 else "packets"
    dropped = f"{drops.qdisc} of {drops.device} dropped {drops.dropped} {packets} of all traffic"
    return f"this host's own qdisc  {dropped}, of TCP each of one or more segments (GSO); {drops.left} left, counted in segments"


def not_in_figures(s: Summary) -> str:
    return f"in no figure  {', '.join(f'{count} round trips {reason}' for reason, count in s.left_out.items())}"


def not_known(s: Summary) -> str:
    more = ", ..." if len(s.unknown) > 3 else ""
    return f"not read  {len(s.unknown)} fields or series that this version does not have: {', '.join(map(one_line, s.unknown[:3]))}{more}"


def not_computed(s: Summary) -> str:
    return f"not computed  {'; '.join(map(one_line, s.failed))}"


def withdrawn(s: Summary) -> str:
    return f"withdrawn, because a figure contradicts the statement  {'; '.join(map(one_line, s.contradicted))}"


def left_out(one: Direction) -> str:
    """The confidence interval of each p50 of a round trip, and the lost probes that its quantiles contain."""
    parts = []
    for name, found in (("idle", one.idle), ("loaded", one.loaded)):
        if found is None or one.name != ROUND_TRIP:
            continue
        interval = ""
        if found.p50_low is not None and found.p50_high is not None:
            interval = f" p50 between {ms(found.p50_low)} and {ms(found.p50_high)} (95 % confidence)"
        lost = f" {found.lost} of {found.count + found.lost} lost, which count as longer than all others" if found.lost else ""
        if interval or lost:
            parts.append(f"{name}{interval}{',' if interval and lost else ''}{lost}")
    return f"{named(one)}: {'; '.join(parts)}" if parts else ""


def named(one: Direction) -> str:
    return f"{one.name}, {one.probes}" if one.probes else one.name


def places(found: Sequence[Part]) -> str:
    """The places where load adds delay, each with its delay and share, then the names of the places without a share, in a
    fixed order."""
    named_ = [f"{part.place} ({one_line(part.qdisc, 40)})" if part.qdisc else part.place for part in found]
    largest = [
        f"{ms(part.added_ms)} {name} ({part.share:.0%})" for part, name in zip(found, named_, strict=True) if part.share >= 0.005
    ]
    without = sorted((PLACES.index(part.place), name) for part, name in zip(found, named_, strict=True) if part.share < 0.005)
    none = f"; none: {', '.join(name for _, name in without)}" if without else ""
    return ", ".join(largest) + none if largest else "none measured"


def by_class(one: Direction) -> str:
    when = "loaded" if one.loaded is not None else "idle"
    return f"{named(one)} by class, p50 {when}: " + ", ".join(f"{one_line(name, 40)} {ms(p50)}" for name, p50 in one.classes_ms.items())


def mbps(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} Mbit/s" if value >= 0.1 else f"{value * 1000:.2f} kbit/s"


def number(value: float | None) -> str:
    return "-" if value is None else "lost" if math.isinf(value) else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
