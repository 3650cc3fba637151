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

_LOST = (1 << 63) - 1  # BOUND_LOST
_PARTS = 10**3  # of the unit, as a whole number: nanoseconds of a microsecond


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


def of_median(values: NDArray[Any], unknown: int = 0, delayed: int = 0) -> float | None:
    """The bound of the p50 (latency.delays) of delays in any unit, in that unit; those of lost probes are infinite. `unknown`: delays that
    are missing. `delayed`: so many of the values may be too long. None: no bound."""
    ns = np.sort(np.where(np.isinf(values), float(_LOST), np.rint(np.asarray(values, np.float64) * _PARTS)))
    whole = np.where(ns >= _LOST, np.int64(_LOST), np.minimum(ns, _LOST / 2).astype(np.int64))
    found = dict(native.call("median_bound", *native.numbers(whole, np.int64), ctypes.c_uint64(unknown), ctypes.c_uint64(delayed)))
    bound = found.get("bound")
    return float(bound) / _PARTS if bound is not None else None


def of_loss(sent: int, lost: int, unknown: int = 0, unsent: int = 0) -> Bound | None:
    """Percent. `unknown` of the lost probes may have passed the path, `unsent` further ones never left the host. None: none was sent."""
    found = native.call("loss_bound", *(ctypes.c_uint64(n) for n in (sent, lost, unknown, unsent)))
    return native.result(Bound, found) if found else None


def of_rate(rate: float, uncovered_ns: int, whole_ns: int) -> float | None:
    """Unit of the rate. The rate in the time without counts is between 0 and twice the rate. None: no bound."""
    found = native.call("rate_bound", ctypes.c_double(rate), ctypes.c_uint64(uncovered_ns), ctypes.c_uint64(whole_ns))
    return float(found[0][1]) if found else None
