# SPDX-License-Identifier: MIT OR Apache-2.0
"""Capacity of the narrow link from packet pairs: the estimators of `ktrxer pair`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ktrxer.methods import native


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


@dataclass(frozen=True)
class Modes:
    modes_bit_s: tuple[float, ...]  # the densest first
    capacity_bit_s: float | None = None  # of the densest mode above the asymptotic dispersion rate
    capacity_low_bit_s: float | None = None  # the ends of that mode
    capacity_high_bit_s: float | None = None


def modes(gaps_ns: npt.ArrayLike, ip_bytes: int, adr_bit_s: float, resolution_ns: int = 1) -> Modes:
    """The local modes of many pairs, and the one above the asymptotic dispersion rate of long trains (pathrate)."""
    bits = ctypes.c_uint64(8 * native.uint32(ip_bytes).value)
    found = native.call("modes", *native.numbers(gaps_ns, np.int64), bits, native.uint32(resolution_ns), ctypes.c_double(adr_bit_s))
    peaks = tuple(float(value) for name, value in found if name == "mode_bit_s")
    return Modes(peaks, **{name: float(value) for name, value in found if name != "mode_bit_s"})


@dataclass(frozen=True)
class Coalescing:
    period_ns: float  # 0: not known
    together: int  # pairs of which one interrupt took both packets
    apart: int
    separate: bool  # the gaps form two groups


def coalescing(one: npt.ArrayLike, two: npt.ArrayLike) -> Coalescing:
    """The period of a receiver's interrupts by pairs of two sizes (Salehin, Sahasrabudhe, Rojas-Cessa 2018). Rows as those of pairs()."""
    return native.result(Coalescing, native.call("coalescing", *native.pair_times(one), *native.pair_times(two)))
