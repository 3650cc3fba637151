# SPDX-License-Identifier: MIT OR Apache-2.0
"""ICMP echo by fping (recorded with 5.1)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from ktrxer.runners import marks
from ktrxer.runners.runner import MS, Ended, Options, Parameters, Reason, Runner, RunnerError, S, Times, Tool, ends_well
from ktrxer.runners.samples import Line, Samples, Strange, by_line
from ktrxer.store.meta import Series

ECHO = re.compile(r"\[(\d+)\.(\d+)\] .* : \[(\d+)\], (?:\d+ bytes, ([\d.]+) ms|timed out)")
NO_ANSWER = 1  # exit status: a result, not a fault


@dataclass(frozen=True, kw_only=True)
class Echoes(Parameters):
    interval_ns: int = 100 * MS
    timeout_ns: int = 2 * S
    payload_bytes: int = 56
    mark: str | None = None
    group: str = "Ping (ms)"


def validate(p: Echoes) -> None:
    if not MS <= p.interval_ns <= 60 * S:
        raise RunnerError(f"probes every {p.interval_ns / MS:g} ms; 1 ms to 60 s are possible")
    if not 50 * MS <= p.timeout_ns <= 60 * S:
        raise RunnerError(f"a time-out of {p.timeout_ns / MS:g} ms; 50 ms to 60 s are possible")
    if not 12 <= p.payload_bytes <= 65_000:
        raise RunnerError(f"{p.payload_bytes} bytes of payload; 12 to 65000 are possible")
    marks.check([p.mark])


def command(p: Echoes, o: Options, times: Times) -> list[str]:
    count = max(1, times.length_ns // p.interval_ns)
    words = ["fping", "-D", "-c", str(count), "-p", f"{p.interval_ns / MS:g}", "-t", f"{p.timeout_ns / MS:g}"]
    tos = ["-O", str(marks.DSCP[p.mark] << 2)] if p.mark is not None else []
    source = ["-S", o.source] if o.source else []
    return [*words, "-b", str(p.payload_bytes), *tos, *([o.family] if o.family else []), *source, p.host or o.host]


def series(p: Echoes, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "latency", "ms", klass=p.mark, group=p.group)}


def line(p: Echoes, samples: Samples, line: Line) -> None:
    """The time stamp is that of the answer, or of the time-out."""
    if not line.text.strip():
        return
    found = ECHO.match(line.text)
    if found is None:
        raise Strange(line.text)
    at = samples.clock.real(int(found[1]) * S + int(found[2][:9].ljust(9, "0")))
    if found[4] is None:
        samples.lost("rtt", at - p.timeout_ns, int(found[3]))
    else:
        rtt_ns = round(float(found[4]) * MS)
        samples.answered("rtt", at - rtt_ns, int(found[3]), rtt_ns)


def health(ended: Ended) -> Iterable[Reason]:
    return () if ended.process.exit_status == NO_ANSWER else ends_well(ended)


RUNNER = Runner(
    "fping", "ICMP echo by fping", Echoes, validate, command, series, by_line(line), health,
    tool=Tool("fping", "fping", ["-v"], r"Version (\d+\.\d+)", "3.5"), protocol="ICMP",
    timeout_ns=lambda p, _: p.timeout_ns, probes=lambda _: 1,
)  # fmt: skip
