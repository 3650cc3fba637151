# SPDX-License-Identifier: MIT OR Apache-2.0
"""The packets that arrived, against claims of outages of bytes and of levels of a rate. All times are of CLOCK_REALTIME of the client, in
nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ktrxer_lab.truth.path import Truth

CLOCK_NS = 10_000_000  # the error of a time of the far host, and of a sample
EDGE_NS = 600_000_000  # windows of a level's rate are 0.4 s, and samples 0.2 s

Row = Sequence[int]  # time, bytes so far, bytes in order


@dataclass(frozen=True)
class Still:
    """No byte of the flows of a direction arrived, or of one of several."""

    direction: str
    from_ns: int
    low_ns: int
    high_ns: int | None
    part: bool = False


@dataclass(frozen=True)
class Level:
    direction: str
    from_ns: int
    to_ns: int
    mbps: float


def gaps(rows: Sequence[Row], begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """The times without a new byte, the time before the first one and that behind the last one included."""
    times = [begin_ns, *(row[0] for row in rows if begin_ns < row[0] < end_ns), end_ns]
    yield from pairwise(times)


def is_true(one: Still, rows: Sequence[Row], begin_ns: int, end_ns: int) -> bool:
    """A gap contains the time that is certain, and is not longer than the upper bound."""
    last_ns = one.from_ns + one.low_ns
    for low, high in gaps(rows, begin_ns, end_ns):
        if low - CLOCK_NS <= one.from_ns and last_ns <= high + CLOCK_NS:
            return one.high_ns is None or high - low <= one.high_ns + CLOCK_NS
    return False


def level(one: Level, rows: Sequence[Row]) -> Truth | None:
    """The rate within the level, in Mbit/s, without its edges; None: too few rows."""
    inside = [row for row in rows if one.from_ns + EDGE_NS <= row[0] <= one.to_ns - EDGE_NS]
    if len(inside) < 3:
        return None
    seconds = (inside[-1][0] - inside[0][0]) / 1e9
    rate = (inside[-1][1] - inside[0][1]) * 8e-6 / seconds
    packet = 1500 * 8e-6 / seconds
    return Truth(rate - packet, rate + packet)


def highest(rows: Sequence[Row], window_ns: int, share: float) -> Truth | None:
    """The highest rate in a window of this length, times `share`, for any begin of the windows: the lowest and the highest of them."""
    if len(rows) < 3 or rows[-1][0] - rows[0][0] < 2 * window_ns:
        return None
    found = []
    for part in range(20):
        begin = rows[0][0] - window_ns * part // 20
        counts: dict[int, int] = {}
        before = 0
        for at, total, _ in rows:
            place = (at - begin) // window_ns
            counts[place] = counts.get(place, 0) + total - before
            before = total
        found.append(max(counts.values()) * 8e3 / window_ns * share)
    return Truth(min(found), max(found))
