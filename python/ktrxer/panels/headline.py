# SPDX-License-Identifier: MIT OR Apache-2.0
"""The result of a run in words: the delay that the load adds, its direction, its queue, and its uncertainty. A pure function of the
summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ktrxer.analyse.compare import amount
from ktrxer.figures import delays
from ktrxer.panels.parts import count_of
from ktrxer.statistics.latency import GRADES, NORMAL, Delays
from ktrxer.store.reasons import Reason
from ktrxer.summary import where
from ktrxer.summary.byte_outages import line as byte_line
from ktrxer.summary.losses import Loss
from ktrxer.summary.model import Summary
from ktrxer.summary.outages import line
from ktrxer.summary.where import Part
from ktrxer.units import delay, share

# added    the load adds delay
# little   it adds less than the best grade allows
# none     a difference is not shown
# idle     there was no load
# loss     more than half of the probes are lost under load, or loss is what the load changes
# invalid  the figures of the run do not describe the path
# nothing  no probe was answered
Kind = Literal["added", "little", "none", "idle", "loss", "invalid", "nothing"]

MAIN_SHARE = 0.6  # of the added delay: a place with that share is named as the one that adds it
STATED = 3  # reasons of the verdict that the sentences have
NAMED_SHARE = 0.1  # a place with less is not named
LOSS_LEAST = 0.01  # of the probes under load, for a sentence at the top
SMALL_MS, SMALL_SHARE = 0.1, 0.02  # a difference that is certainly smaller, in ms or of the idle round trip, is not mentioned
UNSURE = 0.5  # of the added delay: a clock uncertainty above it leaves the direction open
PARTS = "The delays of the places are differences of means, and need not add up to the difference of the p50."
PLACES = {
    where.UP: "the upload queue",
    where.DOWN: "the download queue",
    where.OWN: "this host's own queue",
    where.FAR: "the far host's own queue",
}


@dataclass(frozen=True)
class Headline:
    kind: Kind
    text: str
    details: tuple[str, ...] = ()
    place: str | None = None  # of where.py: where most of the added delay is, if one place has most of it
    added_ms: float = 0.0
    lossy: bool = False  # the load loses probes
    reasons: tuple[Reason, ...] = ()  # those that its sentences have


def headline(s: Summary) -> Headline:
    made = _headline(s)
    if s.outages:
        first = f"The path was dead: {line(max(s.outages, key=lambda one: one.low_ms))}."
        others = f" {count_of(len(s.outages) - 1, 'shorter outage')} more." if len(s.outages) > 1 else ""
        made = replace(made, details=(first + others, *made.details), lossy=True)
    if s.byte_outages:
        longest = max(s.byte_outages, key=lambda one: one.low_ms)
        which = "The flows" if longest.flows == longest.of_flows else "Some flows"
        stalled = f"{which} stood still: {byte_line(longest)}."
        made = replace(made, details=(*made.details[:1], stalled, *made.details[1:]) if s.outages else (stalled, *made.details))
    return replace(made, reasons=tuple(s.reasons[:STATED]) if s.verdict in ("degraded", "invalid") else ())


def _headline(s: Summary) -> Headline:
    caveats = _caveats(s)
    if s.verdict == "invalid":
        reason = f": {_sentence(s.reasons[0].text)}" if s.reasons else "."
        return Headline("invalid", f"This run is invalid{reason}", ("Its figures do not describe the path.", *caveats[1:]))
    trip = delays.headline(s.latency)
    loss = next((one for one in s.loss if one.name == "load"), None)
    if trip is None or (trip.idle is None and trip.loaded is None):
        sent = sum(one.sent for one in s.loss)
        text = f"None of {count_of(sent, 'probe')} was answered." if sent else "This run measured no delay."
        return Headline("nothing", text, (*_rates(s), *caveats), lossy=sent > 0)
    if trip.loaded is None or trip.idle is None:
        return _one_phase(s, trip.idle or trip.loaded, trip.probes, caveats)
    lossy = _lossy(s.loss, loss)
    about_loss = (_loss_sentence(loss),) if lossy and loss is not None else ()
    if math.isinf(trip.loaded.p50):
        text = "Under load more than half of the probes are lost."
        return Headline("loss", text, (*about_loss, *_rates(s), *caveats), added_ms=math.inf, lossy=True)
    added = trip.loaded.p50 - trip.idle.p50
    between = _difference(trip.idle, trip.loaded)
    sure = _interval(between, added)
    levels = f"The p50 of the {trip.probes} round trip is {_ms(trip.idle)} idle and {_ms(trip.loaded)} under load.".replace("  ", " ")
    if between is not None and max(map(abs, between)) < max(SMALL_MS, SMALL_SHARE * trip.idle.p50):
        text = f"The load changes the round trip by less than {_up(max(map(abs, between)))} ms (at least 90 %)."
        return _loss_first(Headline("none", text, (levels, *_rates(s), *caveats), added_ms=added, lossy=lossy), about_loss)
    if between is not None and between[0] <= 0 <= between[1]:
        limits = f"the difference is between {amount(between[0], _half(between))} and {amount(between[1], _half(between))} ms"
        text = f"The load adds no delay that this run shows: {limits} (at least 90 %)."
        return _loss_first(Headline("none", text, (levels, *_rates(s), *caveats), added_ms=added, lossy=lossy), about_loss)
    digits = _half(between) if between is not None else abs(added) / 20
    if added < 0:
        shorter = _interval((-between[1], -between[0]) if between is not None else None, -added)
        text = f"Under load the round trip is {shown(-added, digits)} ms shorter than idle{shorter}."
        return _loss_first(Headline("none", text, (levels, *_rates(s), *caveats), added_ms=added, lossy=lossy), about_loss)
    little = added < GRADES[0][0]
    text, details, place = _added(s, added, digits, sure, little)
    kind: Kind = "little" if little else "added"
    if little:
        return _loss_first(Headline(kind, text, (*details, levels, *_rates(s), *caveats), place, added, lossy), about_loss)
    return Headline(kind, text, (*details, *about_loss, levels, *_rates(s), *caveats), place, added, lossy)


# --------------------------------------------------------------------------------------------------------------- sentences


def _one_phase(s: Summary, found: Delays | None, probes: str, caveats: tuple[str, ...]) -> Headline:
    assert found is not None
    loss = next((one for one in s.loss if one.lost), None)
    details = ((_loss_sentence(loss),) if loss is not None else ()) + (*_rates(s), *caveats)
    if math.isinf(found.p50):
        return Headline("loss", "More than half of the probes are lost.", details, lossy=True)
    loaded = any(one.loaded is not None for one in s.latency)
    when = "under load; there are no idle probes to compare with" if loaded else "without load"
    text = f"The {probes} round trip has a p50 of {_ms(found)} and a p99 of {delay(found.p99)} {when}.".replace("The  ", "The ")
    return Headline("idle", text, details, lossy=loss is not None)


def _added(s: Summary, added: float, digits: float, sure: str, little: bool) -> tuple[str, tuple[str, ...], str | None]:
    only = "only " if little else ""
    total = f"The load adds {only}{shown(added, digits)} ms to the p50 of the round trip{sure}."
    parts = [part for part in s.where if part.added_ms > 0]
    if not parts:
        return total, ("The directions were not measured apart.",), None
    clock = _clock(s)
    if clock > UNSURE * added:
        return total, (f"In which direction is not known: the offset of the two clocks is uncertain by {delay(clock)}.",), None
    unit = max(digits, clock)
    first = parts[0]
    if first.share >= MAIN_SHARE:
        name = PLACES[first.place] + (f" ({first.qdisc})" if first.qdisc else "")
        text = f"{name[:1].upper()}{name[1:]} adds {only}{shown(first.added_ms, unit)} ms."
        others = _others(parts[1:], unit, first.place, {part.place for part in s.where})
        details = [total, *others, *([PARTS] if len(parts) > 1 and parts[1].share >= NAMED_SHARE else [])]
        return text, tuple(details), first.place
    named = [f"{shown(part.added_ms, unit)} ms in {PLACES[part.place]}" for part in parts if part.share >= NAMED_SHARE]
    text = f"The load adds {only}{shown(added, digits)} ms to the round trip: {_and(named)}."
    return text, (total, PARTS), None


def _others(rest: Sequence[Part], unit: float, main: str, known: set[str]) -> list[str]:
    named = [f"{shown(part.added_ms, unit)} ms in {PLACES[part.place]}" for part in rest if part.share >= NAMED_SHARE]
    made = [f"Further mean delay: {_and(named)}."] if named else []
    own = {where.UP: where.OWN, where.DOWN: where.FAR}.get(main)
    if own is not None and own not in known:
        made.append(f"{PLACES[own][:1].upper()}{PLACES[own][1:]} was not measured apart, and may be a part of it.")
    return made


def _rates(s: Summary) -> tuple[str, ...]:
    found = {one.direction: one.mean_mbps for one in s.throughput if one.mean_mbps is not None}
    named = [f"{_rate(found[way])} {way}" for way in ("down", "up") if way in found]
    return (f"The flows get {_and(named)}.",) if named else ()


def rate_unit(mbps: float) -> tuple[float, str]:
    return (1e3, "Gbit/s") if mbps >= 1e3 else (1.0, "Mbit/s") if mbps >= 1 else (1e-3, "kbit/s")


def _rate(mbps: float) -> str:
    size, unit = rate_unit(mbps)
    return f"{three(mbps / size)} {unit}"


def _lossy(losses: Sequence[Loss], loss: Loss | None) -> bool:
    """Loss under load is above LOSS_LEAST, and above that of the idle path by more than both intervals allow."""
    if loss is None or not loss.sent or loss.lost / loss.sent < LOSS_LEAST:
        return False
    idle = next((one for one in losses if one.name == "idle"), None)
    return idle is None or wilson(idle.lost, idle.sent)[1] < wilson(loss.lost, loss.sent)[0]


def _loss_sentence(loss: Loss) -> str:
    ways = [f"{count} {way}" for way, count in (("up", loss.lost_up), ("down", loss.lost_down)) if count]
    where_lost = f", {_and(ways)}" if ways else ", in an unknown direction"
    when = "Under load" if loss.name == "load" else "Idle" if loss.name == "idle" else "After the load"
    counts = f"{loss.lost:,} of {loss.sent:,}{where_lost}; {percent(loss.lost, loss.sent)}"
    return f"{when} {share(loss.lost, loss.sent)} of the probes are lost ({counts})."


def _loss_first(made: Headline, about_loss: Sequence[str]) -> Headline:
    """Where the load loses probes, and adds little or no delay, the sentence about the loss comes first."""
    for text in about_loss:
        return Headline("loss", text, (made.text, *made.details), made.place, made.added_ms, True)
    return made


def _caveats(s: Summary) -> tuple[str, ...]:
    if s.verdict == "degraded":
        return tuple(f"The run is degraded: {_sentence(one.text)}" for one in s.reasons[:STATED])
    if s.verdict is None:
        return ("The run has no verdict, because it was not finished.",)
    return tuple(_sentence(one.text) for one in s.reasons[:STATED]) if s.verdict == "invalid" else ()


# ----------------------------------------------------------------------------------------------------------------- figures


def _difference(idle: Delays, loaded: Delays) -> tuple[float, float] | None:
    """An interval of the added delay, from the intervals of both medians: it holds with at least 90 %, as both hold with 95 %."""
    if idle.p50_low is None or idle.p50_high is None or loaded.p50_low is None or loaded.p50_high is None:
        return None
    made = loaded.p50_low - idle.p50_high, loaded.p50_high - idle.p50_low
    return made if all(math.isfinite(end) for end in made) else None


def shown(value: float, uncertainty: float, digits: int = 3) -> str:
    """The value with two digits of the uncertainty, and with one to three digits: a reader of a headline does not use more."""
    most = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    least = 1 - math.floor(math.log10(uncertainty)) if uncertainty > 0 else most
    first = -math.floor(math.log10(abs(value))) if value else 0  # so many decimals have the first digit that is not 0
    return f"{value:.{max(0, min(most, max(least, first)))}f}"


def _interval(between: tuple[float, float] | None, value: float) -> str:
    """The ends have one digit more than the value, so that they differ."""
    if between is None:
        return " (too few samples for an interval)"
    coarse = max(_half(between), abs(value) / 1000)
    return f" (at least 90 %: {amount(between[0], coarse)} to {amount(between[1], coarse)} ms)"


def _up(value: float) -> str:
    """Rounded up to one digit: a bound stays a bound."""
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 0.1
    return f"{math.ceil(value / size - 1e-9) * size:g}"


def _half(between: tuple[float, float] | None) -> float:
    return max((between[1] - between[0]) / 2, 1e-6) if between is not None else 0.0


def _clock(s: Summary) -> float:
    """How far the added delay of a direction may be wrong because of the clocks: their uncertainties idle and under load together."""
    found = [one for one in s.latency if one.name in ("up", "down")]
    return max(((one.bound_ms or 0.0) + (one.idle_bound_ms or 0.0) for one in found), default=0.0)


def _ms(found: Delays) -> str:
    if math.isinf(found.p50):
        return "lost"
    between = found.p50_low, found.p50_high
    if between[0] is None or between[1] is None or not math.isfinite(between[1]):
        return delay(found.p50)
    return f"{shown(found.p50, max((between[1] - between[0]) / 2, 1e-3), 4)} ms"


def three(value: float) -> str:
    """The value with three digits, and without zeros that the figure does not support."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(6, digits)}f}"


def percent(part: int, whole: int) -> str:
    """The ends of the 95 % interval of a share, with as many digits as differ."""
    low, high = wilson(part, whole)
    digits = max(0, min(4, math.ceil(-math.log10(max((high - low) / 2, 1e-9))) - 1))
    return f"95 %: {100 * low:.{digits}f} to {100 * high:.{digits}f} %"


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927). Losses come in bursts, so the true interval is wider."""
    if not whole:
        return 0.0, 1.0
    z = NORMAL
    middle = (part + z * z / 2) / (whole + z * z)
    half = z / (whole + z * z) * math.sqrt(part * (whole - part) / whole + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
