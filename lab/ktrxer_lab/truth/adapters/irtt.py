# SPDX-License-Identifier: MIT OR Apache-2.0
"""irtt client: its table. One-way delays come from the two clocks without correction; irtt gives no uncertainty for them."""

from __future__ import annotations

import re

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, share

PROGRAM, BESIDE = "irtt", "irtt server"
TIME = r"(-?[0-9.]+(?:ns|µs|us|ms|s|m))"
SCALE = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
ROWS = {"RTT": "round trip", "send delay": "delay up", "receive delay": "delay down"}


def ms(text: str) -> float:
    parts = re.fullmatch(r"(-?[0-9.]+)(\D+)", text)
    assert parts is not None
    return float(parts[1]) * SCALE[parts[2]]


def read(output: Output) -> list[Figure]:
    counts = re.search(r"packets sent/received: (\d+)/(\d+)", output.out)
    if not counts:
        raise Unreadable("no line `packets sent/received` in the output of irtt: do not give it -Q, nor -o -")
    sent, received = int(counts[1]), int(counts[2])
    found = share("loss round trip", sent - received, sent)
    there = re.search(r"server packets received: (\d+)/(\d+)", output.out)
    if there:
        found += share("loss up", sent - int(there[1]), sent) + share("loss down", int(there[1]) - received, int(there[1]))
    for row, name in ROWS.items():
        times = re.search(rf"^ *{row} +{TIME} +{TIME} +{TIME} +{TIME}", output.out, re.MULTILINE)
        if times:
            values = dict(zip(("min", "mean", "p50", "max"), map(ms, times.groups()), strict=True))
            found += [Figure(f"{name} {which}", values[which]) for which in (values if name == "round trip" else ("p50",))]
    return found
