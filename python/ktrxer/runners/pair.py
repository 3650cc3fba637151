# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer pair`: capacity of the narrow link, by packet pairs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import methods, own, ping
from ktrxer.runners.methods import Directed
from ktrxer.runners.own import Object
from ktrxer.runners.probes import Probes
from ktrxer.runners.runner import MS, Options, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Kind, Series

COUNT_LEAST, COUNT_MOST = 10, 1000
ROUND_TRIP = "round_trip"  # the one direction of --echo


@dataclass(frozen=True, kw_only=True)
class Pairs(Directed):
    interval_ns: int = 20 * MS  # between two pairs of one size
    count: int | None = None  # of each of two sizes; None: as many as its time holds
    payload_bytes: int | None = None
    echo: bool = False  # ICMP echo, without `ktrxer serve`: one capacity of both directions together


def validate(p: Pairs) -> None:
    between("time between pairs", p.interval_ns / MS, 1, 60_000, " ms")
    methods.check_choice(p.direction, ("up", "down", "both"), "direction")
    between("pairs of each size", p.count, COUNT_LEAST, COUNT_MOST)
    between("payload", p.payload_bytes, 256, 9000, " bytes")
    if p.echo and p.direction != "both":
        raise RunnerError("pairs of ICMP echo requests have no direction: a reply passes both")


def command(p: Pairs, o: Options, times: Times) -> list[str]:
    count = methods.count_of(p.count, p.interval_ns, times, COUNT_LEAST, COUNT_MOST)
    words = [o.ktrxer, "pair", p.host or o.host, "--count", str(count), "--interval", f"{p.interval_ns}ns"]
    words += ["--payload", str(p.payload_bytes)] if p.payload_bytes is not None else []
    words += ["--echo", *own.sockets(o)] if p.echo else ["--direction", p.direction, *methods.server(o)]
    return own.counted([*words, *(["--precise"] if o.precise else [])], times)


def series(p: Pairs, name: str) -> Mapping[Hashable, Series]:
    kinds: dict[Kind, str] = {"pair": "", "range": "Mbit/s"}
    if p.echo:
        return {(kind, ROUND_TRIP): Series(0, name, kind, unit, group="Capacity") for kind, unit in kinds.items()}
    return methods.series_by_way(name, p.direction, kinds, group="Capacity")


def trial(p: Pairs, o: Options, estimate: bool) -> Trial:
    echo = Probes(host=p.host)
    return ping.trial(echo, o, False) if p.echo else methods.server_trial(p, o, estimate)


def read(p: Pairs, samples: Samples) -> Reading:
    rows = methods.pair_rows(samples, lambda way: ("pair", way), "ip_bytes", p.interval_ns)

    def sample(made: Object) -> None:
        if made.get("kind") == "pair":
            rows(made)

    def end(made: Object) -> None:
        for way in (*methods.WAYS, ROUND_TRIP):
            if ("range", way) in samples.series:
                found = methods.part(made, way).get("capacity_bit_s")
                methods.estimate(samples, ("range", way), methods.ended(samples, made), found, methods.MBIT)

    return own.read(samples, sample, end=end)


RUNNER = Runner(
    "pair", "capacity of the narrow link by `ktrxer pair`", Pairs, validate, command, series, read, own.mild_health,
    own=True, ends_itself=True, trial=trial, timeout_ns=lambda _, __: S,
)  # fmt: skip
