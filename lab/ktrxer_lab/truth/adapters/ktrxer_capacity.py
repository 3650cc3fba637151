# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer capacity --json: the highest rate of a sub-interval, of IP packets."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object

PROGRAM, BESIDE = "ktrxer capacity", "ktrxer serve --udpstp-port 24601"


def read(output: Output) -> list[Figure]:
    result = json_object(output, "--json")
    found = [
        Figure(f"capacity {way}", result[way]["maximum"]["bit_s"] / 1e6, loaded=True)
        for way in ("up", "down")
        if (result.get(way) or {}).get("maximum")
    ]
    if not found:
        raise Unreadable("no capacity in the output: the test had no result")
    return found
