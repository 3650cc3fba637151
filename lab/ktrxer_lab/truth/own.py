# SPDX-License-Identifier: MIT OR Apache-2.0
"""The project's own commands, by kind of path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File

from ktrxer_lab.truth.path import DOWN, UP, Path, Way
from ktrxer_lab.truth.table import DATAGRAMS, FLOWS, IDLE, LOAD, PAIRS, ROUTES

LOADED = File(__file__).with_name("loaded.py")
REFERENCE_S = 0.02  # mean interval of the plain probes beside a load
OVERLOAD, PAYLOAD = 1.3, 1200
MODERATE_MBPS = 2.0


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    adapter: str
    reference_s: float = 0.0  # 0: no plain probes beside it
    where: str = ""  # the place of the queue that its load fills
    beside: str | None = None  # shell command in the server; None: the adapter's


def commands(path: Path) -> list[Command]:
    return list(_commands(path))


def _commands(path: Path) -> Iterator[Command]:
    if IDLE in path.kinds:
        yield _of("ping", "server -i 10ms -c 400 --json")
        # Estimating the rate of a clock takes longer than estimating its offset.
        yield _of("stamp", f"server {'-i 50ms -c 1000' if path.rate_ppm else '-i 10ms -c 500'} --json")
    if PAIRS in path.kinds:
        yield _of("pair", "server --count 60 --json")
    if ROUTES in path.kinds:
        yield _of("trace", "server --one-route --json")
        yield _of("trace", "server --json")
    for name, way in ((UP, path.up), (DOWN, path.down)):
        if FLOWS in path.kinds:
            yield _of("flow", f"{name} server --for 4s --json")
        if DATAGRAMS in path.kinds:
            marks = " --ecn ect0" if path.up.marks or path.down.marks else ""
            yield _of("flow", f"-u {name} server -b {_bitrate(way):.0f}k --for 3s --json{marks}")
        if LOAD in path.kinds:
            where = "this host's own queue" if path.setup else name
            if not path.setup or name == UP:
                words = (sys.executable, "-P", str(LOADED), name)
                yield Command(words, "ktrxer_run", REFERENCE_S, where)


def _of(name: str, words: str) -> Command:
    return Command(("ktrxer", name, *words.split()), f"ktrxer_{name}")


def _bitrate(way: Way) -> float:
    """Bit rate of UDP payload in kbit/s: above the path's rate, or low if the path has none."""
    return 1000 * (MODERATE_MBPS if way.rate_mbps is None else OVERLOAD * way.rate_mbps)
