# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer check --json: the idle round trip."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object

PROGRAM, BESIDE = "ktrxer check", "ktrxer serve"


def read(output: Output) -> list[Figure]:
    idle = json_object(output, "--json")["idle_ms"]
    if idle is None or idle["p50"] is None:
        raise Unreadable("no idle round trip in the output: nothing answered")
    return [Figure("idle round trip p50", idle["p50"], idle["low"], idle["high"])]
