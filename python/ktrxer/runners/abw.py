# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer abw`: available bandwidth of the tight link, as a range. The command ends when its search has converged."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import methods, own
from ktrxer.runners.methods import Directed
from ktrxer.runners.own import Object
from ktrxer.runners.runner import Options, Runner, Times, between
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Series

METHODS = ("auto", "slops", "chirp")
STEP = "abw_step"


@dataclass(frozen=True, kw_only=True)
class Search(Directed):
    method: Literal["auto", "slops", "chirp"] = "auto"
    max_load_bps: int | None = None  # of the probes of each step, on average
    payload_bytes: int | None = None


def validate(p: Search) -> None:
    methods.check_choice(p.direction, ("up", "down", "both"), "direction")
    methods.check_choice(p.method, METHODS, "method")
    between("load of the probes", p.max_load_bps, 10_000, 100_000_000_000, " bit/s")
    between("payload", p.payload_bytes, 400, 9000, " bytes")


def command(p: Search, o: Options, times: Times) -> list[str]:
    words = [o.ktrxer, "abw", p.host or o.host, "--direction", p.direction, "--method", p.method]
    words += ["--max-load", str(p.max_load_bps)] if p.max_load_bps is not None else []
    words += ["--payload", str(p.payload_bytes)] if p.payload_bytes is not None else []
    return own.counted([*words, *(["--precise"] if o.precise else []), *methods.server(o)], times)


def series(p: Search, name: str) -> Mapping[Hashable, Series]:
    return methods.series_by_way(name, p.direction, {"range": "Mbit/s"}, group="Available bandwidth")


def read(p: Search, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        """A step of the search has no time of its own. The steps are few, and are stored as events."""
        if made.get("kind") == STEP:
            fields = {name: value for name, value in made.items() if name not in ("type", "kind")}
            samples.event(samples.now_ns, STEP, json.dumps(fields, ensure_ascii=False, separators=(",", ":")))

    def end(made: Object) -> None:
        for way in methods.ways(p.direction):
            found = methods.part(made, way)
            # An open search has a range, too, but no result.
            if found.get("reading") == "resolved":
                methods.estimate(samples, ("range", way), methods.ended(samples, made), found.get("available_bit_s"), methods.MBIT)

    return own.read(samples, sample, end=end)


RUNNER = Runner(
    "abw", "available bandwidth of the tight link by `ktrxer abw`", Search, validate, command, series, read, own.mild_health,
    own=True, ends_itself=True, trial=methods.server_trial,
)  # fmt: skip
