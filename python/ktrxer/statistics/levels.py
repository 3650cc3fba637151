# SPDX-License-Identifier: MIT OR Apache-2.0
"""Did a rate or a delay change from one level to another and stay there, as when a shaper is added, changed or removed?

One mean over two levels describes neither. The series is divided into at most LEVELS_MOST parts with the least squared
deviations of the logarithms. A division counts if each two neighbours are apart: nine of ten values of the one are beyond nine of ten of
the other, their medians differ by a factor, the change is beside the division, and p25 and p75 of each level are nearly the same. Ramps,
sawtooths, single bursts, and the rates of flows that compete are no levels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import median, quantile

Floats = NDArray[np.float64]

LEVELS_MOST = 4
POINTS_MOST = 200
FACTOR = 1.3  # between the medians of two neighbours
WIDTH = 0.05  # of the median: the interquartile range of a level
BESIDE, JUMP = 3, 0.7  # so many values on both sides differ by this share of it; on a ramp by less


@dataclass(frozen=True)
class Level:
    first: int
    last: int  # the first value that is not in it
    median: float


def levels(values: Floats, least: int) -> list[Level]:
    """Values above 0 at equal distances, without gaps. `least`: of a level, at least 1. One level: there was no change."""
    n, least = len(values), max(least, 1)
    whole = [Level(0, n, median(values) if n else 0.0)]
    if n > POINTS_MOST or n < 2 * least or not (values > 0).all():
        return whole
    logs = np.log(values)
    one = np.concatenate([[0.0], np.cumsum(logs)])
    two = np.concatenate([[0.0], np.cumsum(logs**2)])
    at = np.arange(n + 1)
    length = at[None, :] - at[:, None]
    # cost[i, j]: squared deviations of i..j-1 from their mean
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = two[None, :] - two[:, None] - (one[None, :] - one[:, None]) ** 2 / length
    cost[length < least] = np.inf
    best, cuts = cost[0], []
    found = whole
    for _ in range(LEVELS_MOST - 1):
        total = best[:, None] + cost
        cuts.append(np.argmin(total, axis=0))
        best = np.min(total, axis=0)
        if not np.isfinite(best[n]):
            break
        ends = [n]
        for cut in reversed(cuts):
            ends.append(int(cut[ends[-1]]))
        parts = [Level(a, b, median(values[a:b])) for a, b in zip([0, *ends[:0:-1]], ends[::-1], strict=True)]
        if all(_apart(values, a, b) for a, b in itertools.pairwise(parts)):
            found = parts
    return found


def _apart(values: Floats, a: Level, b: Level) -> bool:
    # The value beside the change is of both, unless it is the only one.
    before, after = values[a.first : max(a.last - 1, a.first + 1)], values[min(b.first + 1, b.last - 1) : b.last]
    if any(quantile(part, 0.75) - quantile(part, 0.25) > WIDTH * median(part) for part in (before, after)):
        return False
    low, high = (before, after) if a.median < b.median else (after, before)
    jump = abs(np.log(median(after[:BESIDE]) / median(before[-BESIDE:])))
    change = abs(np.log(b.median / a.median))
    return change > np.log(FACTOR) and jump > JUMP * change and quantile(high, 0.1) > quantile(low, 0.9)
