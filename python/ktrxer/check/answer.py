# SPDX-License-Identifier: MIT OR Apache-2.0
"""A check in three sentences: is the line bloated, where is the queue, what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ktrxer.check.figures import LEVEL, Check, Hop, Load, Queue, scale
from ktrxer.statistics.latency import Delays
from ktrxer.summary.byte_outages import line as byte_outage
from ktrxer.summary.outages import line as outage
from ktrxer.summary.policer import line
from ktrxer.summary.where import DOWN, FAR, OWN, UP
from ktrxer.units import delay as ms

GOOD_MS, BAD_MS = 30, 100  # docs/howto/bloated.md: below, calls and games do not suffer; above, the line is bloated
IDLE_LOST, LOADED_LOST = 0.01, 0.05  # shares of the probes; a full queue drops a few per cent under load
LOST_LEAST = 3
LOAD_FACTOR = 2  # from this multiple of the idle share on, losses under a load are those of the load
SHAPED = 0.9  # of the measured rate: the queue has to be in the shaper, and the line's rate varies
WORDS = {"up": "an upload", "down": "a download"}
NOUNS = {"up": "upload", "down": "download"}

Bloated = Literal["no", "somewhat", "yes", "unknown"]


@dataclass(frozen=True)
class Answer:
    bloated: Bloated
    sentences: tuple[str, str, str]
    shapers_mbps: dict[str, float]  # the rates to set, by direction


@dataclass(frozen=True)
class Here:
    """This host: the device of the route to the target."""

    device: str = ""
    wireless: bool = False


def unknown(reason: str, blocked: Sequence[str] = ()) -> Answer:
    return Answer("unknown", (
        f"It is not known whether the line is bloated: {reason}.",
        "The place of the queue is not known.",
        f"{_begun('; '.join(blocked))}; then measure again." if blocked else "Remove the cause and measure again.",
    ), {})  # fmt: skip


def of(check: Check, here: Here = Here(), blocked: Sequence[str] = ()) -> Answer:
    """`blocked`: the traffic that a firewall blocks (check/blocked.py)."""
    worst = check.worst
    found = word_of(worst.added_ms)
    # No load of a direction, no statement that this direction is free of a queue.
    bloated: Bloated = "unknown" if found == "no" and check.without else found
    shapers: dict[str, float] = {load.direction: SHAPED * load.rate_mbps for load in check.loads if load.rate_mbps is not None}
    third = "; ".join([_third(check, found, shapers, here), *blocked]) + "."
    return Answer(bloated, (_first(check, found), _second(check), third), shapers)


def word_of(added_ms: float) -> Bloated:
    return "no" if added_ms < GOOD_MS else "somewhat" if added_ms < BAD_MS else "yes"


def _first(check: Check, bloated: Bloated) -> str:
    sentence = {"no": "The line is not bloated", "somewhat": "The line is somewhat bloated", "yes": "The line is bloated"}[bloated]
    if check.without:
        missing = f"The {NOUNS[check.without[0]]} was not measured"
        sentence = missing if bloated == "no" else f"{missing}, and {sentence[0].lower()}{sentence[1:]}"
    bounds = [(load.low_ms, load.high_ms) for load in check.loads]
    if any(low is not None and high is not None and word_of(low) != word_of(high) for low, high in bounds):
        sentence += " (the uncertainty reaches into the next class)"
    parts = [f"{WORDS[load.direction]} adds {_added(load)}" for load in check.loads]
    letter, low, high = check.grades
    between = f" ({low} to {high})" if low != high else ""
    trip = f"the {check.probes} round trip of {ms(check.idle.p50)} to {check.target}"
    differ = " for the worse direction" if len(set(check.letters)) > 1 else ""
    graded = f" for the {NOUNS[check.worst.direction]}" if check.without else differ
    dead = "".join(f"; there was {outage(one)}" for one in sorted(check.outages, key=lambda one: -one.low_ms)[:1])
    more = f" and {len(check.outages) - 1} more times" if len(check.outages) > 1 else ""
    dead += more + "".join(f"; there was {byte_outage(one)}" for one in sorted(check.byte_outages, key=lambda one: -one.low_ms)[:1])
    with_outage = ", with the outage," if dead else ""
    rated = f"which{with_outage} is grade {letter}{between}{graded} on the scale {scale()}"
    return f"{sentence}: {' and '.join(parts)} to {trip}, {rated}{dead}."


def _added(load: Load) -> str:
    if math.isinf(load.added_ms):
        return "more than any answer took, because half of the probes are lost,"
    value = ms(max(0.0, load.added_ms))
    if load.low_ms is None or load.high_ms is None:
        return f"{value} (uncertainty unknown: the load is too short)"
    high = "lost" if math.isinf(load.high_ms) else ms(max(0.0, load.high_ms))
    return f"{value} ({LEVEL:.0%}: {ms(max(0.0, load.low_ms))} to {high})"


def _second(check: Check) -> str:
    queues = [(load, load.queue) for load in check.loads]
    if all(queue is None for _, queue in queues):
        return "No queue on the path adds a delay above the uncertainty."
    stated = [f"under {WORDS[load.direction]} the queue is {_where(queue, load.hops)}" for load, queue in queues if queue is not None]
    text = _begun("; ".join(stated))
    calm = [WORDS[load.direction] for load, queue in queues if queue is None]
    return text + (f"; under {calm[0]} there is none" if calm else "") + "."


def _where(queue: Queue, hops: Sequence[Hop]) -> str:
    share = f" ({queue.share:.0%} of the delay)" if queue.share is not None else ""
    if queue.place == OWN:
        kind = f" ({queue.qdisc})" if queue.qdisc else ""
        return f"in this host's own device{kind}{share}"
    if queue.place == FAR:
        return f"in the far host's own device{share}"
    if queue.place not in (UP, DOWN):
        return f"in several places: no one of them has half of the delay{share and f', the largest{share}'}"
    return f"on the path {queue.place}{share}{_between(queue, hops)}"


def _between(queue: Queue, hops: Sequence[Hop]) -> str:
    if queue.hop is None:
        return ", at a place between the two hosts that the answers of the routers do not show"
    names = {hop.number: f"router {hop.number} ({hop.address})" for hop in hops}
    if queue.hop == 0:
        last = max(names, default=None)
        return f", behind {names[last]}" if last is not None else ""
    nearer = names.get(queue.hop - 1, "this host" if queue.hop == 1 else f"router {queue.hop - 1}")
    return f", between {nearer} and {names[queue.hop]}"


def _third(check: Check, bloated: Bloated, shapers: dict[str, float], here: Here) -> str:
    changed = "".join(
        f" (the rate {load.direction} changed: {', then '.join(f'{one.median:.2f}' for one in load.levels)} Mbit/s; "
        "all figures are of its lowest)"
        for load in check.loads if load.levels
    )  # fmt: skip
    return _remedy(check, bloated, shapers, here).removesuffix(".") + _losses(check) + _policers(check) + changed


def _losses(check: Check) -> str:
    """Problems that a small delay does not repair. Losses under a load alone are not those of a cable: a full queue drops packets."""
    idle = _lost(check.idle, IDLE_LOST)
    stated = [f"{idle:.1%} on the idle line: look for a bad cable, weak WiFi, or a host that limits its answers"] if idle else []
    for load in check.loads:
        share = _lost(load.loaded, LOADED_LOST)
        if not share or (load.policed is not None and not idle):
            continue
        place = f"{share:.1%} under {WORDS[load.direction]}"
        more = ", more than on the idle line" if idle else ", and not on the idle line"
        if idle and share < LOAD_FACTOR * idle:
            stated.append(f"{place}, no more than on the idle line")
        elif load.queue is not None or math.isinf(load.added_ms):
            stated.append(f"{place}{more}: the full queue drops packets")
        else:
            stated.append(f"{place}{more}: look for a short queue, or a device that drops packets above a rate")
    return f"; probes were lost, {'; '.join(stated)}" if stated else ""


def _lost(found: Delays, least: float) -> float:
    """The share of the probes that were lost; 0 below `least`."""
    share = found.lost / (found.lost + found.count) if found.lost >= LOST_LEAST else 0.0
    return share if share >= least else 0.0


def _policers(check: Check) -> str:
    found = [load.policed for load in check.loads if load.policed is not None]
    shaped = " and ".join(f"{SHAPED * one.rate_mbps:.2f} Mbit/s {one.direction}" for one in found)
    lines = "; ".join(f"a policer limits the rate: {line(one)}" for one in found)
    return f"; {lines}: a shaper set to {shaped} avoids these losses" if found else ""


def _remedy(check: Check, bloated: Bloated, shapers: dict[str, float], here: Here) -> str:
    if bloated == "no":
        rates = " and ".join(f"{load.rate_mbps:.2f} Mbit/s {load.direction}" for load in check.loads if load.rate_mbps is not None)
        reached = f"a load of {rates}" if rates else "a load of unknown rate"
        more = "if the line has a higher rate, name a faster server and measure again"
        for way in check.without:
            more += f"; to measure the {NOUNS[way]}, name a server by --server, or an URL by --{NOUNS[way]}"
        nothing = "The delay needs no repair" if _losses(check) or _policers(check) else "There is nothing to repair"
        return f"{nothing}, as far as {reached} shows: {more}."
    bad = [load for load in check.loads if word_of(load.added_ms) != "no"]
    advices = dict.fromkeys(advice for load in bad if (advice := _advice(load, here)))
    routers = [load for load in bad if not _advice(load, here)]
    if routers:
        rates = " and ".join(
            f"{shapers[load.direction]:.2f} Mbit/s {load.direction}" if load.direction in shapers else f"the line's rate {load.direction}"
            for load in routers
        )
        advices[f"set a shaper with cake or fq_codel (OpenWrt: SQM) in your router to {SHAPED:.0%} of the measured rate, {rates}"] = None
    text = "; ".join(advices)
    return f"{_begun(text)}; then measure again."


def _begun(text: str) -> str:
    return text[0].upper() + text[1:]


def _advice(load: Load, here: Here) -> str:
    """Empty: the remedy is a shaper in the router."""
    queue = load.queue
    if queue is not None and queue.place == OWN:
        return f"give this host's device a queue with active management, `tc qdisc replace dev {here.device or 'DEVICE'} root fq_codel`"
    if queue is not None and queue.place == FAR:
        return "take another server, because the queue is in the server's own device and not in the line"
    if queue is not None and queue.hop == 1 and here.wireless:
        return "connect this host by a cable, because the queue is in the WiFi"
    return ""
