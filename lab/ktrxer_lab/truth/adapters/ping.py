# SPDX-License-Identifier: MIT OR Apache-2.0
"""ping of iputils: its last lines."""

from __future__ import annotations

import re

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, share

PROGRAM, BESIDE = "ping", ""


def read(output: Output) -> list[Figure]:
    counts = re.search(r"(\d+) packets transmitted, (\d+) received", output.out)
    if not counts:
        raise Unreadable("no line `N packets transmitted` in the output of ping")
    sent, received = int(counts[1]), int(counts[2])
    found = share("loss round trip", sent - received, sent)
    times = re.search(r"min/avg/max/mdev = ([0-9.]+)/([0-9.]+)/([0-9.]+)/", output.out)
    if times:
        found += [Figure(f"round trip {name}", float(value)) for name, value in zip(("min", "mean", "max"), times.groups(), strict=True)]
    return found
