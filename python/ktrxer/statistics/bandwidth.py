# SPDX-License-Identifier: MIT OR Apache-2.0
"""Available bandwidth of the tight link: the estimator of `ktrxer abw`, which plans the next probes by those before them."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ktrxer.statistics import native

METHODS = ("auto", "slops", "chirp")


@dataclass(frozen=True)
class Plan:
    """`trains` in each of the flows, one every period_ns. A second flow begins half a period after the first."""

    step: str
    flows: int
    trains: int
    packets: int  # of a train
    ip_bytes: int
    gap_ns: int  # between two packets; 0: back to back
    period_ns: int
    shrink: float  # each gap as a part of the one before


@dataclass(frozen=True)
class Range:
    """Figures are None where the reading does not support them."""

    reading: str
    packets: int
    bytes: int
    lost: int
    late: int
    capacity_bit_s: float | None = None
    by: str | None = None  # the step that gave the range
    low_bit_s: float | None = None
    high_bit_s: float | None = None
    misfit: float | None = None  # of the streams to a path of FIFO links, in standard errors
    line_bit_s: float | None = None  # reading `shaped`: a burst passes at this rate
    sustained_bit_s: float | None = None  # and after the bucket is empty at this one
    bucket_bytes: float | None = None


class AvailableBandwidth:
    """Send what `plan` says, give the times to take(), until there is no plan; then result() has the range."""

    def __init__(
        self, method: str = "auto", large_bytes: int = 1500, small_bytes: int = 52, max_load_bit_s: float = 0, resolution_ns: int = 1
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"{method!r} is none of {', '.join(METHODS)}")
        library = native.library()
        sizes = native.uint32(large_bytes), native.uint32(small_bytes)
        made = library.ktrxer_py_abw_new(METHODS.index(method), *sizes, ctypes.c_double(max_load_bit_s), native.uint32(resolution_ns))
        if not made:
            raise ValueError(f"packets of {large_bytes} and {small_bytes} bytes do not fit each other")
        self._abw = ctypes.c_void_p(made)
        weakref.finalize(self, library.ktrxer_py_abw_free, self._abw)

    @property
    def plan(self) -> Plan | None:
        found = native.call("abw_next", self._abw)
        return native.result(Plan, found) if found else None

    def take(self, sent_ns: npt.ArrayLike, arrived_ns: npt.ArrayLike) -> None:
        """Times of all packets of the plan in integer nanoseconds: flow after flow, train after train; 0: not known, or lost."""
        sent, count = native.numbers(sent_ns, np.uint64)
        arrived, arrivals = native.numbers(arrived_ns, np.uint64)
        if count.value != arrivals.value:
            raise ValueError(f"{count.value} send times, {arrivals.value} arrivals")
        code = native.function("abw_take")(self._abw, sent, arrived, count)
        if code < 0:
            native.fail(code, "" if self.plan is None else f"{count.value} times are not those of the plan: {self.plan}")

    def result(self) -> Range:
        """ValueError while there is a plan."""
        if self.plan is not None:
            raise ValueError(f"the measurement is not over: {self.plan}")
        return native.result(Range, native.call("abw_result", self._abw))
