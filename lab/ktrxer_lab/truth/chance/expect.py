# SPDX-License-Identifier: MIT OR Apache-2.0
"""The truth about one command of a draw: from the construction of the path, from counters, and from the bytes that arrived over time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ktrxer_lab.truth import judge
from ktrxer_lab.truth.chance import moved
from ktrxer_lab.truth.chance.claims import Claims
from ktrxer_lab.truth.chance.draw import ANSWERS, BOX_WAYS, FLOW_S, Draw, build
from ktrxer_lab.truth.figure import WORDS
from ktrxer_lab.truth.path import DOWN, ROUTE, UP, Truth, Way

ROUTE_6 = "fd00:64:1::2 fd00:64:2::2 fd00:64:3::2"

SIGMAS = 4.0  # standard errors of a share
SPACING_MS = 2 * 20.0  # two probes of a run
MEDIAN_ERRORS = 4.0  # standard errors of a median: one median of 16,000 is further away
ROW_S = 0.005  # between two rows of the byte counts
QUEUE_MS = 150.0  # of a queue whose length is not known
CAPACITY_IP = 1250  # bytes of its IP packets
ETHERNET = 14  # which the rate of a link counts
NAMED_MS = 700.0  # a flow names an outage of this length, and two round trips beside it
EDGE = 0.005  # share of the bytes of a flow before its begin, and after its end
SHAPED = frozenset({"rate", "slow", "free"})  # parts of a path that are no faults

# The faults that explain a reason. A reason that is not in the table is explained by none.
DEAD = frozenset({"outage", "loss", "stall", "prohibit", "unreachable", "policer", "reset", "portal", "echo", "held"})
CLEARED = "ecn_bleached"
# A flow of TCP gets less than the rate.
HINDERS = frozenset({"slow", "loss", "outage", "reorder", "jitter", "policer", "marks", "held", "step"})
WINDOWS = frozenset({"flow_window", "flow_server_window"})  # the only limit of a flow where the path has no rate
EXPLAINS = {
    "flow_begun_late": DEAD,
    "flow_not_covered": DEAD,
    "flow_ended_early": DEAD,
    "flow_ended": DEAD,
    "flow_nothing_received": DEAD,
    "flow_ends_missing": DEAD,
    "flow_network_answered": frozenset({"unreachable"}),
    CLEARED: frozenset({"bleach"}),
    "flow_server_idle": frozenset({"held"}),
    "capacity_server_paused": frozenset({"held"}),
    "capacity_server_receiver_late": frozenset({"held"}),
    "capacity_copies": frozenset({"duplicate"}),
    "capacity_missing": DEAD,
    "capacity_silent": DEAD,
    "capacity_ended": DEAD,
    "other_protocol": frozenset({"portal"}),
    "udp_blocked_up": frozenset({"echo", "unreachable"}),
    "not_a_reflector": frozenset({"echo"}),
    "far_ended": frozenset({"reset"}),
    "own_load": HINDERS,  # the probes of a run take more than 2 % of a slow flow
    **dict.fromkeys(WINDOWS, frozenset({"free"})),
}
HIGHER = frozenset({"capacity_rising", "capacity_not_filled"})  # these are true where the path carries more, and are no fault of it
HIGHER_SHARE = 1.02


@dataclass(frozen=True)
class Expected:
    figures: Mapping[str, Truth]  # widened by the sampling interval
    faults: frozenset[str]
    words: Mapping[str, str]  # the true value of a figure that is text
    lossy: frozenset[str] = frozenset()  # the directions in which a fault drops packets
    outage: Truth | None = None  # its length in ms, as probes see it
    outage_ways: tuple[str, ...] = ()
    policed: tuple[str, ...] = ()
    cleared: str = ""  # the direction in which ECN marks are removed
    rows: Mapping[str, list[tuple[int, int, int]]] = field(default_factory=dict)  # of the largest flow that arrived, by the client's clock
    free: frozenset[str] = frozenset()  # the directions without a rate
    missed: tuple[str, ...] = ()  # directions whose flow had an outage that is long enough to be named
    answered: bool = False  # another host answered in the place of the server
    higher: frozenset[str] = frozenset()  # directions that carry more than their capacity that is claimed

    def explained(self, reason: str, text: str = "") -> bool:
        if reason in HIGHER:
            return text.partition(":")[0] in self.higher
        return bool(EXPLAINS.get(reason, frozenset()) & self.faults)

    def ways(self, reason: str) -> frozenset[str]:
        """The directions that a sentence of this reason may name."""
        if reason == "flow_server_idle":  # a server without a processor stops the flows of both directions
            return frozenset({UP, DOWN})
        return frozenset({self.cleared}) if reason == CLEARED else self.free if reason in WINDOWS else self.lossy


def truth(draw: Draw, claims: Claims, done: Mapping[str, Any]) -> Expected:
    """The true values of the figures that the command claims."""
    path, found = build(draw), dict[str, Truth]()
    probes = next((one.trials for one in claims.figures if one.trials), None) or 1
    for one in claims.figures:
        if one.name in WORDS or (one.name == "round trip max" and draw.held is not None):
            continue  # answers that waited for a processor leave together, and wait for each other in a queue
        known = judge.known(path, one, done) if not one.name.startswith(("TCP", "UDP", "loss", "duplicates")) else None
        if known is not None:
            jitter = draw.up.jitter_ms + draw.down.jitter_ms if "delay" in one.name or "trip" in one.name else 0.0
            spread = MEDIAN_ERRORS * jitter / math.sqrt(probes)
            if one.name.startswith("CE"):
                spread = SIGMAS * math.sqrt(known[0].middle * (1 - known[0].middle) / (one.trials or 1))
            found[one.name] = Truth(known[0].low - spread, known[0].high + spread)
        elif one.name.startswith("loss") and one.trials:
            lost = _lost(draw, done, one.name.removeprefix("loss "))
            # Packets of the command's own signalling may be among the lost ones.
            signals = max(0, done["counted"][DOWN if one.name.endswith(DOWN) else UP]["first"] - one.trials)
            found[one.name] = Truth(max(0.0, (lost[0] - signals) / one.trials), lost[1] / one.trials)
    for way in claims.rates:
        rate = _rate(draw, done, way, _seconds(claims.command))
        if rate is not None:
            found[f"rate {way}"] = rate
    rows = {way: _rows(draw, done, way) for way in (UP, DOWN)}
    for one in claims.figures:
        way = one.name.split()[-1]
        if one.name.startswith("capacity") and not _of(draw, way).duplicate:
            highest = moved.highest(rows[way], 1_000_000_000, CAPACITY_IP / (CAPACITY_IP - (48 if draw.v6 else 28)))
            if highest is not None:
                found[one.name] = highest
    loaded = UP if "upload" in claims.command else DOWN
    words = {"route": ROUTE_6 if draw.v6 else ROUTE, "where": loaded}
    policed = tuple(name for name, way in ((UP, draw.up), (DOWN, draw.down)) if way.police_mbps is not None)
    length_ms = _outage_ms(draw, claims, done)
    made = Expected(
        found, draw.faults, words, _lossy(draw), policed=policed, cleared=draw.bleach, rows=rows,
        free=frozenset(name for name, way in ((UP, draw.up), (DOWN, draw.down)) if way.free), higher=_higher(draw, claims),
        missed=_missed(draw, claims, done, rows), answered=_answered(draw.box, claims.command),
    )  # fmt: skip
    if draw.outage is None or length_ms <= 0:
        return made
    # Packets wait in the queues before they reach the wire: probes that were sent so much earlier are lost, too.
    slack = Truth(length_ms - SPACING_MS, length_ms + SPACING_MS + max(_drain_ms(draw, UP), _drain_ms(draw, DOWN)))
    return replace(made, outage=slack, outage_ways=draw.outage.ways)


def _outage_ms(draw: Draw, claims: Claims, done: Mapping[str, Any]) -> float:
    """The length of the outage; of a run that began during the outage, the rest."""
    if draw.outage is None or claims.span_ns is None:
        return 1000 * draw.outage.length_s if draw.outage else 0.0
    dead = [event["at_ns"] + done["offset_ns"] for event in done["events"] if event["outage"]]
    return float(min(dead[1], claims.span_ns[1]) - max(dead[0], claims.span_ns[0])) / 1e6


def _lossy(draw: Draw) -> frozenset[str]:
    ways = {UP: draw.up, DOWN: draw.down}
    found = {name for name, way in ways.items() if way.loss or way.police_mbps is not None}
    return frozenset(found | {*(draw.outage.ways if draw.outage else ()), *(BOX_WAYS[draw.box] if draw.box else ())})


def _answered(box: str, command: str) -> bool:
    """Whether a middlebox of ANSWERS answers this command in the place of the server."""
    udp = command.startswith(("stamp", "flow -u"))
    return box in ANSWERS and (udp if box == "echo" else command.startswith(("flow", "run", "check")))


def _of(draw: Draw, way: str) -> Way:
    return draw.up if way == UP else draw.down


def _rows(draw: Draw, done: Mapping[str, Any], way: str) -> list[tuple[int, int, int]]:
    """The rows by the client's CLOCK_REALTIME: packets of up have stamps of the server's clock."""
    rows: list[tuple[int, int, int]] = done["arrived"].get(way, {}).get("rows", [])
    if way == DOWN or not (draw.ahead_ms or draw.rate_ppm):
        return rows
    at_ns, ahead_ns = done["clock"]
    now_ns = at_ns + done["offset_ns"] + ahead_ns
    return [(round(at - ahead_ns + (now_ns - at) * draw.rate_ppm * 1e-6), total, read) for at, total, read in rows]


def _missed(draw: Draw, claims: Claims, done: Mapping[str, Any], rows: Mapping[str, list[tuple[int, int, int]]]) -> tuple[str, ...]:
    """The directions of flows that the path was dead for, long enough to be named, between bytes of the flow."""
    if draw.outage is None or claims.flow_ns is None:
        return ()
    dead = [event["at_ns"] + done["offset_ns"] for event in done["events"] if event["outage"]]
    least_ns = 1e6 * (NAMED_MS + 2 * (draw.up.delay_ms + draw.down.delay_ms + _drain_ms(draw, UP) + _drain_ms(draw, DOWN)))
    return tuple(
        way for way in draw.outage.ways if way in claims.rates and len(dead) == 2 and any(
            min(high[0], dead[1]) - max(low[0], dead[0]) >= least_ns for low, high in pairwise(rows[way])
        )
    )  # fmt: skip


def _higher(draw: Draw, claims: Claims) -> frozenset[str]:
    """The directions whose rate by construction, in IP packets, is higher than the capacity that the command claims."""
    claimed = {one.name.removeprefix("capacity "): one.value for one in claims.figures if one.name.startswith("capacity ")}
    limits = {way: _of(draw, way).rate_mbps or _of(draw, way).police_mbps or math.inf for way in (UP, DOWN)}
    return frozenset(way for way, mbps in claimed.items() if HIGHER_SHARE * mbps < limits[way] * CAPACITY_IP / (CAPACITY_IP + ETHERNET))


def _seconds(command: str) -> float:
    words = command.split()
    return float(words[words.index("--for") + 1].removesuffix("s")) if "--for" in words else FLOW_S


def drops(done: Mapping[str, Any]) -> dict[str, int]:
    """The packets that the outage dropped, by direction."""
    found: dict[str, int] = {}
    for event in done["events"]:
        for one in json.loads(event["out"])["nftables"] if event["out"].startswith("{") else ():
            if "counter" in one:
                found[one["counter"]["name"]] = one["counter"]["packets"]
    return found


def _lost(draw: Draw, done: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Minimum and maximum number of packets that were lost in one direction, or in either."""
    counted = done["counted"]
    lost = {way: counted[way]["first"] - counted[way]["last"] + done["arrived"][way]["copies"] for way in (UP, DOWN)}
    if name in lost:
        return lost[name], lost[name]
    # A lost answer to a probe of which two copies arrived may be the answer to one of them only.
    copies = done["arrived"][UP]["copies"] if draw.up.duplicate else 0
    return lost[UP] + max(0, lost[DOWN] - copies), lost[UP] + lost[DOWN]


def _rate(draw: Draw, done: Mapping[str, Any], way: str, length_s: float) -> Truth | None:
    """The rate of payload in Mbit/s: at least that of the bytes that a program could read in order while the flow was sent; at most that of
    all bytes that arrived, without copies, between the first and the last packet."""
    rows: list[tuple[int, int, int]] = done["arrived"][way]["rows"]
    if len(rows) < 3:
        return None
    begin, whole, end = rows[0][0], rows[-1][1], rows[-1][0]
    early = next(at for at, count, _ in rows if count > EDGE * whole)
    late = next(at for at, count, _ in rows if count >= (1 - EDGE) * whole)
    longest = max((end - begin) / 1e9, length_s)
    shortest = min(length_s, longest) / 2
    # Bytes arrive after the end of the flow, and more slowly than before it where the rate of the path has sunk.
    ends = [(at, count, read) for at, count, read in rows if at >= end - 1e6 * _drain_ms(draw, way)]
    low = min(read for _, _, read in ends) * 8e-6 / longest
    last = [(min(at, late), count) for at, count, _ in ends]
    high = max(count * 8e-6 / max((at - early) / 1e9 - 2 * ROW_S, shortest) for at, count in last)
    return Truth(low, max(low, high))


def _drain_ms(draw: Draw, way: str) -> float:
    """The time in which packets arrive after the end of a flow: a full queue, and a round trip for a segment that is sent again."""
    of = draw.up if way == UP else draw.down
    slowest = draw.step.factor if draw.step is not None and draw.step.way == way else 1.0
    queue_ms = 0.0 if of.rate_mbps is None else of.queue_bytes() * 8e-3 / (of.rate_mbps * slowest) or QUEUE_MS / slowest
    return queue_ms + draw.up.delay_ms + draw.down.delay_ms
