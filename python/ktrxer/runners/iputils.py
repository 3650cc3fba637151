# SPDX-License-Identifier: MIT OR Apache-2.0
"""ICMP echo by the system's `ping` (iputils)."""

from __future__ import annotations

import re

from ktrxer.runners import marks, tools
from ktrxer.runners.runner import MS, Options, Runner, S, Times, Tool, between
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line
from ktrxer.store.columns import ANSWERED, DUPLICATE

ECHO = re.compile(r"\[(\d+)\.(\d{6})\] \d+ bytes from .*icmp_seq=(\d+) .*time=([\d.]+) ms( \(DUP!\))?")
TO = re.compile(r"PING .*?\(([\d.:a-fA-F]+)\)")
SENT = re.compile(r"(\d+) packets transmitted, \d+ received")
# An error message of a router, the first line, and the statistics.
OTHER = re.compile(r"\[\d+\.\d{6}\] (?:From |no answer yet)|PING |--- |rtt min|pipe \d|\s*$|\d+ packets transmitted")
NUMBERS = 1 << 16  # of echo requests, then they begin again


def validate(p: tools.Echoes) -> None:
    tools.interval(p.interval_ns, 2)  # shorter ones are for root only
    between("the time-out", p.timeout_ns / S, 1, 60, " s")
    between("the payload", p.payload_bytes, 16, 65_000, " bytes")  # 16 hold the time stamp of `ping`
    marks.check([p.mark])


def command(p: tools.Echoes, o: Options, times: Times) -> list[str]:
    count = max(1, times.length_ns // p.interval_ns)
    words = ["ping", "-n", "-D", "-i", f"{p.interval_ns / S:g}", "-c", str(count), "-W", f"{p.timeout_ns / S:g}"]
    words += ["-s", str(p.payload_bytes)]
    return [*words, *tools.option("-Q", tools.tos(p.mark)), *tools.family(o), *tools.option("-I", o.source), p.host or o.host]


def line(p: tools.Echoes, samples: Samples, line: Line) -> None:
    """The time stamp is that of the answer. `memory` has the send times by number, and the number of requests."""
    found = ECHO.match(line.text)
    if found is None:
        if not OTHER.match(line.text):
            raise NotUnderstood(line.text)
        if to := TO.match(line.text):
            samples.result = {"payload_bytes": p.payload_bytes, "to": to[1]}
        if counted := SENT.match(line.text):
            samples.result = {**(samples.result or {}), "sent": int(counted[1])}
        return
    rtt_ns = round(float(found[4]) * MS)
    sent_ns = samples.clock.real(int(found[1]) * S + int(found[2]) * 1000) - rtt_ns
    newest = max(samples.memory.get("newest", 0), 0)
    # Requests repeat these 16 bits: take the number that is nearest to the newest.
    seq = int(found[3]) + (newest - int(found[3]) + NUMBERS // 2) // NUMBERS * NUMBERS
    samples.add("rtt", sent_ns, seq=seq, rtt_ns=rtt_ns, state=DUPLICATE if found[5] else ANSWERED)
    samples.memory["newest"] = max(newest, seq)
    samples.memory.setdefault("sent", {})[seq] = sent_ns


def end(p: tools.Echoes, samples: Samples) -> None:
    """A number without an answer is a lost probe. It left between its neighbours."""
    sent: dict[int, int] = samples.memory.get("sent", {})
    near, at = 1, samples.from_ns
    for seq in range(1, max(max(sent, default=0), (samples.result or {}).get("sent", 0)) + 1):
        if seq in sent:
            near, at = seq, sent[seq]
        else:
            samples.lost("rtt", at + (seq - near) * p.interval_ns, seq)


RUNNER = Runner(
    "iputils", "ICMP echo by `ping` of iputils", tools.Echoes, validate, command, tools.echo_series, by_line(line, end), tools.echo_health,
    tool=Tool("ping", "iputils-ping", ["-V"], r"iputils[ -]s?(\d+)", "20190709"), protocol="ICMP",
    timeout_ns=lambda p, _: p.timeout_ns, probes=lambda _: 1,
)  # fmt: skip
