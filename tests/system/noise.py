# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests on a machine that others use too: what noise adds to a figure, and what it makes of a verdict."""

from collections.abc import Callable
from typing import Any

TRIES = 10
LIMIT_S = 240  # of one test


def least(measure: Callable[[], float], enough: float) -> float:
    """The smallest of what `measure` gives in at most TRIES, none after one that is enough. A neighbour only ever adds to lateness or to a
    difference: what is ours shows in each of them."""
    best = measure()
    for _ in range(TRIES - 1):
        if best <= enough:
            break
        best = min(best, measure())
    return best


def late(result: dict[str, Any]) -> bool:
    """Its verdict rests on late probes, too: the machine was busy."""
    return any("late or were skipped" in reason for reason in result["reasons"])


def degraded(result: dict[str, Any]) -> dict[str, Any]:
    """By the test's own fault. Late probes of a busy machine may make it worse, and are told then."""
    assert result["verdict"] == "degraded" or (late(result) and result["verdict"] == "invalid"), (result["verdict"], result["reasons"])
    return result
