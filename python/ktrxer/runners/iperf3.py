# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows by iperf3, from its JSON document, with the counts of the server (--get-server-output). A server that runs with -J has JSON, others
have text with three digits, which are scaled to the exact sum of a TCP flow."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.runners import tools
from ktrxer.runners.runner import Options, Runner, S, Times, Tool, ends_well
from ktrxer.runners.samples import Samples, whole
from ktrxer.store import one_line
from ktrxer.store.columns import LOCAL, REMOTE
from ktrxer.store.meta import Series

# An interval at the server, where it receives: [  5][RX-S]   0.00-1.00   sec   112 MBytes   939 Mbits/sec
TEXT = re.compile(r"\[ *(\d+)\](?:\[RX-S\])? +([\d.]+)-([\d.]+) +sec +([\d.]+ [KMGT]?Bytes) (?!.*(?:sender|receiver))", re.M)


@dataclass(frozen=True, kw_only=True)
class Flows(tools.Flows):
    direction: Literal["up", "down", "both"] = "up"
    port: int = 5201


def validate(p: Flows) -> None:
    tools.flows(p, 200)  # the server counts once a second: at shorter intervals its counts would leave gaps


def command(p: Flows, o: Options, times: Times) -> list[str]:
    length = str(max(1, int(times.length_s)))  # iperf3 accepts whole seconds
    words = ["iperf3", "-c", p.host or o.host, "-p", str(p.port), "-J", "--get-server-output", "-t", length, "-P", str(p.flows)]
    words += ["-i", f"{p.interval_ns / S:g}", *{"up": [], "down": ["-R"], "both": ["--bidir"]}[p.direction]]
    words += [*(["-u"] if p.protocol == "udp" else []), *tools.option("-b", p.bitrate_bps), *tools.option("-l", p.payload_bytes)]
    return [*words, *tools.option("-C", p.cc), *tools.option("-S", tools.tos(p.mark)), *tools.family(o), *tools.option("-B", o.source)]


def series(p: Flows, name: str) -> Mapping[Hashable, Series]:
    ways: tuple[Literal["up", "down"], ...] = ("up", "down") if p.direction == "both" else (p.direction,)
    made: dict[Hashable, Series] = {}
    for way, group in ((way, name if len(ways) == 1 else f"{name} {way}") for way in ways):
        for flow, one in enumerate(tools.numbered(group, p.flows)):
            made["bytes", way, flow] = Series(0, one, "bytes", "Mbit/s", None, flow, way, p.mark, group)
            if p.protocol == "tcp" and way == "up":
                made["tcp_info", way, flow] = Series(0, one, "tcp_info", "", None, flow, way, p.mark, group)
            if p.protocol == "udp":
                made["loss", way, flow] = Series(0, f"{one} loss", "value", "%", None, flow, way, p.mark, f"{group} loss")
    return made


def read(p: Flows, samples: Samples, document: bytes) -> None:
    made = json.loads(document)
    if wrong := tools.part(made, "error"):
        samples.reason("tool_failed", tool="iperf3", error=one_line(str(wrong), 200))
    last = max((stream["end"] for interval in made["intervals"] for stream in interval["streams"]), default=0)
    zero = tools.begins(samples, samples.read_ns, round(S * last))
    _take(samples, made["intervals"], LOCAL, *zero)
    _take(samples, _far(made, p.direction), REMOTE, *zero)


def _far(made: Any, direction: str) -> list[Any]:
    intervals = tools.part(made, "server_output_json", "intervals")
    if isinstance(intervals, list):
        return intervals
    text = tools.part(made, "server_output_text")
    found = TEXT.findall(text) if isinstance(text, str) and direction != "down" else []
    rows = [{"socket": n, "start": float(a), "end": float(b), "bytes": tools.bytes_of(size), "sender": False} for n, a, b, size in found]
    ends = [end["receiver"] for end in tools.part(made, "end", "streams") or [] if tools.part(end, "receiver", "sender") is True]
    return [{"streams": tools.scaled(rows, [end["bytes"] for end in ends])}]


def _take(samples: Samples, intervals: list[Any], end: int, zero: int, bound: int) -> None:
    """Rows of one end. The flows of a direction are numbered in the order in which their sockets appear."""
    numbers: dict[tuple[str, Any], int] = {}
    counts: defaultdict[tuple[str, int], float] = defaultdict(float)
    again: defaultdict[tuple[str, int], int] = defaultdict(int)
    for stream in (stream for interval in intervals for stream in interval["streams"]):
        way = "up" if bool(stream["sender"]) == (end == LOCAL) else "down"
        key = way, numbers.setdefault((way, stream["socket"]), sum(other == way for other, _ in numbers))
        if key not in counts:
            samples.add(("bytes", *key), zero + round(S * stream["start"]), end=end, bytes=0, bound_ns=bound)
        at, counts[key] = zero + round(S * stream["end"]), counts[key] + stream["bytes"]
        samples.add(("bytes", *key), at, end=end, bytes=round(counts[key]), bound_ns=bound)
        if "rtt" in stream and end == LOCAL:
            again[key] += stream["retransmits"]
            samples.add(("tcp_info", *key), at, end=end, rtt_us=stream["rtt"], rttvar_us=stream["rttvar"], retransmits=again[key])
        if "lost_percent" in stream and not stream["sender"]:
            samples.value(("loss", *key), at, stream["lost_percent"])


RUNNER = Runner(
    "iperf3", "TCP and UDP flows by iperf3", Flows, validate, command, series, whole(read), ends_well,
    tool=Tool("iperf3", "iperf3", ["--version"], r"iperf (\d+\.\d+)", "3.7"), loads=True, listeners=tools.listens("iperf3 -s -p {}"),
)  # fmt: skip
