# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the claims of a command with the truth about its draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ktrxer_lab.truth.chance.claims import NONE, VALID, Claims, Dead
from ktrxer_lab.truth.chance.draw import BOTH
from ktrxer_lab.truth.chance.expect import SHAPED, Expected
from ktrxer_lab.truth.figure import WORDS
from ktrxer_lab.truth.path import DOWN, UP, Truth

FALSE_VALID, FALSE_CAUSE, FALSE_ALARM = "false valid", "false cause", "false alarm"
KINDS = (FALSE_VALID, FALSE_CAUSE, FALSE_ALARM)
# The tolerances of a verdict, and those of the readings of the truth.
LEAST_OUTAGE_MS = 600.0  # a run names an outage of this length in any case: ten probes of 20 ms, and a queue before it
SHARE, LEAST_MS, LOSS = 0.05, 0.02, 0.005
MARKED = "--ecn ect0"
PLACE = re.compile(r"\bthe path (up|down)\b")  # a sentence that names a direction
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
    unexplained = [one for one in claims.reasons if not expected.explained(one.id) or set(PLACE.findall(one.text)) - expected.ways(one.id)]
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
    if claims.verdict == NONE:
        yield found(FALSE_ALARM, "no result", f"exit status {claims.status}: {claims.problem}")
    elif claims.verdict != VALID and not claims.reasons:
        yield found(FALSE_ALARM, claims.verdict, f"{claims.verdict} without a reason")


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
