# SPDX-License-Identifier: MIT OR Apache-2.0
"""ICMP echo to a router on the path, by `ktrxer ping`. The round trips are numbers, and no delays of the path: a router is not the far end,
and the figures of a run must not mix the two."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import own
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import MS, Options, Parameters, Runner, Times, between
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Series


@dataclass(frozen=True, kw_only=True)
class Hop(Parameters):
    interval_ns: int = 200 * MS  # routers limit their answers, and are other people's


def validate(p: Hop) -> None:
    between("time between probes of a router", p.interval_ns / MS, 50, 60_000, " ms")


def command(p: Hop, o: Options, times: Times) -> list[str]:
    times_of_probes = ["--interval", f"{p.interval_ns}ns", "--timeout", f"{o.timeout_ns}ns", "--overtaken", "1s"]
    words = [o.ktrxer, "ping", p.host or o.host, *times_of_probes, *own.sockets(o)]
    return own.words(words, times)


def series(_: Hop, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "value", "ms", group="Hops (ms)")}


def read(_: Hop, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        if made.get("kind") in ("round_trip", "too_late"):
            samples.value("rtt", number(made, "sent_ns") - own.zero(samples), number(made, "rtt_ns") / MS)

    return own.read(samples, sample)


RUNNER = Runner(
    "hop", "ICMP echo to a router on the path", Hop, validate, command, series, read, own.mild_health, own=True,
    timeout_ns=lambda _, o: o.timeout_ns,
)  # fmt: skip
