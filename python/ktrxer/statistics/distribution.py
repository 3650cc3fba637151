# SPDX-License-Identifier: MIT OR Apache-2.0
"""Distributions of samples, and selection of points for a plot with the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TAIL = 64  # samples at each end of a distribution that are always kept


def ecdf(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """The exact empirical distribution: each distinct value with the share of values at or below it."""
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    x, counts = np.unique(known, return_counts=True)
    return x, np.cumsum(counts) / max(1, len(known))


def thin_ecdf(x: Floats, share: Floats, most: int) -> tuple[Floats, Floats]:
    """Thins a distribution to about `most` points. The TAIL points at each end stay; between two other points at most 1/(most - 2 * TAIL)
    of the share is skipped."""
    if len(x) <= most or most <= 3 * TAIL:
        return x, share
    middle = np.searchsorted(share, np.linspace(0, 1, most - 2 * TAIL))
    kept = np.unique(np.concatenate([np.arange(TAIL), np.clip(middle, 0, len(x) - 1), np.arange(len(x) - TAIL, len(x))]))
    return x[kept], share[kept]


def envelope(y: Floats, most: int) -> NDArray[np.int64]:
    """The indices of at most about `most` samples to draw: the minimum and maximum of each of most / 2 slices, so that no spike is lost,
    and the ends of long gaps, so that no line crosses them."""
    count = len(y)
    if most < 4 or count <= most:
        return np.arange(count)
    starts = np.unique(np.linspace(0, count, most // 2, endpoint=False).astype(np.int64))
    gap = np.isnan(y)
    low = np.where(gap, np.inf, y)
    high = np.where(gap, -np.inf, y)
    kept = [_first_of(low, starts, np.minimum), _first_of(high, starts, np.maximum)]
    # Keep the last sample before and the first sample after each long gap.
    edge = gap & ~(np.concatenate([[False], gap[:-1]]) & np.concatenate([gap[1:], [False]]))
    run = np.diff(np.concatenate([[0], gap.astype(np.int8), [0]]))
    begins, ends = np.nonzero(run == 1)[0], np.nonzero(run == -1)[0]
    long = ends - begins > 2 * count / most
    marks = np.concatenate([begins[long], ends[long] - 1])
    return np.unique(np.concatenate([*kept, marks[edge[marks]]])).astype(np.int64)


def _first_of(values: Floats, starts: NDArray[np.int64], best: Any) -> NDArray[np.int64]:
    """The first index of the best value in each slice."""
    extreme = best.reduceat(values, starts)
    lengths = np.diff(np.append(starts, len(values)))
    hit = np.nonzero(values == np.repeat(extreme, lengths))[0]
    stretch = np.searchsorted(starts, hit, "right") - 1
    return hit[np.unique(stretch, return_index=True)[1]]
