# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times in which no byte of any flow of a direction, or of some of them, arrived, as the processes of the flows have found them
(methods/estimate/byte_outages.h)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ktrxer.store import Run
from ktrxer.store.meta import Runner
from ktrxer.summary.outages import Outage, longest
from ktrxer.units import delay

MS, S = 1e6, 1e9
LEAST_NS = 200_000_000
PART_LEAST_NS = 1_000_000_000  # of flows while others went on (methods/flow/flow_series.c)


@dataclass(frozen=True)
class ByteOutage:
    """`low_ms` is certain; `high_ms` is at most the length. None: no byte arrived after it."""

    from_s: float
    low_ms: float
    high_ms: float | None
    direction: str  # "up", "down"
    flows: int  # so many stood still
    of_flows: int  # of so many


@dataclass(frozen=True)
class _Dead:
    from_ns: int
    low_ns: int
    high_ns: int | None
    flow: int | None = None  # one flow of the process

    def overlaps(self, other: _Dead) -> bool:
        return self.from_ns < other.from_ns + other.low_ns and other.from_ns < self.from_ns + self.low_ns


def begin_of(runner: Runner) -> int | None:
    """Add it to a time of the process to get that of the run. None: not known."""
    start = runner.result.get("start_ns")
    return runner.from_ns - start if runner.kind == "flow" and runner.from_ns is not None and isinstance(start, int) else None


def byte_outages(run: Run) -> list[ByteOutage]:
    """Those that all processes with flows in the direction have found, and those of single flows or processes beside them."""
    made = []
    for way in ("up", "down"):
        numbers = Counter(series.runner for series in run.meta.of_kind("bytes") if series.direction == way)
        runners = [one for one in run.meta.runners if one.id in numbers]
        found = [_found(one, way) for one in runners]
        if None in numbers or not runners or any(one is None for one in found):
            continue
        both = [(runner, dead) for runner, dead in zip(runners, found, strict=True) if dead is not None]
        common, of_flows = _common([(runner, [one for one in dead if one.flow is None]) for runner, dead in both]), numbers.total()
        made += [_shown(one, way, of_flows, of_flows) for one in common]
        for runner, dead in both:
            for one in dead:
                flows = numbers[runner.id] if one.flow is None else 1
                if flows < of_flows and one.low_ns >= PART_LEAST_NS and not any(one.overlaps(other) for other in common):
                    made.append(_shown(one, way, flows, of_flows))
    return made


def _shown(one: _Dead, way: str, flows: int, of_flows: int) -> ByteOutage:
    high_ms = one.high_ns / MS if one.high_ns is not None else None
    return ByteOutage(one.from_ns / S, one.low_ns / MS, high_ms, way, flows, of_flows)


def _found(runner: Runner, way: str) -> list[_Dead] | None:
    begin = begin_of(runner)
    if begin is None or "outages" not in runner.result:
        return None
    of_way = [one for one in runner.result["outages"] if one["direction"] == way]
    return [_Dead(begin + one["from_ns"], one["low_ns"], one.get("high_ns"), one.get("flow")) for one in of_way]


def _common(found: Sequence[tuple[Runner, list[_Dead]]]) -> list[_Dead]:
    made: list[_Dead] = []
    for number, (_, dead) in enumerate(found):
        for one in dead:
            parts: list[_Dead] = [one]
            for other, (runner, others) in enumerate(found):
                if other != number and _active(runner, one):
                    parts = [both for a in parts for b in others if (both := _both(a, b)) is not None]
            made += [part for part in parts if part not in made]
    return sorted(made, key=lambda one: one.from_ns)


def _active(runner: Runner, one: _Dead) -> bool:
    """It has flows in this time."""
    return (runner.from_ns or 0) < one.from_ns + one.low_ns and (runner.to_ns is None or runner.to_ns > one.from_ns)


def _both(a: _Dead, b: _Dead) -> _Dead | None:
    from_ns, to_ns = max(a.from_ns, b.from_ns), min(a.from_ns + a.low_ns, b.from_ns + b.low_ns)
    known = [one.high_ns for one in (a, b) if one.high_ns is not None]
    return _Dead(from_ns, to_ns - from_ns, min(known, default=None)) if to_ns - from_ns >= LEAST_NS else None


def longest_of_all(answers: Sequence[Outage], flows: Sequence[ByteOutage]) -> float:
    """The least length of the longest one in ms; 0: none. One of all flows without an end may be the end of a program."""
    certain = (one.low_ms for one in flows if one.high_ms is not None or one.flows < one.of_flows)
    return max(longest(answers), max(certain, default=0.0))


def line(one: ByteOutage) -> str:
    low = delay(one.low_ms)
    between = f"at least {low}, up to the end" if one.high_ms is None else f"{low} to {delay(one.high_ms)}"
    part = f" in {one.flows} of {one.of_flows} flows" if one.flows < one.of_flows else ""
    return f"no byte {one.direction}{part} for {between}, from {one.from_s:.2f} s on"
