# SPDX-License-Identifier: MIT OR Apache-2.0
"""One-way delays from round trips: the far clock's offset is confined by them, and each figure carries how well.

A probe leaves at t1 by our clock and comes at t2 by theirs; its answer leaves at t3 and comes at t4. No delay is negative, so
theirs minus ours lies between t3 - t4 and t2 - t1: for F = t2 - t1 and the round trip R = (t4 - t1) - (t3 - t2), between F - R and F.
All probes together confine a line (two clocks of constant rate) to a polygon; Moon, Skelly, Towsley, "Estimation and Removal of Clock
Skew from Network Delay Measurements" (INFOCOM 1999), has the one-sided form. Here it is two-sided, so there is a bound, too: at any
time the offset lies between the polygon's lowest and highest line, and the middle is at most half that width wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SKEW_MOST = 1e-3  # of two crystals: 1000 ppm is far beyond any


@dataclass(frozen=True)
class OneWay:
    up_ns: Floats
    down_ns: Floats
    bound_ns: Floats  # of both: what one has too much the other has too little
    offset_ns: float  # theirs minus ours, in the middle of the run, relative to `base_ns`
    offset_bound_ns: float
    base_ns: int


def one_way(
    sent_ns: NDArray[Any],
    rtt_ns: NDArray[Any],
    far_ns: NDArray[np.int64],
    own_queue_ns: NDArray[Any] | None = None,
    far_queue_ns: NDArray[Any] | None = None,
) -> OneWay | None:
    """Of probes that were answered; times may be in any order. None: too few, or the clocks were stepped (no line fits).

    The waits in the two hosts' own queues (nanoseconds; NaN where one is not known) are part of the delays. They do not widen the interval
    of the offset: F and R are taken without them for it."""
    if len(sent_ns) < 2:
        return None
    own, far = (np.nan_to_num(np.asarray(q, np.float64)) if q is not None else 0.0 for q in (own_queue_ns, far_queue_ns))
    sent = np.asarray(sent_ns, np.int64)
    whole_trip = np.asarray(rtt_ns, np.float64)
    r = np.maximum(whole_trip - own - far, 0.0)
    # Whole numbers first: unix time in nanoseconds does not fit a double.
    whole = np.asarray(far_ns, np.int64) - sent
    base = int(whole.min())
    with_queue = (whole - base).astype(np.float64)
    f = with_queue - own
    span = max(float(sent.max() - sent.min()), 1.0)
    x = (sent - sent.min()).astype(np.float64) / span  # 0 to 1, for the sake of arithmetic
    band = _band(x, f - r, f, SKEW_MOST * span)
    if band is None:
        return None
    low, high = band
    middle, half = (low + high) / 2, (high - low) / 2
    # The highest line at each time is convex in time, so it lies below the straight line between its ends; the lowest likewise above.
    up = with_queue - (middle[0] + (middle[1] - middle[0]) * x)
    bound = half[0] + (half[1] - half[0]) * x
    return OneWay(up, whole_trip - up, bound, float(middle.mean()), float(half.mean()), base)


def _band(x: Floats, lower: Floats, upper: Floats, steepest: float) -> tuple[Floats, Floats] | None:
    """The lowest and the highest value at x = 0 and x = 1 of any line that runs above all `lower` and below all `upper`."""
    # Only the corners of their hulls confine a line.
    below, above = _upper_hull(x, lower), _upper_hull(x, -upper)
    px = np.concatenate([x[below], x[above]])
    py = np.concatenate([lower[below], upper[above]])
    is_upper = np.arange(len(px)) >= len(below)
    # A linear function on a polygon is extreme at a corner: a line through two of the points, or through one at the steepest slope.
    i, j = np.triu_indices(len(px), 1)
    apart = px[i] != px[j]
    i, j = i[apart], j[apart]
    through = (py[j] - py[i]) / (px[j] - px[i])
    slope = np.concatenate([through, np.full(len(px), steepest), np.full(len(px), -steepest)])
    at0 = np.concatenate([py[i] - through * px[i], py - steepest * px, py + steepest * px])
    gentle = np.abs(slope) <= steepest
    slope, at0 = slope[gentle], at0[gentle]
    # The four stamps of a probe are whole nanoseconds, each rounded by up to a half. The rest is the error of doubles of this size.
    slack = 2.0 + 1e-9 * float(np.abs(py).max())
    values = at0[:, None] + slope[:, None] * px[None, :]
    good = np.where(is_upper, values <= py + slack, values >= py - slack).all(axis=1)
    if not good.any():
        return None
    ends = np.stack([at0[good], at0[good] + slope[good]])
    return ends.min(axis=1), ends.max(axis=1)


def _upper_hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of the corners of the upper convex hull, from left to right."""
    order = np.lexsort((y, x))
    xs, ys = x[order], y[order]
    # The hull of the highest point of each slice first, at little cost; then that of what rises above it: the same as of all.
    slices = np.minimum((xs * 256).astype(np.int64), 255)
    highest = np.lexsort((-ys, slices))
    coarse = highest[np.unique(slices[highest], return_index=True)[1]]
    chain = _chain(xs, ys, np.union1d(coarse, [0, len(xs) - 1]))
    risen = np.nonzero(ys > np.interp(xs, xs[chain], ys[chain]))[0]
    return np.asarray(order[_chain(xs, ys, np.union1d(chain, risen))])


def _chain(x: Floats, y: Floats, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Andrew's monotone chain."""
    kept: list[int] = []
    for k in candidates.tolist():
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (x[b] - x[a]) * (y[k] - y[a]) - (y[b] - y[a]) * (x[k] - x[a]) < 0:
                break
            kept.pop()
        kept.append(k)
    return np.asarray(kept, np.int64)
