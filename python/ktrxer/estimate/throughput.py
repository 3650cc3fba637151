# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates as bytes over windows, with what part of each window was seen.

A flow is known at instants, by the count of bytes so far. Between two instants that count is taken to grow evenly, so a window gets the
bytes that passed in it, and windows side by side add up to exactly what the counts differ by: nothing is averaged, nothing made up. Where
two instants are further apart than `gap_ns`, nothing is known between them; a window that has such a part has no rate, and no sum.
(Flent adds interpolated rates of whichever flows are present: in one of its public samples the sum is 0.32 Mbit/s for a true 0.84.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FULL = 0.999999  # coverage from which a window counts as seen: rounding, not generosity


@dataclass(frozen=True)
class Windows:
    """Bytes in each window; NaN where it was not seen in full. `coverage` is the part that was seen, 0 to 1."""

    edges_ns: Ints
    bytes: Floats
    coverage: Floats

    def rate_bps(self) -> Floats:
        return np.asarray(self.bytes * 8e9 / np.diff(self.edges_ns))

    def total_rate_bps(self) -> float | None:
        """Over all windows together; None when one of them was not seen."""
        span = int(self.edges_ns[-1] - self.edges_ns[0]) if len(self.edges_ns) > 1 else 0
        if not span or np.isnan(self.bytes).any():
            return None
        return float(self.bytes.sum() * 8e9 / span)


def edges(from_ns: int, to_ns: int, window_ns: int) -> Ints:
    """Whole windows from `from_ns` on; a rest shorter than a window is left out."""
    count = max(0, (to_ns - from_ns) // window_ns)
    return from_ns + np.arange(count + 1, dtype=np.int64) * window_ns


def bytes_rate(t_ns: NDArray[Any], counts: NDArray[Any], edges_ns: Ints, *, gap_ns: int) -> Windows:
    """`counts` so far at the times `t_ns` (sorted). Equal times keep the last count."""
    windows = max(0, len(edges_ns) - 1)
    t = np.asarray(t_ns, np.int64)
    c = np.asarray(counts, np.float64)  # exact below 2^53 bytes: nine petabytes
    if len(t) > 1:
        last = np.append(np.diff(t) > 0, True)
        t, c = t[last], c[last]
    if windows == 0 or len(t) < 2:
        return Windows(edges_ns, np.full(windows, np.nan), np.zeros(windows))
    passed = np.interp(edges_ns, t, c)
    # Time seen up to each instant: the steps that are no gaps.
    steps = np.diff(t)
    seen = np.concatenate([[0.0], np.cumsum(np.where(steps <= gap_ns, steps, 0))])
    coverage = np.diff(_seen_at(edges_ns, t, seen, steps <= gap_ns)) / np.diff(edges_ns)
    moved = np.diff(passed)
    # A count that falls back is a counter that began anew: what passed meanwhile is not known.
    fell = np.concatenate([[0], np.cumsum(np.diff(c) < 0)])
    first = np.searchsorted(t, edges_ns[:-1], "right") - 1
    final = np.searchsorted(t, edges_ns[1:], "left")
    broken = fell[np.clip(final, 0, len(t) - 1)] > fell[np.clip(first, 0, len(t) - 1)]
    return Windows(edges_ns, np.where((coverage >= FULL) & ~broken, moved, np.nan), np.where(broken, 0.0, coverage))


def _seen_at(at: Ints, t: Ints, seen: Floats, good: NDArray[np.bool_]) -> Floats:
    """The same for any time: within a good step it grows with time, elsewhere it stands."""
    i = np.clip(np.searchsorted(t, at, "right") - 1, 0, len(t) - 1)
    inside = np.clip(at - t[i], 0, None)
    step_good = np.append(good, False)[i]
    return np.asarray(seen[i] + np.where(step_good & (at >= t[0]), inside, 0))


def sum_of_flows(flows: Sequence[Windows]) -> Windows:
    """The sum where every flow was seen; NaN elsewhere, and the coverage of the worst."""
    if not flows:
        raise ValueError("a sum of no flows")
    if any(not np.array_equal(flow.edges_ns, flows[0].edges_ns) for flow in flows):
        raise ValueError("flows over different windows cannot be added")
    return Windows(flows[0].edges_ns, np.sum([flow.bytes for flow in flows], axis=0), np.min([flow.coverage for flow in flows], axis=0))


def receiver_end(direction: str | None) -> int:
    """Which end of a flow knows what arrived: of an upload the far one (1), of a download ours (0)."""
    return 0 if direction == "down" else 1
