# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer ppt measure`: capacity of the end link, and dPPT of the receiver, by compound probes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import methods, own
from ktrxer.runners.methods import Direction
from ktrxer.runners.own import Object
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, between
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Series

KINDS = 4  # of probes: two sizes, one between them, and a shorter heading packet
COUNT_LEAST, COUNT_MOST = 10, 1000
SIZE_LEAST, SIZE_MOST = 72, 1526  # bytes on the wire
SIZES_APART = 8
FIGURES = {"capacity": ("capacity_bit_s", "Mbit/s", methods.MBIT), "dPPT": ("delta_ns", "us", methods.US)}


@dataclass(frozen=True, kw_only=True)
class Compound(Parameters):
    direction: Direction = "up"
    interval_ns: int = 100 * MS  # between two probes, which are of each kind in turn
    count: int | None = None  # of each kind; None: as many as its time holds
    heading_bytes: int | None = None
    size1_bytes: int | None = None
    size2_bytes: int | None = None


def validate(p: Compound) -> None:
    methods.check_choice(p.direction, ("up", "down", "both"), "direction")
    between("time between probes", p.interval_ns / MS, 1, 30_000, " ms")
    between("probes of each size", p.count, COUNT_LEAST, COUNT_MOST)
    for size in (p.heading_bytes, p.size1_bytes, p.size2_bytes):
        if size is not None:
            between("packet on the wire", size, SIZE_LEAST, SIZE_MOST, " bytes")
    if p.size1_bytes is not None and p.size2_bytes is not None and abs(p.size1_bytes - p.size2_bytes) < SIZES_APART:
        raise RunnerError(f"trailing packets of {p.size1_bytes} and {p.size2_bytes} bytes: give sizes that are {SIZES_APART} bytes apart")


def command(p: Compound, o: Options, times: Times) -> list[str]:
    count = methods.count_of(p.count, KINDS * p.interval_ns, times, COUNT_LEAST, COUNT_MOST)
    words = [o.ktrxer, "ppt", "measure", p.host or o.host, "--direction", p.direction]
    words += ["--count", str(count), "--interval", f"{p.interval_ns}ns"]
    for option, size in (("--heading", p.heading_bytes), ("--size1", p.size1_bytes), ("--size2", p.size2_bytes)):
        words += [option, str(size)] if size is not None else []
    return own.counted([*words, *(["--precise"] if o.precise else []), *methods.server(o)], times)


def series(p: Compound, name: str) -> Mapping[Hashable, Series]:
    made = methods.series_by_way(name, p.direction, {"pair": ""}, group="End link")
    for way in methods.ways(p.direction):
        for figure, (_, unit, _) in FIGURES.items():
            full = f"{methods.named(name, way, p.direction)} {figure}"
            made[figure, way] = Series(0, full, "range", unit, direction=way, group="End link")
    return made


def read(p: Compound, samples: Samples) -> Reading:
    rows = methods.pair_rows(samples, lambda way: ("pair", way), "trailing_wire_bytes", KINDS * p.interval_ns)

    def sample(made: Object) -> None:
        if made.get("kind") == "compound_probe":
            rows(made)

    def end(made: Object) -> None:
        for way in methods.ways(p.direction):
            for figure, (field, _, unit) in FIGURES.items():
                methods.estimate(samples, (figure, way), methods.ended(samples, made), methods.part(made, way).get(field), unit)

    return own.read(samples, sample, end=end)


RUNNER = Runner(
    "ppt", "end-link capacity and dPPT by `ktrxer ppt measure`", Compound, validate, command, series, read, own.mild_health,
    own=True, ends_itself=True, trial=methods.server_trial, timeout_ns=lambda _, __: S,
)  # fmt: skip
