# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer ping --json."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, json_object, share

PROGRAM, BESIDE = "ktrxer ping", ""


def read(output: Output) -> list[Figure]:
    result = json_object(output, "--json")
    times = result.get("rtt_us") or {}
    found = [Figure(f"round trip {name}", times[name] / 1e3) for name in ("min", "p50", "max") if times.get(name) is not None]
    return found + share("loss round trip", result["lost"], result["sent"])
