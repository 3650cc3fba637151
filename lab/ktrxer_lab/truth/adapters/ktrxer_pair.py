# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer pair --json: the capacity of each direction, counted in IP packets. A direction without a capacity has no figure."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object

PROGRAM, BESIDE = "ktrxer pair", "ktrxer serve"


def read(output: Output) -> list[Figure]:
    result, found = json_object(output, "--json"), list[Figure]()
    for way in ("up", "down"):
        capacity = (result.get(way) or {}).get("capacity_bit_s")
        if capacity is not None:
            value, low, high = (capacity[key] / 1e6 for key in ("value", "low", "high"))
            found.append(Figure(f"capacity {way}", value, low, high))
    if not found:
        why = [one["text"] for one in result.get("reasons", ())] or ["give `ktrxer pair` --json"]
        raise Unreadable("no capacity in either direction: " + "; ".join(why))
    return found
