# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates: bytes in windows of time, with the covered part of each window.

The samples of a flow are cumulative byte counts. Between two samples the count is interpolated linearly. So adjacent windows add up
exactly to the difference of the counts. Two samples that are more than `gap_ns` apart have a gap between them: a window that overlaps a gap
has no rate, and no sum. (Flent adds interpolated rates of the flows that have data at that time: in one of its public samples the sum is
0.32 Mbit/s and the true rate 0.84.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FULL = 0.999999  # coverage above which a window counts as fully covered; allows for rounding


@dataclass(frozen=True)
class Windows:
    """Bytes in each window; NaN if the window is not fully covered. `coverage` is the covered part, 0 to 1."""

    edges_ns: Ints
    bytes: Floats
    coverage: Floats

    def rate_bps(self) -> Floats:
        return np.asarray(self.bytes * 8e9 / np.diff(self.edges_ns))

    def total_rate_bps(self) -> float | None:
        """The rate over all windows; None if one of them is not fully covered."""
        span = int(self.edges_ns[-1] - self.edges_ns[0]) if len(self.edges_ns) > 1 else 0
        if not span or np.isnan(self.bytes).any():
            return None
        return float(self.bytes.sum() * 8e9 / span)


def gap_ns(interval_ns: int) -> int:
    """Two samples further apart than this have a gap between them. A few samples that are late on a busy host are none."""
    return 5 * interval_ns + 100_000_000


def edges(from_ns: int, to_ns: int, window_ns: int) -> Ints:
    """Edges of full windows from `from_ns` on; a shorter rest at the end is left out."""
    count = max(0, (to_ns - from_ns) // window_ns)
    return from_ns + np.arange(count + 1, dtype=np.int64) * window_ns


def bytes_rate(t_ns: NDArray[Any], counts: NDArray[Any], edges_ns: Ints, *, gap_ns: int) -> Windows:
    """`counts` are cumulative, at the sorted times `t_ns`. Of equal times the last count is used."""
    windows = max(0, len(edges_ns) - 1)
    t = np.asarray(t_ns, np.int64)
    c = np.asarray(counts, np.float64)  # exact below 2^53 bytes (9 petabytes)
    if len(t) > 1:
        last = np.append(np.diff(t) > 0, True)
        t, c = t[last], c[last]
    if windows == 0 or len(t) < 2:
        return Windows(edges_ns, np.full(windows, np.nan), np.zeros(windows))
    passed = np.interp(edges_ns, t, c)
    # Covered time up to each sample: the sum of the intervals that are not gaps.
    steps = np.diff(t)
    seen = np.concatenate([[0.0], np.cumsum(np.where(steps <= gap_ns, steps, 0))])
    coverage = np.diff(_seen_at(edges_ns, t, seen, steps <= gap_ns)) / np.diff(edges_ns)
    moved = np.diff(passed)
    # A count that decreases shows a restarted counter: the bytes in between are unknown.
    fell = np.concatenate([[0], np.cumsum(np.diff(c) < 0)])
    first = np.searchsorted(t, edges_ns[:-1], "right") - 1
    final = np.searchsorted(t, edges_ns[1:], "left")
    broken = fell[np.clip(final, 0, len(t) - 1)] > fell[np.clip(first, 0, len(t) - 1)]
    return Windows(edges_ns, np.where((coverage >= FULL) & ~broken, moved, np.nan), np.where(broken, 0.0, coverage))


def _seen_at(at: Ints, t: Ints, seen: Floats, good: NDArray[np.bool_]) -> Floats:
    """Covered time up to any time: it grows within an interval that is not a gap, and is constant elsewhere."""
    i = np.clip(np.searchsorted(t, at, "right") - 1, 0, len(t) - 1)
    inside = np.clip(at - t[i], 0, None)
    step_good = np.append(good, False)[i]
    return np.asarray(seen[i] + np.where(step_good & (at >= t[0]), inside, 0))


def sum_of_flows(flows: Sequence[Windows]) -> Windows:
    """The sum of flows in windows that are fully covered for each flow, NaN elsewhere; the coverage is that of the worst flow."""
    if not flows:
        raise ValueError("no flows to sum")
    if any(not np.array_equal(flow.edges_ns, flows[0].edges_ns) for flow in flows):
        raise ValueError("cannot add flows with different windows")
    return Windows(flows[0].edges_ns, np.sum([flow.bytes for flow in flows], axis=0), np.min([flow.coverage for flow in flows], axis=0))


def receiver_end(direction: str | None) -> int:
    """The receiving end of a flow: the far end (1) for an upload, the local end (0) for a download."""
    return 0 if direction == "down" else 1
