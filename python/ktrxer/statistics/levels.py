# SPDX-License-Identifier: MIT OR Apache-2.0
"""Did a rate or a delay change from one level to another and stay there? (methods/estimate/levels.h)"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics import native

SEGMENT_BYTES = 1500


@dataclass(frozen=True)
class Level:
    from_ns: int
    to_ns: int
    median: float


def window_ns(begin_ns: int, end_ns: int, sample_ns: int) -> int:
    """Length of the windows of a rate between two times, with samples each `sample_ns`."""
    ((_, found),) = native.call("levels_window", *(ctypes.c_uint64(max(0, n)) for n in (begin_ns, end_ns, sample_ns)))
    return int(found)


def levels(values: NDArray[np.float64], begin_ns: int, window_ns: int, packet_bytes: int = 0, first: float | None = None) -> list[Level]:
    """Of a delay, or of a rate in bit/s (`packet_bytes` of its packets) whose mean in the second before `begin_ns` is `first`. The values
    are those of windows, none is missing. Empty: there was no change."""
    whole = np.ascontiguousarray(values, np.float64)
    found = native.call(
        "levels", whole.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(whole)), ctypes.c_uint64(begin_ns), ctypes.c_uint64(window_ns),
        ctypes.c_uint32(packet_bytes), ctypes.c_double(-1.0 if first is None else first),
    )  # fmt: skip
    return [native.result(Level, part) for part in native.groups(found, "from_ns")[1:]]
