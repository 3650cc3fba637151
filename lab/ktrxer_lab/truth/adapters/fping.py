# SPDX-License-Identifier: MIT OR Apache-2.0
"""fping -c N: the last line on standard error."""

from __future__ import annotations

import re

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, share

PROGRAM, BESIDE = "fping", ""
NUMBER = r"([0-9.]+)"


def read(output: Output) -> list[Figure]:
    counts = re.search(r"xmt/rcv/%loss = (\d+)/(\d+)/", output.err)
    if not counts:
        raise Unreadable("no `xmt/rcv/%loss` in the output of fping: give it -c N (and not -Q or -D alone)")
    sent, received = int(counts[1]), int(counts[2])
    times = re.search(rf"min/avg/max = {NUMBER}/{NUMBER}/{NUMBER}", output.err)
    found = share("loss round trip", sent - received, sent)
    return found + ([Figure(f"round trip {name}", float(times[i])) for i, name in enumerate(("min", "mean", "max"), 1)] if times else [])
