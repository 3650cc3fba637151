# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the claims of a command with the truth about its draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ktrxer_lab.truth.chance.claims import NONE, VALID, Claims, Dead
from ktrxer_lab.truth.chance.draw import BOTH
from ktrxer_lab.truth.chance.expect import DEAD, SHAPED, Expected
from ktrxer_lab.truth.chance.moved import is_true, level
from ktrxer_lab.truth.figure import WORDS
from ktrxer_lab.truth.path import DOWN, UP, Truth

FALSE_VALID, FALSE_CAUSE, FALSE_ALARM = "false valid", "false cause", "false alarm"
KINDS = (FALSE_VALID, FALSE_CAUSE, FALSE_ALARM)
# The tolerances of a verdict, and those of the readings of the truth.
LEAST_OUTAGE_MS = 600.0  # a run names an outage of this length in any case: ten probes of 20 ms, and a queue before it
SHARE, LEAST_MS, LOSS = 0.05, 0.02, 0.005
MARKED = "--ecn ect0"
LEVEL_SHARE = 0.1
RATE_SHARE, LEAST_MBPS = 0.02, 0.01
# Queues drop packets of flows, so that one may wait for its time-outs, and its rate may change.
UNLUCKY = frozenset({"reorder", "jitter", "marks", "duplicate"})
PLACE = re.compile(r"\bthe path (up|down)\b|\b(up|down): limited by")  # a sentence that names a direction
OWN_INTERVAL = ("delay up p50", "delay down p50", "clock offset", "clock rate")  # the interval of the command is the claim


@dataclass(frozen=True)
class Finding:
    kind: str
    command: str
    name: str  # the figure, or the identifier of the reason
    text: str


def judge(claims: Claims, expected: Expected) -> list[Finding]:
    return list(_findings(claims, expected))


def _findings(claims: Claims, expected: Expected) -> Iterator[Finding]:
    faulty = bool(expected.faults - SHAPED)

    def found(kind: str, name: str, text: str) -> Finding:
        return Finding(kind, claims.command, name, text)

    wrong = [*_wrong(claims, expected)]
    if claims.verdict == VALID:
        yield from (found(FALSE_VALID, name, text) for name, text in wrong)
        if MARKED in claims.command and expected.cleared and f"-u {expected.cleared} " in claims.command:
            yield found(FALSE_VALID, "marks", f"the path {expected.cleared} removes ECN marks, and that is not named")
        if claims.problem:
            yield found(FALSE_VALID, "figures", f"valid without figures: {claims.problem}")
    unexplained = [one for one in claims.reasons if not expected.explained(one.id, one.text) or _places(one.text) - expected.ways(one.id)]
    for reason in unexplained:
        yield found(FALSE_CAUSE if faulty else FALSE_ALARM, reason.id, reason.text)
    for one in claims.outages or ():
        if not _true_outage(one, expected):
            kind = FALSE_CAUSE if faulty else FALSE_ALARM
            text = f"{one.low_ms:g} to {one.high_ms} ms {one.direction}, truth {expected.outage} {expected.outage_ways}"
            yield found(kind, "outage", text)
    if claims.outages == () and claims.verdict == VALID and expected.outage is not None and expected.outage.low > LEAST_OUTAGE_MS:
        yield found(FALSE_VALID, "outage", f"an outage of {expected.outage.low:g} ms is not named")
    for way in claims.policed:
        if way not in expected.policed:
            yield found(FALSE_CAUSE if faulty else FALSE_ALARM, "policer", f"a policer is named {way}")
    yield from (found(*one) for one in _moved(claims, expected, faulty))
    if claims.verdict == NONE and expected.answered:
        return
    if claims.verdict == NONE:
        yield found(FALSE_ALARM, "no result", f"exit status {claims.status}: {claims.problem}")
    elif claims.verdict != VALID and not claims.reasons:
        yield found(FALSE_ALARM, claims.verdict, f"{claims.verdict} without a reason")


def _places(text: str) -> set[str]:
    """The directions that a sentence names."""
    return {way for ways in PLACE.findall(text) for way in ways if way}


def _moved(claims: Claims, expected: Expected, faulty: bool) -> Iterator[tuple[str, str, str]]:
    """Claims about the bytes of flows over time, and error bounds."""
    cause = FALSE_CAUSE if faulty else FALSE_ALARM
    for still in claims.still:
        if claims.flow_ns is None:
            continue
        what = f"no byte {still.direction} for {still.low_ns / 1e6:.0f} to {(still.high_ns or 0) / 1e6:.0f} ms"
        if not expected.faults & (DEAD | UNLUCKY):
            yield cause, "byte outage", f"{what}, and no fault stops packets"
        elif not still.part and not is_true(still, expected.rows[still.direction], *claims.flow_ns):
            yield FALSE_VALID, "byte outage", f"{what} from {(still.from_ns - claims.flow_ns[0]) / 1e9:.2f} s on, and bytes arrived"
    for way in expected.missed if claims.verdict == VALID else ():
        if not any(still.direction == way for still in claims.still):
            yield FALSE_VALID, "byte outage", f"the path {way} was dead, and that is not named"
    for one in claims.levels:
        true = level(one, expected.rows[one.direction])
        if true is not None and abs(true.distance(one.mbps)) > LEVEL_SHARE * true.high:
            yield FALSE_VALID, "level", f"{one.mbps:.4g} Mbit/s {one.direction}, truth {true.low:.4g} to {true.high:.4g}"
    if claims.levels and not expected.faults & (DEAD | UNLUCKY | {"step"}):
        yield cause, "level", f"{len(claims.levels)} levels, and the rate of the path is constant"
    for bound in claims.bounds:
        true = expected.figures.get(bound.name)
        if true is not None and abs(true.distance(bound.value)) > bound.bound + slack(bound.name, true):
            text = f"{bound.name} {bound.value:.6g} +- {bound.bound:.4g}, truth {true.low:.6g} to {true.high:.6g}"
            yield FALSE_VALID, "bound", text
    if expected.answered and claims.verdict == VALID:
        yield FALSE_VALID, "answers", "another host answered in the place of the server"


def slack(name: str, true: Truth) -> float:
    """The error of the truth itself."""
    return LEAST_MS if "trip" in name else LOSS / 2 if name.startswith("loss") else max(LEAST_MBPS, RATE_SHARE * true.high)


def _wrong(claims: Claims, expected: Expected) -> Iterator[tuple[str, str]]:
    """The figures that are not within the tolerance of the truth, with a sentence."""
    values = [(one.name, one.value, one.low, one.high) for one in claims.figures]
    values += [(f"rate {way}", rate, None, None) for way, rate in claims.rates.items()]
    for one in claims.figures:
        right = expected.words.get(one.name, one.text)
        if one.name in WORDS and not _same(one.text.split(), right.split()):
            yield one.name, f"{one.name} {one.text}, truth {right}"
    for name, value, low, high in values:
        true = expected.figures.get(name)
        if true is None:
            continue
        if low is not None and high is not None and low <= true.high and true.low <= high:
            continue
        off = 0.0 if name in OWN_INTERVAL else tolerance(name, true)
        if abs(true.distance(value)) > off:
            claimed = f"{value:.6g}" if low is None else f"{value:.6g} ({low:.6g} to {high:.6g})"
            yield name, f"{name} {claimed}, truth {true.low:.6g} to {true.high:.6g}"


def _same(words: list[str], right: list[str]) -> bool:
    """A router that did not answer is no false claim."""
    return len(words) == len(right) and all(word in (true, "*") for word, true in zip(words, right, strict=True))


def _true_outage(one: Dead, expected: Expected) -> bool:
    true = expected.outage
    if true is None:
        return False
    ways = {BOTH: (UP, DOWN)}.get(one.direction, (one.direction,))
    right = one.direction == "" or set(ways) <= set(expected.outage_ways)
    return right and one.low_ms <= true.high and (one.high_ms is None or one.high_ms >= true.low)


def tolerance(name: str, true: Truth) -> float:
    if name.startswith(("loss", "duplicates", "CE")):
        return LOSS
    least = LEAST_MS if "trip" in name or "delay" in name else 0.0
    return max(SHARE * abs(true.high), least)
