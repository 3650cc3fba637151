# SPDX-License-Identifier: MIT OR Apache-2.0
"""Capacity of the narrow link from packet pairs: the estimators of `ktrxer pair`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ktrxer.statistics import native


@dataclass(frozen=True)
class Pairs:
    """Figures are None where the reading does not support them."""

    reading: str
    usable: int
    lost: int
    reordered: int
    coalescing_period_ns: float | None = None
    capacity_bit_s: float | None = None
    capacity_low_bit_s: float | None = None  # interval of 95 %
    capacity_high_bit_s: float | None = None
    undisturbed: int | None = None
    link_bit_s: float | None = None
    overhead_bytes: float | None = None
    skew_ppm: float | None = None


def pairs(large: npt.ArrayLike, small: npt.ArrayLike, large_bytes: int, small_bytes: int, resolution_ns: int = 1) -> Pairs:
    """CapProbe by pairs of two sizes. Each row: both send times and both arrivals in integer nanoseconds, 0 for an unknown time."""
    sizes = native.uint32(large_bytes), native.uint32(small_bytes)
    found = native.call("pairs", *native.pair_times(large), sizes[0], *native.pair_times(small), sizes[1], native.uint32(resolution_ns))
    return native.result(Pairs, found)


def modes(gaps_ns: npt.ArrayLike, ip_bytes: int, resolution_ns: int = 1) -> tuple[float, ...]:
    """The local modes in bit/s of many pairs, the densest first (pathrate). Cross traffic makes modes below the rate of long trains."""
    bits = ctypes.c_uint64(8 * native.uint32(ip_bytes).value)
    found = native.call("modes", *native.numbers(gaps_ns, np.int64), bits, native.uint32(resolution_ns))
    return tuple(float(value) for _, value in found)


@dataclass(frozen=True)
class Coalescing:
    period_ns: float  # 0: not known
    together: int  # pairs of which one interrupt took both packets
    apart: int
    separate: bool  # the gaps form two groups


def coalescing(one: npt.ArrayLike, two: npt.ArrayLike) -> Coalescing:
    """The period of a receiver's interrupts by pairs of two sizes (Salehin, Sahasrabudhe, Rojas-Cessa 2018). Rows as those of pairs()."""
    return native.result(Coalescing, native.call("coalescing", *native.pair_times(one), *native.pair_times(two)))
