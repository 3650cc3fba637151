# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flent: its printed summary (`-f summary`, the default). Its pings are those of the whole run, so of a loaded path."""

from __future__ import annotations

import re

from ktrxer_lab.truth.figure import Figure, Output, Unreadable

PROGRAM, BESIDE = "flent", "netserver -D"
ROW = re.compile(r"^ *(.+?) +: +(-?[0-9.]+) +(-?[0-9.]+) +(?:-?[0-9.]+ +)?(ms|Mbits/s)", re.MULTILINE)
TOTALS = {"TCP upload": "TCP up", "TCP download": "TCP down", "TCP upload sum": "TCP up", "TCP download sum": "TCP down"}
IDLE = "ping"  # the test without a load


def read(output: Output) -> list[Figure]:
    rows = ROW.findall(output.out)
    if not rows:
        raise Unreadable("no summary in the output of flent: do not give it -f with another format, and check that it ran")
    loads = any(unit == "Mbits/s" for _, _, _, unit in rows)
    found: dict[str, Figure] = {}
    for name, mean, median, unit in rows:
        if unit == "Mbits/s" and name in TOTALS:
            found[TOTALS[name]] = Figure(TOTALS[name], float(mean), loaded=True)
        elif unit == "ms" and name.startswith("Ping (ms)") and not loads:
            found.setdefault("round trip mean", Figure("round trip mean", float(mean)))
            found.setdefault("round trip p50", Figure("round trip p50", float(median)))
    return list(found.values())
