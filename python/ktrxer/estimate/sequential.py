# SPDX-License-Identifier: MIT OR Apache-2.0
"""When a mean is known well enough, if one looks after each run and stops at the first time that the interval is narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

ALPHA = 0.05
NORMAL = 1.959964  # the quantile at 1 - ALPHA / 2
MIXTURE = 5  # a parameter of the sequence: it is narrowest after about nine times as many runs


@dataclass(frozen=True)
class Precision:
    count: int
    mean: float | None
    low: float | None  # None: fewer than `least` values, or one that is infinite
    high: float | None
    reached: bool


def precision(values: Sequence[float], share: float, least: int) -> Precision:
    """Is the half width of the mean's interval at most `share` of it?

    The interval is a confidence sequence: with 95 % it holds the mean after all numbers of runs from `least` (3 or more) on, so one may
    look after each run (Robbins 1970, normal mixture; with an estimated variance: Waudby-Smith et al., "Time-uniform central limit
    theory", 2021). It is 1.6 times as wide as that of a fixed number of runs. For few runs it is widened as Student's t is against the
    normal. No interval shows what no run has shown: a kind of run that is one in k is among the first 3k runs with 95 %, so `least` is at
    least so large.
    """
    n = len(values)
    known = np.asarray(values, np.float64)
    mean = float(known.mean()) if n and np.isfinite(known).all() else None
    if mean is None or n < max(3, least):
        return Precision(n, mean, None, None, False)
    deviation = float(known.std(ddof=1))
    mixture = math.sqrt((n + MIXTURE) / n**2 * math.log((n + MIXTURE) / (MIXTURE * ALPHA**2)))
    width = deviation * mixture * student_t(1 - ALPHA / 2, n - 1) / NORMAL
    return Precision(n, mean, mean - width, mean + width, width <= share * abs(mean))


@cache
def student_t(p: float, freedom: int) -> float:
    """The quantile of Student's t distribution, by bisection of its distribution function."""
    if freedom < 1 or not 0.5 <= p < 1:
        raise ValueError("p must be 0.5 to 1, and there is at least one degree of freedom")
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    low, high = 0.0, 4.0
    while _t_cdf(high, freedom) < p:
        high *= 2
    for _ in range(200):
        x = (low + high) / 2
        if _t_cdf(x, freedom) < p:
            low = x
        else:
            high = x
        if high - low <= 1e-12 * high:
            break
    return (low + high) / 2


def _t_cdf(t: float, freedom: int) -> float:
    """For whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4), t >= 0."""
    theta = math.atan(t / math.sqrt(freedom))
    cos2 = math.cos(theta) ** 2
    if freedom % 2:
        term = total = math.cos(theta) if freedom > 1 else 0.0
        for k in range(3, freedom - 1, 2):
            term *= (k - 1) / k * cos2
            total += term
        inside = 2 / math.pi * (theta + math.sin(theta) * total)
    else:
        term = total = 1.0
        for k in range(2, freedom, 2):
            term *= (k - 1) / k * cos2
            total += term
        inside = math.sin(theta) * total
    return 0.5 + inside / 2
