# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer flow`: TCP and UDP flows that begin and end together, in one process, counted at both ends."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from ktrxer.runners import marks, own
from ktrxer.runners.marks import DSCP
from ktrxer.runners.own import Object, maybe, number
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, Trial, between
from ktrxer.runners.samples import NS_MOST, NotUnderstood, Reading, Samples, names
from ktrxer.store import one_line
from ktrxer.store.columns import LOCAL, REMOTE
from ktrxer.store.meta import Series

FLOWS_MOST = 1000
UDP_MOST = 64
ESTIMATE_BYTES = 250_000  # of each direction: on 1 Mbit/s two seconds, at long round trips enough for some rounds of slow start
ESTIMATE_S = 4
QUEUE_NS = 20 * S  # a receiver of UDP waits so long for packets in queues: KTRXER_FLOW_QUEUE_S in methods/flow/flow_udp.c
_ENDS = {"local": LOCAL, "remote": REMOTE}
_TCP_INFO = names("tcp_info")[3:-1]
_tcp_info_of = itemgetter(*_TCP_INFO)
_WHOLE = {int, type(None)}


@dataclass(frozen=True, kw_only=True)
class Flows(Parameters):
    """A name for each flow; the lists of marks, of congestion controls and of ECN are assigned in turn."""

    direction: Literal["up", "down"] = "up"
    series: tuple[str, ...] = ()  # a name for each flow; empty: one flow with the name of the process
    group: str = ""  # flows of one group are summed; empty: those of the process
    klass: str = ""  # name of their class; empty: that of the mark. Round trips of two classes are not compared
    interval_ns: int = 200 * MS
    marks: tuple[str | None, ...] = ()
    cc: tuple[str, ...] = ()  # of TCP, at the sender; empty: the host's own
    ecn: tuple[str, ...] = ()  # UDP: the mark of the packets, off, ect0 or ect1; TCP: must ECN be agreed, on, off or any
    protocol: Literal["tcp", "udp"] = "tcp"
    model: Literal["constant", "poisson", "voip"] = "constant"  # of UDP: when packets leave
    bitrate_bps: int | None = None  # of each flow; UDP needs one (voip has its own), TCP is paced to it
    payload_bytes: int | None = None  # of a UDP packet
    flood: bool = False  # the owner of a far end with a public address agrees to more packets a second than the default limit

    def mark(self, flow: int) -> str | None:
        return self.marks[flow % len(self.marks)] if self.marks else None


def validate(p: Flows) -> None:
    between("flows", max(1, len(p.series)), 1, FLOWS_MOST)
    if p.protocol == "udp" and len(p.series) > UDP_MOST:
        raise RunnerError(f"{len(p.series)} UDP flows; one process has 1 to {UDP_MOST}")
    between("time between samples", p.interval_ns / MS, 10, 60_000, " ms")
    if p.protocol == "tcp" and (p.model != "constant" or p.payload_bytes is not None):
        raise RunnerError("a traffic model and a payload are for UDP flows")
    if p.protocol == "udp" and p.cc:
        raise RunnerError("a congestion control is for TCP flows")
    if p.protocol == "udp" and p.model != "voip" and p.bitrate_bps is None:
        raise RunnerError("UDP flows need a bit rate")
    between("the bit rate", p.bitrate_bps, 1000, 10**12, " bit/s")
    between("the payload", p.payload_bytes, 16, 65_000, " bytes")
    marks.check(p.marks)
    marks.check_ecn(p.ecn, ("any", "on", "off") if p.protocol == "tcp" else marks.ECN)


def _words(p: Flows, o: Options, count: int) -> list[str]:
    command = [o.ktrxer, "flow", p.direction, p.host or o.host, "--flows", str(count), "--sample-interval", f"{p.interval_ns}ns"]
    if p.protocol == "udp":
        command += ["--udp", "--model", p.model]
        command += ["--payload", str(p.payload_bytes)] if p.payload_bytes is not None else []
    command += ["--bitrate", str(p.bitrate_bps)] if p.bitrate_bps is not None else []
    command += ["--flood"] if p.flood else []
    command += ["--cc", ",".join(p.cc)] if p.cc else []
    command += ["--ecn", ",".join(p.ecn)] if p.ecn else []
    command += ["--dscp", ",".join(str(DSCP[mark or "BE"]) for mark in p.marks)] if p.marks else []
    command += ["--port", str(o.port), *(["--token-file", o.token_file] if o.token_file else [])]
    return command + own.sockets(o)


def command(p: Flows, o: Options, times: Times) -> list[str]:
    ahead = ["--connect-ahead", f"{o.ahead_ns}ns"] if o.ahead_ns is not None else []
    return own.words([*_words(p, o, max(1, len(p.series))), *ahead], times)


def series(p: Flows, name: str) -> Mapping[Hashable, Series]:
    made: dict[Hashable, Series] = {}
    kinds: tuple[tuple[Literal["bytes", "tcp_info", "udp"], str], ...]
    kinds = (("bytes", "Mbit/s"), ("tcp_info", "") if p.protocol == "tcp" else ("udp", ""))
    for flow, one in enumerate(p.series or (name,)):
        for kind, unit in kinds:
            made[kind, flow] = Series(0, one, kind, unit, None, flow, p.direction, p.klass or p.mark(flow), p.group or name)
    return made


def trial(p: Flows, o: Options, estimate: bool) -> Trial:
    """The trial has as many flows as there are congestion controls and markings, with little to carry."""
    estimates = estimate and p.protocol == "tcp"
    size = ["--bytes", str(ESTIMATE_BYTES), "--for", f"{ESTIMATE_S}s"] if estimates else ["--bytes", "1"]
    count = min(max(1, len(p.series)), max(1, len(p.cc), len(p.marks)))
    return Trial([*_words(p, o, count), *size, "--json"], server=True, estimates=estimates)


# ---------------------------------------------------------------------------------------------------------------- output


def read(_: Flows, samples: Samples) -> Reading:
    def add(sample: Object) -> None:
        kind = sample.get("kind")
        if kind not in ("bytes", "tcp_info", "udp"):
            return
        flow, end = sample.get("flow"), _ENDS.get(str(sample.get("end")))
        which = samples.series.get(("bytes" if kind == "udp" else kind, flow))
        if which is None or end is None:
            raise NotUnderstood(f"a sample of flow {json.dumps(flow, default=str)[:20]} at end {str(sample.get('end'))[:20]!r}")
        at, far = number(sample, "time_ns") - own.zero(samples), maybe(sample, "remote_ns")
        if kind == "tcp_info":
            _append(samples, "tcp_info", (which.id, at, end, *_tcp_info(sample), far))
            return
        # A UDP sample counts the payload as well.
        _append(samples, "bytes", (which.id, at, end, number(sample, "bytes"), maybe(sample, "bound_ns"), far))
        if kind != "udp":
            return
        marked = [maybe(sample, name) for name in ("ect0", "ect1", "ce")]  # the sender has no counts of marks
        if None not in marked and (counts := samples.series.get(("udp", flow))) is not None:
            sums = [number(sample, name) for name in ("packets", "bytes")]
            _append(samples, "udp", (counts.id, at, end, *sums, *marked, maybe(sample, "lost")))

    def seen(made: Object) -> None:
        if made.get("name") != "flow_failed":
            return
        series_ = samples.series.get(("bytes", made.get("flow")))
        at = (number(made, "time_ns") - own.zero(samples)) / S
        why = one_line(str(made.get("error") or made.get("reason") or "no reason given"), 200)
        samples.reason("flow_failed", name=series_.name if series_ is not None else "", at_s=at, why=str(why))

    return own.read(samples, add, seen)


def _append(samples: Samples, kind: str, row: tuple[Any, ...]) -> None:
    for values, value in zip(samples.table(kind), row, strict=True):
        values.append(value)


def _tcp_info(made: Object) -> Iterable[int | None]:
    """The results of maybe() for each field, but faster: thousands of samples have a dozen fields each."""
    try:
        values: tuple[Any, ...] = _tcp_info_of(made)
    except KeyError:
        values = ()
    if values and set(map(type, values)) <= _WHOLE and all(value is None or -NS_MOST <= value <= NS_MOST for value in values):
        return values
    return [maybe(made, name) for name in _TCP_INFO]


RUNNER = Runner(
    "flow", "flows by `ktrxer flow`", Flows, validate, command, series, read, own.mild_health, loads=True, own=True, trial=trial,
    timeout_ns=lambda p, _: QUEUE_NS if p.protocol == "udp" else 0,
)  # fmt: skip
