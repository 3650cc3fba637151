# SPDX-License-Identifier: MIT OR Apache-2.0
"""One-way delays from round trips. The round trips limit the offset of the far clock; each delay has an uncertainty.

A probe leaves at t1 by the local clock and arrives at t2 by the far one; its answer leaves at t3 and arrives at t4. No delay is negative,
so the offset (far minus local) lies between t3 - t4 and t2 - t1: for F = t2 - t1 and R = (t4 - t1) - (t3 - t2), between F - R and F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.estimate import clock_offset
from ktrxer.estimate.clock_offset import RATE, STAMP_ERROR_NS, Limits

Floats = NDArray[np.float64]

DWELL_NS = 100e3  # assumed upper limit of t3 - t2, which is not recorded; the uncertainty of t4


@dataclass(frozen=True)
class OneWay:
    up_ns: Floats  # NaN: the round trip contradicts its neighbours
    down_ns: Floats
    bound_ns: Floats  # uncertainty of both: an error of one delay is the opposite error of the other
    steps: int  # of one clock against the other
    offset_ns: float  # far minus local, the mean over the probes, relative to `base_ns`
    base_ns: int


def one_way(
    sent_ns: NDArray[Any],
    rtt_ns: NDArray[Any],
    far_ns: NDArray[np.int64],
    own_queue_ns: NDArray[Any] | None = None,
    far_queue_ns: NDArray[Any] | None = None,
    adjusted_ns: NDArray[Any] | None = None,
    free_running: bool = False,
) -> OneWay | None:
    """One-way delays of answered probes, in any order of time. None if there are too few probes.

    The delays in the two hosts' own queues (nanoseconds; NaN for an unknown one) are part of the one-way delays. They do not widen the
    interval of the offset, because its limits are computed without them.

    `adjusted_ns` is the kernels' adjustment of the far clock minus that of the local clock; it is subtracted from the far times. With
    `free_running` it contains all adjustments, and only the rates of the two oscillators remain."""
    count = len(sent_ns)
    if count < 2:
        return None
    order = np.argsort(np.asarray(sent_ns, np.int64), kind="stable")
    sent = np.asarray(sent_ns, np.int64)[order]
    own, far = (np.nan_to_num(np.asarray(q, np.float64))[order] if q is not None else np.zeros(count) for q in (own_queue_ns, far_queue_ns))
    trip = np.asarray(rtt_ns, np.float64)[order]
    # Subtract as integers first: unix time in nanoseconds does not fit into a double.
    whole = np.asarray(far_ns, np.int64)[order] - sent
    # The adjustments were read at the arrival of the answer; a slew may have changed the clocks since t1.
    widen = np.zeros(count) if adjusted_ns is None else RATE * trip + STAMP_ERROR_NS
    if adjusted_ns is not None:
        whole = whole - np.nan_to_num(np.asarray(adjusted_ns, np.float64))[order].astype(np.int64)
    base = int(whole.min())
    f = (whole - base).astype(np.float64)
    t1 = (sent - sent[0]).astype(np.float64)
    # Stamps have a resolution of one nanosecond.
    limits = Limits(t1 + own, f - own + 1 + widen, t1 + trip, f - np.maximum(trip - far, own) - 1 - RATE * DWELL_NS - widen)
    by_high = np.argsort(limits.high_at, kind="stable")
    segment = np.empty(count, np.int64)
    segment[by_high] = clock_offset.segments(limits.part(by_high))
    up, bound, offset = (np.full(count, np.nan) for _ in range(3))
    for number in range(int(segment.max()) + 1):
        mine = by_high[segment[by_high] == number]
        if not len(mine):
            continue
        at = clock_offset.interval(limits.part(mine), t1[mine], free_running)
        # The probe's own round trip also limits the offset, because no delay is negative. The queues are part of the delays.
        low = np.maximum(at.low, f[mine] - trip[mine] - RATE * trip[mine])
        high = np.minimum(at.high, f[mine] + RATE * trip[mine])
        good = low <= high + STAMP_ERROR_NS
        low, high = np.minimum(low, high), np.maximum(low, high)
        middle = np.clip(at.middle, low, high)
        # The offset changes during the transmission of the probe.
        half = np.maximum(high - middle, middle - low) + RATE * trip[mine]
        up[mine] = np.where(good, f[mine] - middle, np.nan)
        bound[mine] = np.where(good, half, np.nan)
        offset[mine] = middle
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    steps = max(int(segment.max()), 0)
    mean = float(np.nanmean(offset)) if np.any(segment >= 0) else float("nan")
    return OneWay(up[back], (trip - up)[back], bound[back], steps, mean, base)
