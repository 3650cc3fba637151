# SPDX-License-Identifier: MIT OR Apache-2.0
"""One-way delays from round trips. The round trips limit the offset of the far clock; each delay has an uncertainty.

A probe leaves at t1 by the local clock and arrives at t2 by the far one; its answer arrives at t4. The estimator is that of `ktrxer stamp`
(methods/estimate/one_way_delays.h, docs/decisions/0038-clock-offset.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics import native

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OneWay:
    up_ns: Floats  # NaN: the round trip contradicts its neighbours
    down_ns: Floats
    bound_ns: Floats  # uncertainty of both: an error of one delay is the opposite error of the other
    steps: int  # of one clock against the other


def one_way(
    sent_ns: NDArray[Any],
    rtt_ns: NDArray[Any],
    far_ns: NDArray[np.int64],
    own_queue_ns: NDArray[Any] | None = None,
    far_queue_ns: NDArray[Any] | None = None,
    adjusted_ns: NDArray[Any] | None = None,
    free_running: bool = False,
    dwell_ns: NDArray[Any] | None = None,
) -> OneWay | None:
    """One-way delays of answered probes, in any order of time. None if there are too few probes.

    The delays in the two hosts' own queues (nanoseconds; NaN for an unknown one) are part of the one-way delays. They do not widen the
    interval of the offset, because its limits are computed without them.

    `adjusted_ns` is the kernels' adjustment of the far clock minus that of the local clock; it is subtracted from the far times. With
    `free_running` it contains all adjustments, and only the rates of the two oscillators remain. `dwell_ns` is the time in the reflector
    (NaN for an unknown one)."""
    count = len(sent_ns)
    if count < 2:
        return None
    sent, trip = (np.asarray(values, np.int64) for values in (sent_ns, rtt_ns))
    held = np.zeros(count, np.int64) if dwell_ns is None else np.nan_to_num(dwell_ns).astype(np.int64)
    order = np.argsort(sent + trip + held, kind="stable")
    rows = np.zeros((count, 7), np.int64)
    for place, values in enumerate((sent, trip, np.asarray(far_ns, np.int64), own_queue_ns, far_queue_ns, adjusted_ns, held)):
        if values is not None:
            rows[:, place] = (values if values.dtype.kind == "i" else np.nan_to_num(values))[order]
    made = np.empty((count, 3), np.int64)
    steps = native.count(
        "one_way", *native.numbers(rows, np.int64, width=7), native.uint32(adjusted_ns is not None), native.uint32(free_running),
        native.numbers(made, np.int64)[0],
    )  # fmt: skip
    delays = np.empty((count, 3))
    delays[order] = np.where(made == native.MISSING, np.nan, made)
    return OneWay(delays[:, 0], delays[:, 1], delays[:, 2], steps)
