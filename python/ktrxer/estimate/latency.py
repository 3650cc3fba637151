# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of delays: quantiles, responsiveness, and a grade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRIM = 0.95

# What one flow adds to the delay of another, in milliseconds, and the letter for it. These are the limits of the DSLReports speed test
# (2015),
# which the bufferbloat community knows; other services have other limits, so ours are printed beside each grade.
GRADES: tuple[tuple[float, str], ...] = ((5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D"))
WORST = "F"


@dataclass(frozen=True)
class Delays:
    """In the unit of what was given; a quantile is the smallest value with at least that share at or below it (type 1: no value is
    invented)."""

    count: int
    mean: float
    minimum: float
    median: float
    p95: float
    p99: float
    maximum: float


def delays(values: NDArray[Any]) -> Delays | None:
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return None
    low, median, p95, p99, high = np.quantile(known, [0, 0.5, 0.95, 0.99, 1], method="inverted_cdf").tolist()
    return Delays(len(known), float(known.mean()), low, median, p95, p99, high)


def trimmed_mean(values: NDArray[Any], share: float = TRIM) -> float | None:
    """The mean of the lower `share` of the values: draft-ietf-ippm-responsiveness, section 4.3.1, removes what lies above the 95th
    percentile."""
    known = np.asarray(values, np.float64)
    known = np.sort(known[~np.isnan(known)])
    if not len(known):
        return None
    return float(known[: max(1, int(np.ceil(len(known) * share)))].mean())


def responsiveness_rpm(foreign_ms: NDArray[Any], own_ms: NDArray[Any]) -> tuple[float, float | None, float | None] | None:
    """Round trips per minute under load, and of the foreign and the own probes alone.

    draft-ietf-ippm-responsiveness, section 4.3.1: 60000 over the mean of two times in milliseconds, one of probes on connections of their
    own (foreign), one on the connections that carry the load (self), each a trimmed mean. The draft's probes are TCP, TLS and HTTP
    exchanges; here
    foreign is ICMP and UDP, and self the flows' own round-trip time as TCP knows it, so the figure is the network's part of the draft's,
    and higher.
    With one of the two missing, the other stands for both.
    """
    foreign, own = trimmed_mean(foreign_ms), trimmed_mean(own_ms)
    known = [value for value in (foreign, own) if value is not None and value > 0]
    if not known:
        return None
    return 60_000 * len(known) / sum(known), 60_000 / foreign if foreign else None, 60_000 / own if own else None


def grade(added_ms: float) -> str:
    """For the delay that load adds: the median under load less the median when idle."""
    return next((letter for limit, letter in GRADES if added_ms < limit), WORST)


def scale_text() -> str:
    return ", ".join(f"{letter} < {limit:g} ms" for limit, letter in GRADES) + f", else {WORST}"
