# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error bounds and sampling intervals of headline figures (methods/estimate/error_bound.h, decision 77)."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics import native


@dataclass(frozen=True)
class Bound:
    """A figure, how far it can be from what the path did (None: no bound), and its 95 % sampling interval (None: too few samples)."""

    value: float
    bound: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Tolerances:
    """A bound up to the larger of so many percent of the figure and `least_ns` is tolerated, for loss up to `loss_points`."""

    default_percent: float
    least_ns: float
    loss_points: float


@functools.cache
def tolerances() -> Tolerances:
    return native.result(Tolerances, native.call("tolerances"))


def of_median(values: NDArray[Any], unknown: int = 0) -> Bound | None:
    """Of delays in nanoseconds, and `unknown` others without a value. None: no delay is known."""
    found = native.call("median_bound", *native.numbers(np.sort(np.asarray(values)), np.int64), ctypes.c_uint64(unknown))
    return native.result(Bound, found) if found else None


def of_loss(sent: int, lost: int, unknown: int = 0, unsent: int = 0) -> Bound | None:
    """Percent. `unknown` of the lost probes may have passed the path, `unsent` further ones never left the host. None: none was sent."""
    found = native.call("loss_bound", *(ctypes.c_uint64(n) for n in (sent, lost, unknown, unsent)))
    return native.result(Bound, found) if found else None


def of_rate(rate: float, uncovered_ns: int, whole_ns: int) -> float | None:
    """Unit of the rate. The rate in the time without counts is between 0 and twice the rate. None: no bound."""
    found = native.call("rate_bound", ctypes.c_double(rate), ctypes.c_uint64(uncovered_ns), ctypes.c_uint64(whole_ns))
    return float(found[0][1]) if found else None
