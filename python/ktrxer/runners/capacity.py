# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer capacity`: maximum IP-layer capacity (RFC 9097), by the UDP Speed Test Protocol. It fills the path."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import marks, methods, own
from ktrxer.runners.marks import DSCP
from ktrxer.runners.methods import Directed
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import MS, Options, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import NotUnderstood, Reading, Samples
from ktrxer.store.meta import Series

COUNTS = ("lasts_ns", "datagrams", "ip_bytes", "lost", "reordered", "duplicates")
DELAYS = ("delay_variation_min_ns", "delay_variation_max_ns", "rtt_variation_min_ns", "rtt_variation_max_ns")
LAST_S = 65_535


@dataclass(frozen=True, kw_only=True)
class Load(Directed):
    """The directions are measured one after the other: each of two has half of the time, in whole seconds."""

    interval_ns: int = S  # sub-interval, of which the highest rate counts
    port: int = 24601  # of `ktrxer serve --udpstp-port`, or of another server of UDPSTP
    algorithm: Literal["B", "C"] = "B"
    mark: str | None = None
    max_bitrate_bps: int | None = None


def validate(p: Load) -> None:
    methods.check_choice(p.direction, ("up", "down", "both"), "direction")
    methods.check_choice(p.algorithm, ("B", "C"), "algorithm")
    between("sub-interval", p.interval_ns / MS, 100, 60_000, " ms")
    between("port", p.port, 1, 65535)
    between("highest rate", p.max_bitrate_bps, 1_000_000, 32_767_000_000, " bit/s")
    marks.check([p.mark])


def _words(p: Load, o: Options) -> list[str]:
    words = [o.ktrxer, "capacity", p.host or o.host, "--algorithm", p.algorithm, "--port", str(p.port)]
    words += ["--dscp", str(DSCP[p.mark])] if p.mark is not None else []
    words += ["--max-bitrate", str(p.max_bitrate_bps)] if p.max_bitrate_bps is not None else []
    return [*words, *(["--token-file", o.token_file] if o.token_file else []), *own.sockets(o)]


def command(p: Load, o: Options, times: Times) -> list[str]:
    length_s = times.length_ns // S // len(methods.ways(p.direction))
    if not 1 <= length_s <= LAST_S:
        raise RunnerError(f"a test of {times.length_s:g} s; each direction needs 1 to {LAST_S} whole seconds")
    interval = min(p.interval_ns, length_s * S)
    words = ["--direction", p.direction, "--for", f"{length_s}s", "--sample-interval", f"{interval}ns"]
    return own.counted([*_words(p, o), *words], times)


def series(p: Load, name: str) -> Mapping[Hashable, Series]:
    return methods.series_by_way(name, p.direction, {"ip_capacity": "", "range": "Mbit/s"}, group="IP-layer capacity")


def trial(p: Load, o: Options, _: bool) -> Trial:
    """A second at 1 Mbit/s. Its verdict is `degraded`, because the rate is fixed."""
    return Trial([*_words(p, o), "--direction", "up", "--for", "1s", "--row", "1", "--json"], server=False)


def read(p: Load, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        if made.get("kind") != "ip_capacity":
            return
        rows: dict[str, int | None] = {name: number(made, name) for name in COUNTS}
        rows |= {name: number(made, name) if made.get(name) is not None else None for name in DELAYS}
        if min(value for value in rows.values() if value is not None) < 0:
            raise NotUnderstood("a sub-interval with a count or a delay below 0")
        samples.add(("ip_capacity", str(made.get("direction"))), number(made, "time_ns") - own.zero(samples), **rows)

    def end(made: Object) -> None:
        for way in methods.ways(p.direction):
            maximum = methods.part(methods.part(made, way), "maximum")
            if maximum:
                # RFC 9097 defines the maximum of the sub-intervals: a value without an interval of confidence.
                methods.estimate(samples, ("range", way), methods.ended(samples, made), {"value": maximum.get("bit_s")}, methods.MBIT)

    return own.read(samples, sample, end=end)


RUNNER = Runner(
    "capacity", "maximum IP-layer capacity by `ktrxer capacity`", Load, validate, command, series, read, own.mild_health,
    loads=True, own=True, ends_itself=True, trial=trial, timeout_ns=lambda _, __: 2 * S,
)  # fmt: skip
