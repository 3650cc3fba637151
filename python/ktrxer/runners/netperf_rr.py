# SPDX-License-Identifier: MIT OR Apache-2.0
"""Round trips by netperf's UDP_RR: one request after the other. An interim result is the mean of many, so it is a value and no probe."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import netperf, tools
from ktrxer.runners.runner import MS, Options, Parameters, Runner, S, Times, ends_well
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line
from ktrxer.store.meta import Series

SILENT_NS = 2 * S  # without an interim result: it waits for an answer that was lost


@dataclass(frozen=True, kw_only=True)
class Trips(Parameters):
    interval_ns: int = 200 * MS
    mark: str | None = None
    port: int = 12865
    group: str = "Ping (ms)"


def validate(p: Trips) -> None:
    tools.flow(p.interval_ns, 10, p.port, p.mark)


def command(p: Trips, o: Options, times: Times) -> list[str]:
    return [*netperf.words("UDP_RR", p, o, times), "--", "-k", ",".join(netperf.SUMS[:3])]


def series(p: Trips, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "value", "ms", klass=p.mark, group=p.group)}


def line(_: Trips, samples: Samples, line: Line) -> None:
    found = netperf.interim(samples, line)
    if found is None:
        return
    rate, unit, to_ns = found[0], found[1], found[3]
    if unit != "Trans":
        raise NotUnderstood(line.text)
    if rate > 0:
        samples.value("rtt", to_ns, 1000 / rate)


def end(p: Trips, samples: Samples) -> None:
    """UDP_RR waits to the end after a lost packet, and measures nothing."""
    silent = samples.to_ns - samples.memory.get("at", samples.from_ns)
    if silent > SILENT_NS + p.interval_ns:
        samples.reason("netperf_silent", silent_s=silent / S)


RUNNER = Runner(
    "netperf_rr", "mean round trips by netperf (UDP_RR)", Trips, validate, command, series, by_line(line, end), ends_well,
    tool=netperf.TOOL, listeners=netperf.listeners,
)  # fmt: skip
