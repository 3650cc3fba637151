# SPDX-License-Identifier: MIT OR Apache-2.0
"""Student's t distribution for any number of degrees of freedom from 1 on."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

_ANGLES = np.linspace(0, math.pi / 2, 4097)


def _inside(freedom: float) -> NDArray[np.float64]:
    """The probability that |t| is at most sqrt(freedom) * tan(angle), for each of _ANGLES: t has that angle with a density proportional to
    cos(angle)^(freedom - 1)."""
    if freedom < 1:
        raise ValueError("the degrees of freedom must be at least 1")
    density = np.maximum(np.cos(_ANGLES), 0) ** (freedom - 1)
    made = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return np.asarray(made / made[-1])


@cache
def student_t(p: float, freedom: float) -> float:
    """The quantile for the probability `p`."""
    if not 0.5 <= p < 1:
        raise ValueError("p must be 0.5 to 1")
    return math.sqrt(freedom) * math.tan(np.interp(2 * p - 1, _inside(freedom), _ANGLES))


def outside(t: float, freedom: float) -> float:
    """The probability of a value that is farther from zero than `t`."""
    return float(1 - np.interp(math.atan(abs(t) / math.sqrt(freedom)), _ANGLES, _inside(freedom)))
