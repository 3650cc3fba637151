# SPDX-License-Identifier: MIT OR Apache-2.0
"""Decides whether a mean is known well enough, where each run is looked at, and the first narrow interval ends the series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ktrxer.statistics.latency import NORMAL
from ktrxer.statistics.student import student_t

ALPHA = 0.05
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
