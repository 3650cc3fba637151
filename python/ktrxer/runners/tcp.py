# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tcp`: loss and reordering by direction, and round trips, from any web server (OneProbe)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import marks, methods, own
from ktrxer.runners.marks import DSCP
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import NotUnderstood, Reading, Samples
from ktrxer.store import columns
from ktrxer.store.columns import ANSWERED, DOUBTS, LOST_DOWN, LOST_UP, PAIR_EVENTS
from ktrxer.store.meta import Series

COUNT_MOST = 1_000_000_000
ARRIVED = (columns.IN_ORDER, columns.REORDERED, columns.COMPLETE)
LOST_OF = (columns.FIRST_LOST, columns.SECOND_LOST)  # of the two probes of a pair
PERCENT = 0.01  # of a share


@dataclass(frozen=True, kw_only=True)
class Pairs(Parameters):
    """`host` is a web server, which needs no ktrxer."""

    interval_ns: int = 500 * MS
    port: int = 80
    path: str = "/"
    count: int | None = None  # pairs of probes; None: as many as its time holds
    payload_bytes: int | None = None
    mss: int = 536
    connections: int = 4
    timeout_ns: int = 3 * S
    model: Literal["constant", "poisson"] = "constant"
    mark: str | None = None
    group: str = "Ping (ms)"


def validate(p: Pairs) -> None:
    between("time between pairs", p.interval_ns / MS, 10, 3_600_000, " ms")
    between("port", p.port, 1, 65535)
    between("segment", p.mss, 216, 1460, " bytes")
    between("connections", p.connections, 1, 16)
    between("time-out", p.timeout_ns / MS, 0.001, 60_000, " ms")
    methods.check_choice(p.model, ("constant", "poisson"), "traffic model")
    between("pairs", p.count, 1, COUNT_MOST)
    between("payload", p.payload_bytes, 0, 1400, " bytes")
    if not re.fullmatch(r"/[!-~]{0,1000}", p.path):
        raise RunnerError(f"path {p.path[:40]!r}: it begins with / and has no blanks")
    marks.check([p.mark])


def _words(p: Pairs, o: Options, count: int) -> list[str]:
    words = [o.ktrxer, "tcp", p.host or o.host, "--port", str(p.port), "--path", p.path, "--count", str(count)]
    words += ["--interval", f"{p.interval_ns}ns", "--timeout", f"{p.timeout_ns}ns", "--mss", str(p.mss)]
    words += ["--connections", str(p.connections), "--model", p.model]
    words += ["--payload", str(p.payload_bytes)] if p.payload_bytes is not None else []
    words += ["--dscp", str(DSCP[p.mark])] if p.mark is not None else []
    return [*words, *(["--precise"] if o.precise else []), *own.sockets(o)]


def command(p: Pairs, o: Options, times: Times) -> list[str]:
    return own.counted(_words(p, o, methods.count_of(p.count, p.interval_ns, times, 1, COUNT_MOST)), times)


def series(p: Pairs, name: str) -> Mapping[Hashable, Series]:
    made: dict[Hashable, Series] = {
        "latency": Series(0, name, "latency", "ms", klass=p.mark, group=p.group),
        "tcp_pair": Series(0, name, "tcp_pair", "", klass=p.mark),
    }
    for way in methods.WAYS:
        for share in ("lost", "reordered"):
            made[share, way] = Series(0, f"{name} {share} {way}", "range", "%", direction=way, klass=p.mark, group="TCP probes")
    return made


def trial(p: Pairs, o: Options, _: bool) -> Trial:
    return Trial([*_words(p, o, 1), "--json"], server=False)


def read(_: Pairs, samples: Samples) -> Reading:
    def sample(made: Object) -> None:
        if made.get("kind") == "tcp_pair":
            _add(samples, made)

    def end(made: Object) -> None:
        at = methods.ended(samples, made)
        for way in methods.WAYS:
            for share in ("lost", "reordered"):
                found = methods.part(methods.part(made, way), share)
                if found.get("share") is not None:
                    bounds = {name: found.get(of) for name, of in (("value", "share"), ("low", "low"), ("high", "high"))}
                    methods.estimate(samples, (share, way), at, bounds, PERCENT)

    return own.read(samples, sample, end=end)


def _add(samples: Samples, made: Object) -> None:
    """A row of the pair, and one of each of its two probes with a known result."""
    seq, due, zero = number(made, "number"), number(made, "scheduled_ns"), own.zero(samples)
    sent = [number(made, name) for name in ("sent_ns", "second_sent_ns")]
    trips = [number(made, name) if made.get(name) is not None else None for name in ("rtt_ns", "second_rtt_ns")]
    up, down = (_event(made, way) for way in methods.WAYS)
    doubt = made.get("doubt") or DOUBTS[0]
    if doubt not in DOUBTS:
        raise NotUnderstood(f"doubt is {str(doubt)[:30]!r}")
    first = (sent[0] or due) - zero
    samples.add("tcp_pair", first, seq=seq, up=up, down=down, doubt=DOUBTS.index(doubt))
    for half in range(2):
        state = _state(up, down, half)
        if state is not None and sent[half]:
            lateness = sent[0] - due if half == 0 else None  # the second probe follows the first one
            rtt = trips[half] if state == ANSWERED else None
            samples.add("latency", sent[half] - zero, seq=2 * seq + half, rtt_ns=rtt, lateness_ns=lateness, state=state)


def _event(made: Object, way: str) -> int:
    word = made.get(way)
    if word not in PAIR_EVENTS:
        raise NotUnderstood(f"{way} is {str(word)[:30]!r}")
    return PAIR_EVENTS.index(word)


def _state(up: int, down: int, half: int) -> int | None:
    """The state of one probe of the pair. None: the server's answers do not show it."""
    if up in (columns.BOTH_LOST, LOST_OF[half]):
        return LOST_UP
    if up not in (*ARRIVED, LOST_OF[1 - half]):
        return None
    if down in (columns.BOTH_LOST, LOST_OF[half]):
        return LOST_DOWN
    return ANSWERED if down in (*ARRIVED, LOST_OF[1 - half]) else None


RUNNER = Runner(
    "tcp", "TCP segments to a web server by `ktrxer tcp`", Pairs, validate, command, series, read, own.mild_health,
    protocol="TCP", own=True, ends_itself=True, trial=trial, timeout_ns=lambda p, _: p.timeout_ns, probes=lambda _: 2,
)  # fmt: skip
