# SPDX-License-Identifier: MIT OR Apache-2.0
"""A TCP flow by netperf, from its interim results. They are those of this end: of an upload, netperf has only the receiver's sum."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.runners import tools
from ktrxer.runners.runner import MS, Listener, Options, Parameters, Runner, S, Times, Tool, ends_well
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line
from ktrxer.runners.tools import option
from ktrxer.store.meta import Series

INTERIM = re.compile(r"Interim result: +([\d.]+) (10\^6bits|Trans)/s over ([\d.]+) seconds ending at (\d+)\.(\d{3})\s*$")
SUM = re.compile(r"([A-Z_]+)=([\w.:^/-]*)\s*$")
SUMS = (
    "THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD", "REMOTE_BYTES_SENT", "REMOTE_BYTES_RECVD",
    "LOCAL_TRANSPORT_RETRANS", "LOCAL_CONG_CONTROL", "REMOTE_CONG_CONTROL",
)  # fmt: skip
TOOL = Tool("netperf", "netperf in non-free", ["-V"], r"Netperf version (\d+\.\d+\.\d+)", "2.7")


@dataclass(frozen=True, kw_only=True)
class Flow(Parameters):
    direction: Literal["up", "down"] = "up"
    interval_ns: int = 200 * MS
    payload_bytes: int | None = None  # of a write
    cc: str = ""  # congestion control of both ends; empty: the hosts' own
    mark: str | None = None
    port: int = 12865


def validate(p: Flow) -> None:
    tools.flow(p.interval_ns, 10, p.port, p.mark, p.cc, p.payload_bytes)


def words(test: str, p: Any, o: Options, times: Times) -> list[str]:
    """The words of every test. A negative interval of -D makes netperf read the clock at each transfer. The length is in whole seconds."""
    length = str(max(1, int(times.length_s)))
    command = ["netperf", "-P", "0", "-v", "0", "-D", f"-{p.interval_ns / S:g}", "-f", "m", "-t", test, "-l", length]
    mark = tools.tos(p.mark)
    command += option("-Y", f"{mark},{mark}" if mark is not None else None)
    return [*command, *tools.family(o), *option("-L", o.source), "-H", p.host or o.host, "-p", str(p.port)]


def command(p: Flow, o: Options, times: Times) -> list[str]:
    name, size = ("TCP_STREAM", "-m") if p.direction == "up" else ("TCP_MAERTS", "-M")
    return [*words(name, p, o, times), "--", "-k", ",".join(SUMS), *option(size, p.payload_bytes), *option("-K", p.cc)]


def listeners(p: Any, o: Options) -> list[Listener]:
    return [Listener(p.host or o.host, p.port, "netserver")]


def series(p: Flow, name: str) -> Mapping[Hashable, Series]:
    return {"bytes": Series(0, name, "bytes", "Mbit/s", None, 0, p.direction, p.mark, name)}


def interim(samples: Samples, line: Line) -> tuple[float, str, int, int] | None:
    """The rate, its unit, and the interval of an interim result; the sums at the end become the result."""
    found = INTERIM.match(line.text)
    if found is not None:
        to_ns = samples.clock.real(int(found[4]) * S + int(found[5]) * MS)
        # The length is printed with two or three digits. The time of the last line, in milliseconds, has no error that adds up.
        from_ns = samples.memory.get("at", to_ns - round(float(found[3]) * S))
        samples.memory["at"] = to_ns
        return float(found[1]), found[2], from_ns, to_ns
    if summed := SUM.match(line.text):
        samples.result = {**(samples.result or {}), summed[1]: summed[2]}
    elif line.text.strip() and not line.text.startswith(("MIGRATED ", "Recv ", "Socket ", "Size ")):
        raise NotUnderstood(line.text)
    return None


def line(_: Flow, samples: Samples, line: Line) -> None:
    found = interim(samples, line)
    if found is None:
        return
    rate, unit, from_ns, to_ns = found
    if unit != "10^6bits":
        raise NotUnderstood(line.text)
    if "bytes" not in samples.memory:
        samples.moved("bytes", from_ns, 0)
    samples.memory["bytes"] = samples.memory.get("bytes", 0.0) + rate * 1e6 / 8 * (to_ns - from_ns) / S
    samples.moved("bytes", to_ns, round(samples.memory["bytes"]))


RUNNER = Runner(
    "netperf", "a TCP flow by netperf", Flow, validate, command, series, by_line(line), ends_well, tool=TOOL, loads=True,
    listeners=listeners,
)  # fmt: skip
