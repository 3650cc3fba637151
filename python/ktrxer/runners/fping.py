# SPDX-License-Identifier: MIT OR Apache-2.0
"""ICMP echo by fping (recorded with 5.1)."""

from __future__ import annotations

import re

from ktrxer.runners import marks, tools
from ktrxer.runners.runner import MS, Options, Runner, S, Times, Tool, between
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line

ECHO = re.compile(r"\[(\d+)\.(\d+)\] .* : \[(\d+)\], (?:\d+ bytes, ([\d.]+) ms|timed out)")


def validate(p: tools.Echoes) -> None:
    tools.interval(p.interval_ns, 1)
    between("the time-out", p.timeout_ns / MS, 50, 60_000, " ms")
    between("the payload", p.payload_bytes, 12, 65_000, " bytes")
    marks.check([p.mark])


def command(p: tools.Echoes, o: Options, times: Times) -> list[str]:
    count = max(1, times.length_ns // p.interval_ns)
    words = ["fping", "-D", "-c", str(count), "-p", f"{p.interval_ns / MS:g}", "-t", f"{p.timeout_ns / MS:g}"]
    tos = ["-O", str(marks.DSCP[p.mark] << 2)] if p.mark is not None else []
    source = ["-S", o.source] if o.source else []
    return [*words, "-b", str(p.payload_bytes), *tos, *([o.family] if o.family else []), *source, p.host or o.host]


def line(p: tools.Echoes, samples: Samples, line: Line) -> None:
    """The time stamp is that of the answer, or of the time-out."""
    if not line.text.strip():
        return
    found = ECHO.match(line.text)
    if found is None:
        raise NotUnderstood(line.text)
    at = samples.clock.real(int(found[1]) * S + int(found[2][:9].ljust(9, "0")))
    if found[4] is None:
        samples.lost("rtt", at - p.timeout_ns, int(found[3]))
    else:
        rtt_ns = round(float(found[4]) * MS)
        samples.answered("rtt", at - rtt_ns, int(found[3]), rtt_ns)


RUNNER = Runner(
    "fping", "ICMP echo by fping", tools.Echoes, validate, command, tools.echo_series, by_line(line), tools.echo_health,
    tool=Tool("fping", "fping", ["-v"], r"Version (\d+\.\d+)", "3.5"), protocol="ICMP",
    timeout_ns=lambda p, _: p.timeout_ns, probes=lambda _: 1,
)  # fmt: skip
