# SPDX-License-Identifier: MIT OR Apache-2.0
"""IP-layer capacity from the sub-intervals of a test that fills the path: the metric of `ktrxer capacity` (RFC 9097)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from ktrxer.statistics import native

UNKNOWN = (1 << 64) - 1
FIGURES = 64


@dataclass(frozen=True)
class CapacityInterval:
    """The counts of its receiver. Delays are above the least one of the test; None: not known."""

    datagrams: int
    ip_bytes: int
    lasts_ns: int
    lost: int = 0
    reordered: int = 0
    duplicates: int = 0
    variation_min_ns: int | None = None
    variation_max_ns: int | None = None
    rtt_min_ns: int | None = None
    rtt_max_ns: int | None = None


@dataclass(frozen=True)
class CapacityMode:
    """The maximum over `count` sub-intervals from `first` on."""

    first: int
    count: int
    at: int  # the sub-interval of the maximum
    bit_s: float
    loss: float | None = None  # of that one
    variation_min_ns: int | None = None
    variation_max_ns: int | None = None
    rtt_min_ns: int | None = None
    rtt_max_ns: int | None = None


@dataclass(frozen=True)
class IpCapacity:
    maximum: CapacityMode
    modes: tuple[CapacityMode, ...]  # of the first sub-intervals and of the rest; empty without first_mode
    mean_bit_s: float
    datagrams: int
    lost: int
    reordered: int
    duplicates: int
    late: int  # sub-intervals that lasted longer than late_ns
    rising: bool  # the last sub-interval is the maximum, and far above those before
    unfilled: bool  # neither losses nor delay variation from low_ns on: the load did not fill the path
    mean_loss: float | None = None
    variation_min_ns: int | None = None
    variation_max_ns: int | None = None
    rtt_min_ns: int | None = None
    rtt_max_ns: int | None = None


def ip_capacity(
    intervals: Iterable[CapacityInterval], first_mode: int = 0, low_ns: int = 30_000_000, late_ns: int = 1_045_000_000
) -> IpCapacity:
    """`first_mode`: so many sub-intervals are the first of two modes. A sub-interval that lasted longer than `late_ns` counts with the next
    one, because the receiver stood still; the default is that of sub-intervals of 1 s."""
    rows = [[UNKNOWN if value is None else value for value in astuple(interval)] for interval in intervals]
    for row in rows:
        if not all(0 <= value <= UNKNOWN for value in row):
            raise ValueError(f"a count or a time is negative, or above 2^64 - 1: {row}")
    times, count = native.numbers(np.array(rows, np.uint64), np.uint64)[0], ctypes.c_size_t(len(rows))
    limits = ctypes.c_uint64(low_ns), ctypes.c_uint64(late_ns)
    found = native.call("ip_capacity", times, count, native.uint32(first_mode), *limits, most=FIGURES)
    first, whole, *modes = native.groups(found, "first")
    made = tuple(native.result(CapacityMode, mode) for mode in modes)
    return native.result(IpCapacity, first, maximum=native.result(CapacityMode, whole), modes=made)
