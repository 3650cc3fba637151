# SPDX-License-Identifier: MIT OR Apache-2.0
"""The responsiveness test of draft-ietf-ippm-responsiveness in one direction (http/rpm.py): load and probes by HTTP/2 over TLS."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ktrxer import http
from ktrxer.runners import own
from ktrxer.runners.own import Object, maybe, number
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import NotUnderstood, Reading, Samples
from ktrxer.store.columns import LOCAL, REMOTE
from ktrxer.store.meta import Series

PROGRAM = Path(http.__file__).with_name("rpm.py")
PROBES = {
    "tcp": "TCP handshake", "tls": "TLS handshake, a round trip", "http": "request, new connection", "self": "request, loaded connection",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Responsiveness(Parameters):
    url: str = ""  # of the configuration
    direction: Literal["up", "down"] = "down"
    interval_ns: int = 200 * MS  # of the samples of bytes
    draft_interval_ns: int = 5 * S  # between two checks for stability: 5 s by version 09 of the draft, 1 s by earlier ones
    connections_most: int = 16
    ca_file: str = ""


def validate(p: Responsiveness) -> None:
    if urlsplit(p.url).scheme != "https":
        raise RunnerError(f"{p.url[:100]!r}: the responsiveness test needs the URL of a server, https://HOST[:PORT]")
    between("connections", p.connections_most, 1, 64)
    between("the interval of the draft", p.draft_interval_ns / S, 0.1, 60, " s")
    between("time between samples", p.interval_ns / MS, 10, 60_000, " ms")


def _words(p: Responsiveness, o: Options) -> list[str]:
    authority = ["--ca-file", p.ca_file] if p.ca_file else []
    authority += ["--token-file", o.token_file] if o.token_file else []
    return [sys.executable, "-I", str(PROGRAM), p.direction, p.url, *authority, *([o.family] if o.family else [])]


def command(p: Responsiveness, o: Options, times: Times) -> list[str]:
    words = ["--interval", f"{p.draft_interval_ns}ns", "--most", str(p.connections_most), "--sample-interval", f"{p.interval_ns}ns"]
    return own.words([*_words(p, o), *words], times)


def series(p: Responsiveness, name: str) -> Mapping[Hashable, Series]:
    made: dict[Hashable, Series] = {"bytes": Series(0, name, "bytes", "Mbit/s", None, 0, p.direction, None, name)}
    for kind, what in PROBES.items():
        made[kind] = Series(0, f"{name}: {what} (ms)", "value", "ms", direction=p.direction, group=f"{name} (ms)")
    return made


def read(_: Responsiveness, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        kind, at = made.get("kind"), number(made, "time_ns") - own.zero(samples)
        if kind == "bytes":
            end = REMOTE if made.get("end") == "remote" else LOCAL
            samples.add("bytes", at, end=end, bytes=number(made, "bytes"), bound_ns=maybe(made, "bound_ns"))
        elif kind == "rpm_probe":
            probe, ms = made.get("probe"), made.get("ms")
            if probe not in PROBES or isinstance(ms, bool) or not isinstance(ms, int | float | None):
                raise NotUnderstood(f"a probe of kind {str(probe)[:20]!r}")
            if ms is not None:
                samples.value(probe, at, float(ms))

    return own.read(samples, sample)


def trial(p: Responsiveness, o: Options, _: bool) -> Trial:
    return Trial([*_words(p, o), "--trial"], server=False, label="responsiveness test")


RUNNER = Runner(
    "http_rpm", "responsiveness under load by HTTP/2 (IETF draft)", Responsiveness, validate, command, series, read, own.mild_health,
    loads=True, own=True, trial=trial,
)  # fmt: skip
