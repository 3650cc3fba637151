# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows by iperf 2, from its enhanced text (its CSV has times of a tenth of a second only). The counts are those of this end: of an upload,
iperf has only the receiver's sum, and that of UDP only."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import tools
from ktrxer.runners.runner import MS, Listener, Options, Runner, S, Times, Tool, ends_well
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line
from ktrxer.runners.tools import option
from ktrxer.store.meta import Series

INTERVAL = re.compile(
    r"\[[ *]*(\d+)\] +([\d.]+)- *([\d.]+) sec +([\d.]+ [KMGT]?Bytes?) +[\d.]+ [KMGT]?bits/sec(?: +([\d.]+) ms +(\d+)/ *(\d+) )?"
)
# Headings, sums, connections, and the lines about them.
OTHER = re.compile(r"\[[ *]*(?:\d+|[A-Z]+|SUM-\d+|FD\d+)[\]*]|-{20,}|Client |TOS |Sending |Binding |.* (?:buffer|window) size|\s*$")


@dataclass(frozen=True, kw_only=True)
class Flows(tools.Flows):
    direction: Literal["up", "down"] = "up"
    interval_ns: int = 200 * MS
    port: int = 5001


def validate(p: Flows) -> None:
    tools.flows(p, 10)


def command(p: Flows, o: Options, times: Times) -> list[str]:
    words = ["iperf", "-c", p.host or o.host, "-p", str(p.port), "-e", "-f", "b", "-i", f"{p.interval_ns / S:g}", "-P", str(p.flows)]
    words += ["-t", f"{times.length_s:g}", *(["-R"] if p.direction == "down" else []), *(["-u"] if p.protocol == "udp" else [])]
    words += [*option("-b", p.bitrate_bps), *option("-l", p.payload_bytes), *option("-Z", p.cc), *option("-S", tools.tos(p.mark))]
    return [*words, *(["-V"] if o.family == "-6" else []), *option("-B", o.source)]


def series(p: Flows, name: str) -> Mapping[Hashable, Series]:
    made: dict[Hashable, Series] = {}
    for flow, one in enumerate(tools.numbered(name, p.flows)):
        made["bytes", flow] = Series(0, one, "bytes", "Mbit/s", None, flow, p.direction, p.mark, name)
        if p.protocol == "udp" and p.direction == "down":
            made["loss", flow] = Series(0, f"{one} loss", "value", "%", None, flow, p.direction, p.mark, f"{name} loss")
    return made


def line(p: Flows, samples: Samples, line: Line) -> None:
    found = INTERVAL.match(line.text)
    if found is None:
        if not OTHER.match(line.text):
            raise NotUnderstood(line.text)
        return
    begin, end, count = round(float(found[2]) * S), round(float(found[3]) * S), tools.bytes_of(found[4])
    flows, counts = samples.memory.setdefault("flows", {}), samples.memory.setdefault("counts", {})
    if begin == 0 and found[1] in flows:  # the sum at the end; after it, the report of the receiver of UDP
        if p.direction == "up" and found[7] is not None:
            reports = (samples.result or {}).get("receiver", [])
            one = {"flow": flows[found[1]], "bytes": round(count), "lost": int(found[6]), "packets": int(found[7])}
            samples.result = {"receiver": [*reports, one]}
        return
    flow = flows.setdefault(found[1], len(flows))
    zero, bound = samples.memory.setdefault("begins", tools.begins(samples, line.at_ns, end))
    if flow not in counts:
        samples.add(("bytes", flow), zero + begin, end=0, bytes=0, bound_ns=bound)
    counts[flow] = counts.get(flow, 0) + round(count)
    samples.add(("bytes", flow), zero + end, end=0, bytes=counts[flow], bound_ns=bound)
    if ("loss", flow) in samples.series and int(found[7] or 0):
        samples.value(("loss", flow), zero + end, 100 * int(found[6]) / int(found[7]))


RUNNER = Runner(
    "iperf", "TCP and UDP flows by iperf 2", Flows, validate, command, series, by_line(line), ends_well,
    tool=Tool("iperf", "iperf", ["-v"], r"iperf version (2\.\d+\.\d+)", "2.1"), loads=True,
    listeners=lambda p, o: [Listener(p.host or o.host, p.port, f"iperf -s -p {p.port}")] if p.protocol == "tcp" else [],
)  # fmt: skip
