# SPDX-License-Identifier: MIT OR Apache-2.0
"""netperf: TCP_STREAM (up) and TCP_MAERTS (down), the last line of the table."""

from __future__ import annotations

import re

from ktrxer_lab.truth.figure import Figure, Output, Unreadable

PROGRAM, BESIDE = "netperf", "netserver -D"


def read(output: Output) -> list[Figure]:
    test = re.search(r"TCP (STREAM|MAERTS) TEST", output.out)
    rows = re.findall(r"^ *\d+ +\d+ +\d+ +[0-9.]+ +([0-9.]+) *$", output.out, re.MULTILINE)
    if not test or not rows:
        raise Unreadable("no table of TCP_STREAM or TCP_MAERTS in the output of netperf, in 10^6 bits/sec (-f m)")
    return [Figure(f"TCP {'up' if test[1] == 'STREAM' else 'down'}", float(rows[-1]), loaded=True)]
