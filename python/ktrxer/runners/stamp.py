# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer stamp`: STAMP over UDP. Probes of several classes leave at the same times from one process: one wake-up for one probe of each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from ktrxer.runners import marks, own, probes
from ktrxer.runners.marks import DSCP
from ktrxer.runners.probes import Probes
from ktrxer.runners.runner import Options, Parameters, Runner, RunnerError, Times, Trial
from ktrxer.store.meta import Series

CLASSES_MOST = 8  # of one process


@dataclass(frozen=True, kw_only=True)
class Classes(Probes):
    more: tuple[tuple[str, str | None], ...] = ()  # series and marks of further classes, after the first one


def validate(p: Classes) -> None:
    probes.validate(p)
    marks.check(mark for _, mark in p.more)
    if len(p.more) >= CLASSES_MOST:
        raise RunnerError(f"{len(p.more) + 1} classes; one process has at most {CLASSES_MOST}")


def _marks(p: Classes) -> list[str | None]:
    return [p.mark, *(mark for _, mark in p.more)]


def _words(p: Classes, o: Options) -> list[str]:
    given = _marks(p)
    dscp = ["--dscp", ",".join(str(DSCP[mark or "BE"]) for mark in given)] if p.more or p.mark else []
    command = [o.ktrxer, "stamp", *probes.common(p, o, dscp), "--port", str(o.port)]
    # The reflector reports the marks that arrived, where there are marks.
    return [*command, *(["--tlv", "cos"] if p.ecn != "off" or any(DSCP[mark or "BE"] for mark in given) else []), *own.sockets(o)]


def command(p: Classes, o: Options, times: Times) -> list[str]:
    return own.words(_words(p, o), times)


def series(p: Classes, name: str) -> Mapping[Hashable, Series]:
    if not p.more:
        return {None: probes.series_of(name, p, p.mark)}
    return {place: probes.series_of(one, p, mark) for place, (one, mark) in enumerate([(name, p.mark), *p.more])}


def merge(p: Classes, name: str, other: Classes) -> Classes | None:
    """One process for both."""
    made = replace(p, more=(*p.more, (name, other.mark), *other.more))
    same = replace(p, mark=None, more=()) == replace(other, mark=None, more=())
    return made if same and len(made.more) < CLASSES_MOST else None


def carries(p: Classes, o: Options, runner: str, other: Parameters) -> list[str] | None:
    """ICMP echo at the same send times, as `ktrxer ping` sends it without further options."""
    if runner != "ping" or o.precise or (p.host, p.family, p.interval_ns) != (other.host, other.family, other.interval_ns):
        return None
    assert isinstance(other, Probes)
    plain = other.mark is None and other.ecn == "off" and other.payload_bytes is None
    return ["--echo"] if plain else None


def trial(p: Classes, o: Options, _: bool) -> Trial:
    return Trial(probes.trial(_words(p, o)), server=True)


RUNNER = Runner(
    "stamp", "STAMP (UDP) by `ktrxer stamp`", Classes, validate, command, series, probes.read, own.health,
    protocol="UDP", own=True, merge=merge, carries=carries, trial=trial, timeout_ns=probes.timeout_of, probes=lambda p: 1 + len(p.more),
)  # fmt: skip
