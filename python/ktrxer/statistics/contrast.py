# SPDX-License-Identifier: MIT OR Apache-2.0
"""A linear contrast of the means of several groups with unequal variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ktrxer.statistics.difference import RUNS_LEAST
from ktrxer.statistics.student import outside, student_t


@dataclass(frozen=True)
class Contrast:
    """`low`, `high` and `p` are None where a group has fewer than RUNS_LEAST values."""

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None  # of a contrast at least as large where there is none


def contrast(groups: Sequence[Sequence[float]], weights: Sequence[float], level: float = 0.95) -> Contrast:
    """The sum of `weights` times the means of the groups. Its interval is that of Student's t with the degrees of freedom of Satterthwaite
    (Biometrics Bulletin 2, 1946); with the weights 1 and -1 it is Welch's. All values are finite; a group has at least one."""
    arrays = [np.asarray(one, np.float64) for one in groups]
    if len(arrays) != len(weights) or not all(len(one) and np.isfinite(one).all() for one in arrays):
        raise ValueError("a group is empty or has a value that is not finite, or the weights are of another number")
    value = float(sum(weight * one.mean() for weight, one in zip(weights, arrays, strict=True)))
    if min(map(len, arrays)) < RUNS_LEAST:
        return Contrast(value)
    parts = [weight**2 * float(one.var(ddof=1)) / len(one) for weight, one in zip(weights, arrays, strict=True)]
    error = math.sqrt(sum(parts))
    size = max(abs(weight * float(one.mean())) for weight, one in zip(weights, arrays, strict=True))
    if error <= 1e-12 * max(size, 1e-300):  # all runs of a group are equal, as in virtual time with one seed
        return Contrast(value, value, value, 0.0 if abs(value) > 1e-12 * size else 1.0)
    freedom = error**4 / sum(part**2 / (len(one) - 1) for part, one in zip(parts, arrays, strict=True))
    width = student_t((1 + level) / 2, freedom) * error
    return Contrast(value, value - width, value + width, outside(value / error, freedom))
