# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts that the runners of the commands that estimate have in common: directions, pairs of packets, and results with bounds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.runners import flow, own
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import Options, Parameters, RunnerError, Times, Trial
from ktrxer.runners.samples import NotUnderstood, Samples
from ktrxer.store.meta import Kind, Series

Direction = Literal["up", "down", "both"]
WAYS: tuple[Literal["up", "down"], ...] = ("up", "down")
FIGURE_MOST = 1e18  # of an estimate
MBIT, MS, US = 1e6, 1e6, 1e3


@dataclass(frozen=True, kw_only=True)
class Directed(Parameters):
    direction: Direction = "both"


def check_choice(value: str, choices: Iterable[str], what: str) -> None:
    if value not in (known := list(choices)):
        raise RunnerError(f"{what}: {value[:40]!r}; it may be {', '.join(known)}")


def ways(direction: Direction) -> tuple[Literal["up", "down"], ...]:
    return WAYS if direction == "both" else (direction,)


def named(name: str, way: str, direction: Direction) -> str:
    """The name of a series. A process that measures both directions has a series for each."""
    return f"{name} {way}" if direction == "both" else name


def count_of(given: int | None, interval_ns: int, times: Times, least: int, most: int) -> int:
    """The number of probes: the given one, else as many as the time holds."""
    return given if given is not None else min(max(times.length_ns // interval_ns, least), most)


def server(o: Options) -> list[str]:
    """Options of the clients of `ktrxer serve`."""
    return ["--port", str(o.port), *(["--token-file", o.token_file] if o.token_file else []), *own.sockets(o)]


def server_trial(p: Parameters, o: Options, _: bool) -> Trial:
    """Does the server admit this host? One byte of a flow shows it."""
    return flow.trial(flow.Flows(host=p.host), o, False)


def ended(samples: Samples, end: Object) -> int:
    """The end of the measurement, in time of the run."""
    return number(end, "end_ns") - own.zero(samples)


def part(end: Object, name: str) -> Object:
    """A member that is an object. A direction that was not measured is missing."""
    found = end.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise NotUnderstood(f"{name} is no object")
    return found


def estimate(samples: Samples, key: Hashable, at_ns: int, made: Any, unit: float = 1.0) -> None:
    """A row of the table `range` from an object with value, low and high, of which some may be missing. None: there is no result.
    `unit`: of the stored figures, in units of the object's."""
    if made is None:
        return
    if not isinstance(made, dict):
        raise NotUnderstood("an estimate is no object")
    figures = {name: _figure(made, name, unit) for name in ("value", "low", "high")}
    low, high = figures["low"], figures["high"]
    if low is not None and high is not None and low > high:
        raise NotUnderstood(f"an estimate from {low:g} to {high:g}")
    if any(figure is not None for figure in figures.values()):
        samples.add(key, at_ns, **figures)


def _figure(made: Object, name: str, unit: float) -> float | None:
    """An estimate without a limit is printed as a very large number, or as null: it has no bound."""
    value = made.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotUnderstood(f"{name} is no number")
    return value / unit if -FIGURE_MOST < value < FIGURE_MOST else None


def pair_rows(samples: Samples, key: Callable[[str], Hashable], size: str, interval_ns: int) -> Callable[[Object], None]:
    """Adds a row of the table `pair` for each object with the four times of two packets. `size`: its field with the bytes of a packet.
    `interval_ns`: between pairs of one size, for the place of a pair that has no time of this host."""

    def add(sample: Object) -> None:
        way, seq, length = str(sample.get("direction")), number(sample, "number"), number(sample, size)
        sent = [_time(sample, name) for name in ("first_sent_ns", "second_sent_ns")]
        arrived = [_time(sample, name) for name in ("first_arrived_ns", "second_arrived_ns")]
        # Send times up and arrivals down are on the clock of the command.
        local = arrived[0] if way == "down" else sent[0]
        delay = arrived[0] - sent[0] if arrived[0] is not None and sent[0] is not None else None
        if delay is not None:
            delay -= samples.memory.setdefault(("first delay", way), delay)
        samples.add(
            key(way), local - own.zero(samples) if local is not None else samples.from_ns + seq * interval_ns, seq=seq, bytes=length,
            send_gap_ns=_gap(sent), arrival_gap_ns=_gap(arrived), delay_ns=delay,
        )  # fmt: skip

    return add


def _time(sample: Object, name: str) -> int | None:
    return None if sample.get(name) is None else number(sample, name)


def _gap(times: list[int | None]) -> int | None:
    first, second = times
    return second - first if first is not None and second is not None else None


def series_by_way(name: str, direction: Direction, kinds: Mapping[Kind, str], **more: Any) -> dict[Hashable, Series]:
    """Series of each direction by their kinds, each with its unit; the key is (kind, direction)."""
    made: dict[Hashable, Series] = {}
    for way in ways(direction):
        for kind, unit in kinds.items():
            made[kind, way] = Series(0, named(name, way, direction), kind, unit, direction=way, **more)
    return made
