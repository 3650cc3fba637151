# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer stamp --json. One-way delays have an uncertainty, which comes from the clocks."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, json_object, share

PROGRAM, BESIDE = "ktrxer stamp", "ktrxer serve"


def read(output: Output) -> list[Figure]:
    result = json_object(output, "--json")
    times = result.get("rtt_us") or {}
    found = [Figure(f"round trip {name}", times[name] / 1e3) for name in ("min", "p50", "max") if times.get(name) is not None]
    bound = (result.get("one_way_uncertainty_us") or {}).get("total")
    for way in ("up", "down"):
        median = (result.get(f"{way}_us") or {}).get("p50")
        if median is not None and bound is not None:
            found.append(Figure(f"delay {way} p50", median / 1e3, (median - bound) / 1e3, (median + bound) / 1e3))
    for name, key, scale in (("clock offset", "offset_us", 1e3), ("clock rate", "skew_ppm", 1.0)):
        value, bound = result[key], result[key.replace("_", "_bound_")]
        if value is not None and bound is not None:
            low, high = (value - bound) / scale, (value + bound) / scale
            found.append(Figure(name, value / scale, low, high, at_ns=result["offset_at_ns"]))
    sent, there = result["sent"], result["sent"] - result["lost_up"]
    found += share("loss round trip", result["lost"], sent)
    if not result["lost_unknown"]:
        found += share("loss up", result["lost_up"], sent) + share("loss down", result["lost_down"], there)
    return found + share("duplicates up", result["duplicates_up"], sent) + share("duplicates down", result["duplicates_down"], there)
