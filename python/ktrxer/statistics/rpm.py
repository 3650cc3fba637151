# SPDX-License-Identifier: MIT OR Apache-2.0
"""Responsiveness under working conditions: the rules of draft-ietf-ippm-responsiveness, without any I/O. The section names are those of
version 06. Version 09 has the same rules with intervals of 5 s instead of 1 s, after other implementations of it (networkQuality of macOS:
--draft9; mach of Cloudflare).

The draft fills a path in one direction with HTTP transactions on a growing number of connections until the goodput is stable, and goes on
until the responsiveness is stable. Probes of two kinds measure the responsiveness: *foreign* probes (a TCP connection, a TLS handshake and
a request, on a connection of their own) and *self* probes (a request on a connection that carries the load)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ktrxer.statistics.latency import responsiveness_class, trimmed_mean

S = 10**9
MINUTE_MS = 60_000
FOREIGN_BYTES, SELF_BYTES = 5000, 1000  # of a probe, as the draft estimates them ("Measuring Responsiveness")
FIRST_PAIRS = 4  # probes of each kind in the first interval, in which the rate of the path is not known

Confidence = Literal["low", "medium", "high"]
Stage = Literal["goodput", "responsiveness", "done"]


@dataclass(frozen=True)
class Parameters:
    """"Test Parameters" of the draft, by the draft's names."""

    mad: int = 4  # moving average distance, in intervals
    id_ns: int = 5 * S  # interval duration
    tmp: float = 0.95  # share of the values in a trimmed mean
    sdt: float = 0.05  # standard deviation tolerance
    inp: int = 1  # connections at the beginning
    inc: int = 1  # connections that each interval adds
    mnp: int = 16  # connections at most
    mps: int = 100  # probes a second at most, of both kinds together
    ptc: float = 0.05  # share of the path's capacity that probes may take


@dataclass(frozen=True)
class Probes:
    """Times in milliseconds of the probes that were completed in one interval; infinity for a probe without an answer. `tls_ms` is the time
    of a TLS handshake divided by its round trips, and is empty without TLS."""

    tcp_ms: Sequence[float] = ()
    tls_ms: Sequence[float] = ()
    http_ms: Sequence[float] = ()
    self_ms: Sequence[float] = ()


@dataclass(frozen=True)
class Rpm:
    """Round trips a minute."""

    rpm: float
    foreign: float
    own: float  # of the self probes
    tcp_ms: float  # trimmed means
    tls_ms: float | None
    http_ms: float
    self_ms: float

    @property
    def rating(self) -> str:
        return responsiveness_class(self.rpm)


def tls_round_trips(version: str) -> int:
    """Round trips of a full handshake until the client may send data: RFC 8446 one, RFC 5246 and older two."""
    return 1 if version == "TLSv1.3" else 2


def rpm(intervals: Sequence[Probes], p: Parameters = Parameters()) -> Rpm | None:
    """"Aggregating the Measurements", of the probes of the last MAD intervals. None if a kind of probe is missing.

    Lost probes are infinite times: the trimmed mean leaves the highest 5 % out, and more of them make the figure 0."""
    last = intervals[-p.mad :]

    def mean(values: Sequence[Sequence[float]]) -> float | None:
        return trimmed_mean(np.concatenate([np.asarray(part, np.float64) for part in values] or [np.empty(0)]), p.tmp)

    tcp, tls, http, own = (mean([getattr(one, name) for one in last]) for name in ("tcp_ms", "tls_ms", "http_ms", "self_ms"))
    if tcp is None or http is None or own is None:
        return None
    parts = [tcp, http] if tls is None else [tcp, tls, http]  # a zero for tls would be a wrong responsiveness
    foreign_rate, own_rate = _rate(sum(parts) / len(parts)), _rate(own)
    return Rpm((foreign_rate + own_rate) / 2, foreign_rate, own_rate, tcp, tls, http, own)


def _rate(ms: float) -> float:
    return MINUTE_MS / ms if ms > 0 else math.inf


def stable(values: Sequence[float], p: Parameters = Parameters()) -> bool:
    """Whether the standard deviation (of the population) of the last MAD values is below SDT of the last one."""
    last = np.asarray(values[-p.mad :], np.float64)
    return len(last) == p.mad and bool(np.isfinite(last).all()) and bool(last[-1] > 0) and float(last.std()) < p.sdt * float(last[-1])


def pairs_each_second(rate_bps: float | None, p: Parameters = Parameters()) -> int:
    """How many foreign and self probes may be sent in a second, of each kind: both kinds together MPS at most, and PTC of the goodput in
    bytes. One at least, because a line without probes has no result."""
    if rate_bps is None:
        return FIRST_PAIRS
    return max(1, min(p.mps // 2, math.floor(p.ptc * rate_bps / (8 * (FOREIGN_BYTES + SELF_BYTES)))))


@dataclass
class Ramp:
    """"Final Algorithm", for one direction: interval() is called at the end of each interval, and returns the number of connections that
    the next interval has."""

    p: Parameters = field(default_factory=Parameters)
    connections: int = 0
    stage: Stage = "goodput"
    bytes: list[int] = field(default_factory=list)  # by interval
    averages: list[float] = field(default_factory=list)  # moving average goodput in bit/s, by interval
    probes: list[Probes] = field(default_factory=list)
    results: list[Rpm | None] = field(default_factory=list)  # by interval, from the goodput's stability on
    full_connections: int | None = None  # when the goodput became stable

    def __post_init__(self) -> None:
        self.connections = self.connections or self.p.inp

    def interval(self, moved: int, probes: Probes) -> int:
        """`moved`: bytes of all connections in this interval."""
        self.bytes.append(moved)
        self.probes.append(probes)
        # The divisor is MAD also in the first intervals, by the definition.
        self.averages.append(sum(self.bytes[-self.p.mad :]) * 8 * S / (self.p.mad * self.p.id_ns))
        if self.stage == "goodput":
            if stable(self.averages, self.p):
                self.stage, self.full_connections = "responsiveness", self.connections
        elif self.stage == "responsiveness":
            self.results.append(rpm(self.probes, self.p))
            if stable([one.rpm if one is not None else 0.0 for one in self.results], self.p):
                self.stage = "done"
        if self.stage != "done":
            self.connections = min(self.connections + self.p.inc, self.p.mnp)
        return self.connections

    @property
    def rate_bps(self) -> float | None:
        """Goodput over the last MAD intervals, or over as many as there were."""
        last = self.bytes[-self.p.mad :]
        return sum(last) * 8 * S / (len(last) * self.p.id_ns) if last else None

    @property
    def result(self) -> Rpm | None:
        """The newest one; of a test that ended before the goodput was stable, that of the last MAD intervals."""
        return self.results[-1] if self.results else rpm(self.probes, self.p)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and the highest responsiveness of the last MAD intervals: the draft gives no uncertainty."""
        known = [one.rpm for one in self.results[-self.p.mad :] if one is not None]
        return (min(known), max(known)) if known else None

    def confidence(self, of: Literal["goodput", "responsiveness"]) -> Confidence:
        """"Confidence of Test-Results": low: fewer than MAD intervals; medium: not stable; high: stable."""
        if of == "goodput":
            return "high" if self.stage != "goodput" else "medium" if len(self.averages) >= self.p.mad else "low"
        return "high" if self.stage == "done" else "medium" if len(self.results) >= self.p.mad else "low"
