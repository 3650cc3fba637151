# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of a tool for a path, by name, with an interval if the tool gives one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NAMES = (
    "round trip p50", "round trip mean", "round trip min", "round trip max", "delay up p50", "delay down p50",
    "loss round trip", "loss up", "loss down", "duplicates up", "duplicates down", "CE up", "CE down",
    "TCP up", "TCP down", "TCP bytes up", "TCP bytes down", "UDP up", "UDP down",
    "idle round trip p50", "idle delay up p50", "idle delay down p50",
    "loaded round trip mean", "loaded delay up p50", "loaded delay down p50", "where",
    "capacity up", "capacity down", "clock offset", "clock rate", "route", "routes",
)  # fmt: skip


WORDS = ("where", "route")  # figures whose value is text


@dataclass(frozen=True)
class Figure:
    """Units: delays in milliseconds; losses, duplicates and marks as shares; rates in Mbit/s, for TCP of payload, for UDP of frames, for a
    capacity of IP packets; the offset of the server's clock in milliseconds ahead, and its rate in ppm."""

    name: str
    value: float
    low: float | None = None  # the interval that the tool prints
    high: float | None = None
    events: int | None = None  # for a share: this number out of `trials`
    trials: int | None = None
    loaded: bool = False  # whether the tool itself loads the path
    text: str = ""  # the value of a text figure
    at_ns: int = 0  # for a clock offset: its time, by CLOCK_MONOTONIC of the client
    others_mbps: float = 0.0  # for a rate: the tool's other traffic in that direction

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"unknown figure {self.name!r}")


def share(name: str, events: int, trials: int, loaded: bool = False) -> list[Figure]:
    """A share from its counts; an empty list without trials."""
    return [Figure(name, events / trials, None, None, events, trials, loaded)] if trials > 0 else []


@dataclass(frozen=True)
class Output:
    """The output of one command in the guest."""

    command: Sequence[str]
    status: int
    out: str
    err: str


class Unreadable(Exception):
    """The adapter finds no figures in the output. The message states the reason and what to do."""


def json_object(output: Output, option: str) -> dict[str, Any]:
    """The parsed output of a tool that prints JSON with this option."""
    try:
        result = json.loads(output.out)
    except ValueError:
        reason = output.err.strip().splitlines()[-1:]
        raise Unreadable(f"the output is not JSON: {reason[0] if reason else f'give it {option}'}") from None
    if not isinstance(result, dict):
        raise Unreadable(f"the output is not one JSON object: give it {option}")
    return result


def binomial_interval(events: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The Clopper-Pearson interval of a share, by bisection."""
    tail = (1 - level) / 2

    def solve(wanted: float, at_most: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _at_most(at_most, trials, middle) > wanted else (low, middle)
        return (low + high) / 2

    return (0.0 if events == 0 else solve(1 - tail, events - 1)), (1.0 if events == trials else solve(tail, events))


def _at_most(k: int, n: int, p: float) -> float:
    """The probability of at most k events in n trials."""
    if p <= 0:
        return 1.0
    if p >= 1:
        return 0.0 if k < n else 1.0

    def log_of(i: int) -> float:
        ways = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        return ways + i * math.log(p) + (n - i) * math.log1p(-p)

    return min(1.0, math.fsum(math.exp(log_of(i)) for i in range(k + 1)))
