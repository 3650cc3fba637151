# SPDX-License-Identifier: MIT OR Apache-2.0
"""ICMP echo to a router on the path, by `ktrxer ping`. The round trips are numbers, and no delays of the path: a router is not the far end,
and the figures of a run must not mix the two."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from ktrxer.runners import own
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import MS, Ended, Options, Parameters, Runner, RunnerError, S, Times
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Series
from ktrxer.store.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class Hop(Parameters):
    interval_ns: int = 200 * MS  # routers limit their answers, and are other people's


def validate(p: Hop) -> None:
    if not 50 * MS <= p.interval_ns <= 60 * S:
        raise RunnerError(f"probes every {p.interval_ns / MS:g} ms; 50 ms to 60 s are possible for a router")


def timeout_of(_: Hop, o: Options) -> int:
    return o.timeout_ns


def words(p: Hop, o: Options) -> list[str]:
    return [o.ktrxer, "ping", p.host or o.host, "--interval", f"{p.interval_ns}ns", "--timeout", f"{o.timeout_ns}ns", *own.sockets(o)]


def command(p: Hop, o: Options, times: Times) -> list[str]:
    return own.words(words(p, o), times)


def series(_: Hop, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "value", "ms", group="Hops (ms)")}


def read(_: Hop, samples: Samples) -> Reading:
    return own.read(samples, _sample(samples))


def _sample(samples: Samples) -> Callable[[Object], None]:
    def add(made: Object) -> None:
        if made.get("kind") in ("round_trip", "too_late"):
            samples.value("rtt", number(made, "sent_ns") - own.zero(samples), number(made, "rtt_ns") / MS)

    return add


def health(ended: Ended) -> Iterable[Reason]:
    """A router that no longer answers under load does not make the figures of the path invalid."""
    return own.health(ended, worst="degraded")


RUNNER = Runner(
    "hop", "ICMP echo to a router on the path", Hop, validate, command, series, read, health, own=True, timeout_ns=timeout_of,
)  # fmt: skip
