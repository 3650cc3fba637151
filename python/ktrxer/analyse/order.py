# SPDX-License-Identifier: MIT OR Apache-2.0
"""The times at which several runs were made, also where the clock of their host was set between them.

`created` is the time of that clock. Two other orders do not depend on it: the number that a batch gives each of its runs, and the monotonic
clock of one boot. Where they contradict the clock, they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ktrxer.analyse.grouping import Member
from ktrxer.units import seconds

STEP_S = 1.0  # a change of the clock beside the monotonic one that is a step, and not a correction of its rate
RATE = 1e-3  # the largest correction of the clock's rate (the kernel's limit is half of it)


@dataclass
class Order:
    at: dict[str, float] = field(default_factory=dict)  # seconds since 1970, by the run's name; a run without a time is absent
    notes: list[str] = field(default_factory=list)

    def times(self, members: Iterable[Member]) -> list[float]:
        return [self.at[one.name] for one in members if one.name in self.at]


def order(members: Sequence[Member]) -> Order:
    """The times of these runs without the steps of the clock, and a note for each boot or batch in which it was set."""
    made = Order({one.name: at for one in members if (at := _clock(one)) is not None})
    boots: dict[str, list[Member]] = {}
    batches: dict[str, list[Member]] = {}
    for one in members:
        if one.name in made.at:
            boots.setdefault(one.facts.boot, []).append(one)
            batches.setdefault(one.facts.batch, []).append(one)
    for boot, some in boots.items():
        if boot:
            _without_steps(made, sorted(some, key=lambda one: one.facts.monotonic_ns))
    for batch, some in batches.items():
        if batch:
            _by_number(made, sorted(some, key=lambda one: (one.facts.number, one.facts.attempt)))
    return made


def _clock(member: Member) -> float | None:
    """The time of the run by the clock of its host."""
    if member.facts.boot:
        return member.facts.realtime_ns / 1e9
    return seconds(member.facts.created)


def _without_steps(made: Order, members: Sequence[Member]) -> None:
    """Runs of one boot, by its monotonic clock: each gets the time that the clock would have with the offset of most of them."""
    offsets = [made.at[one.name] - one.facts.monotonic_ns / 1e9 for one in members]
    steps = []
    for i in range(1, len(members)):
        passed = (members[i].facts.monotonic_ns - members[i - 1].facts.monotonic_ns) / 1e9
        if abs(offsets[i] - offsets[i - 1]) > STEP_S + RATE * passed:
            steps.append(i)
    if not steps:
        return
    usual = sorted(offsets)[len(offsets) // 2]
    for one in members:
        made.at[one.name] = usual + one.facts.monotonic_ns / 1e9
    first = steps[0]
    step = offsets[first] - offsets[first - 1]
    moved = f"was set back by {-step:.0f} s" if step < 0 else f"was set forward by {step:.0f} s (or the host slept)"
    more = f", and {len(steps) - 1} more times" if len(steps) > 1 else ""
    where = f"between {_file(members[first - 1])} and {_file(members[first])}{more}"
    host = members[first].facts.properties.get("host") or "the host"
    made.notes.append(f"the clock of {host} {moved} {where}: the order and the drift of its runs are those of its monotonic clock")


def _by_number(made: Order, members: Sequence[Member]) -> None:
    """Runs of one batch, by their numbers. One whose time is before that of an earlier number, and all later ones, are moved behind it."""
    times = [made.at[one.name] for one in members]
    gaps = sorted(after - before for before, after in pairwise(times) if after > before)
    usual = gaps[len(gaps) // 2] if gaps else 1.0
    shift, steps = 0.0, []
    for i in range(1, len(members)):
        before, now = made.at[members[i - 1].name], times[i] + shift
        if now < before:
            steps += [i] if before - now > STEP_S else []
            shift += before - now + usual
        made.at[members[i].name] = times[i] + shift
    if steps:
        one, earlier = members[steps[0]], members[steps[0] - 1]
        seconds = times[steps[0] - 1] - times[steps[0]]
        more = f", and {len(steps) - 1} more times" if len(steps) > 1 else ""
        found = f"{_file(one)} (number {one.facts.number} of its batch) is {seconds:.0f} s before {_file(earlier)} ({earlier.facts.number})"
        made.notes.append(f"the clock was set back between runs: {found}{more}: the order and the drift are those of the numbers")


def _file(member: Member) -> str:
    return Path(member.name).name
