# SPDX-License-Identifier: MIT OR Apache-2.0
"""Load by HTTP/1.1 from or to any web server (http/load.py): for lines without `ktrxer serve` at the far end."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ktrxer import http
from ktrxer.runners import flow, own
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, Trial, between
from ktrxer.store.meta import Series

FLOWS_MOST = 32  # the web server may belong to another person; a browser opens six connections
PROGRAM = Path(http.__file__).with_name("load.py")


@dataclass(frozen=True, kw_only=True)
class Load(Parameters):
    url: str = ""
    direction: Literal["up", "down"] = "down"
    series: tuple[str, ...] = ()  # a name for each connection
    interval_ns: int = 200 * MS
    ca_file: str = ""  # certificates of an authority that this host does not trust


def validate(p: Load) -> None:
    if urlsplit(p.url).scheme not in ("http", "https"):
        raise RunnerError(f"{p.url[:100]!r} is no URL of a web server: give http://HOST/PATH or https://HOST/PATH")
    between("connections", len(p.series), 1, FLOWS_MOST)
    between("time between samples", p.interval_ns / MS, 10, 60_000, " ms")


def _words(p: Load, o: Options) -> list[str]:
    authority = ["--ca-file", p.ca_file] if p.ca_file else []
    return [sys.executable, "-I", str(PROGRAM), p.direction, p.url, *authority, *([o.family] if o.family else [])]


def command(p: Load, o: Options, times: Times) -> list[str]:
    return own.words([*_words(p, o), "--flows", str(len(p.series)), "--sample-interval", f"{p.interval_ns}ns"], times)


def series(p: Load, name: str) -> Mapping[Hashable, Series]:
    return {("bytes", n): Series(0, one, "bytes", "Mbit/s", None, n, p.direction, None, name) for n, one in enumerate(p.series)}


def trial(p: Load, o: Options, _: bool) -> Trial:
    """One request: an error of the server, a redirection and a captive portal are found before anything starts."""
    return Trial([*_words(p, o), "--trial"], server=False, label=f"HTTP {p.direction}load")


RUNNER = Runner(
    "http_load", "load by HTTP from or to a web server", Load, validate, command, series, flow.read, own.mild_health,
    loads=True, own=True, trial=trial,
)  # fmt: skip
