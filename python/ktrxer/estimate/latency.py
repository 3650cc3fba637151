# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of delays: quantiles, responsiveness, and a grade."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRIM = 0.95
BLOCK_NS = 500_000_000  # of the medians whose spread is the uncertainty of the p50

# What load adds to the round trip, in milliseconds, and the letter for it: the limits of the DSLReports speed test
# (https://www.dslreports.com/faq/17930), which the bufferbloat community knows and later tests took over. There the delay that uploads
# add and that which downloads add are averaged; here both directions are loaded at once. Other services have other limits, so ours are
# printed beside each grade.
GRADES: tuple[tuple[float, str], ...] = ((5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D"))
WORST = "F"
RESPONSIVENESS: tuple[tuple[float, str], ...] = ((300, "poor"), (1000, "fair"), (6000, "good"))


@dataclass(frozen=True)
class Delays:
    """In the unit of what was given; a quantile is the smallest value with at least that share at or below it (type 1: no value is
    invented). Where lost ones are counted, each is an infinite value in the quantiles; mean, min and max are of the others."""

    count: int  # of the values
    mean: float
    min: float
    p50: float
    p95: float
    p99: float
    max: float
    lost: int = 0  # beside them
    p50_low: float | None = None  # the interval that holds the median (p50_interval)
    p50_high: float | None = None


def delays(values: NDArray[Any], lost: int = 0, between: tuple[float, float] | None = None) -> Delays | None:
    """`lost`: so many more, without a value; `between`: the interval of their median."""
    known = np.asarray(values, np.float64)
    known = np.sort(known[~np.isnan(known)])
    if not len(known):
        return None
    whole = np.concatenate([known, np.full(lost, np.inf)])
    p50, p95, p99 = (float(whole[max(0, math.ceil(share * len(whole) - 1e-9) - 1)]) for share in (0.5, 0.95, 0.99))
    low, high = between if between is not None else (None, None)
    return Delays(len(known), float(known.mean()), float(known[0]), p50, p95, p99, float(known[-1]), lost, low, high)


def p50_interval(t_ns: NDArray[Any], values: NDArray[Any]) -> tuple[float, float] | None:
    """An interval that holds the median with 95 % confidence, by order statistics of the medians of half seconds: neighbouring values
    depend on each other, so they do not count one by one. Lost ones are infinite values. None: fewer than six half seconds."""
    blocks = np.asarray(t_ns, np.int64) // BLOCK_NS
    known = ~np.isnan(values)
    blocks, values = blocks[known], np.asarray(values, np.float64)[known]
    order = np.lexsort((values, blocks))
    starts = np.flatnonzero(np.diff(blocks[order], prepend=np.iinfo(np.int64).min))
    ends = np.append(starts[1:], len(order))
    medians = np.sort(values[order][(starts + ends - 1) // 2])  # the lower one of an even count, as in delays()
    n = len(medians)
    below = 0.0  # P(at most k of n lie below the median)
    rank = -1
    for k in range(n // 2):
        below += math.comb(n, k) * 0.5**n
        if below > 0.025:
            break
        rank = k
    return (float(medians[rank]), float(medians[n - 1 - rank])) if rank >= 0 else None


def trimmed_mean(values: NDArray[Any], share: float = TRIM) -> float | None:
    """The mean of the lower `share` of the values: draft-ietf-ippm-responsiveness-06, section 4.3.1, trims on one side, at the 95th
    percentile."""
    known = np.asarray(values, np.float64)
    known = np.sort(known[~np.isnan(known)])
    if not len(known):
        return None
    return float(known[: max(1, int(np.ceil(len(known) * share)))].mean())


def responsiveness_rpm(foreign_ms: NDArray[Any], own_ms: NDArray[Any]) -> tuple[float, float | None, float | None] | None:
    """Round trips per minute under load, and of the foreign and the own probes alone.

    draft-ietf-ippm-responsiveness-06, section 4.3.1: the mean of two figures, each of them 60000 over a trimmed mean in milliseconds, one
    of probes on connections of their own (foreign), one on the connections that carry the load (self). (Versions before it divided 60000
    by the mean of both times.) The draft's foreign probes are TCP, TLS and HTTP exchanges; here they are ICMP and UDP. For self it allows
    what TCP itself estimates as its round-trip time where no request can be sent on a loaded connection: that is what we have. So the
    figure is the network's part of the draft's, and higher. With one of the two missing, the other stands for both.
    """
    foreign, own = (60_000 / value if value else None for value in (trimmed_mean(foreign_ms), trimmed_mean(own_ms)))
    known = [rate for rate in (foreign, own) if rate is not None]
    return (sum(known) / len(known), foreign, own) if known else None


def responsiveness_class(rpm: float) -> str:
    """The draft's four words for it (section 1.2)."""
    return next((word for limit, word in RESPONSIVENESS if rpm < limit), "excellent")


def grade(added_ms: float) -> str:
    """For the delay that load adds: the median under load less the median when idle."""
    return next((letter for limit, letter in GRADES if added_ms < limit), WORST)


def scale_text() -> str:
    return ", ".join(f"{letter} < {limit:g} ms" for limit, letter in GRADES) + f", else {WORST}"
