# SPDX-License-Identifier: MIT OR Apache-2.0
"""Delay statistics: quantiles, responsiveness and a grade."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRIM = 0.95
BLOCK_NS = 500_000_000  # least length of the blocks that give the uncertainty of the p50
BLOCKS_LEAST, BLOCKS_MOST = 6, 10
NORMAL = 1.9599639845400545  # statistics.NormalDist().inv_cdf(0.975), whose import takes 4 ms

# The limit of each letter, for the delay in milliseconds that load adds to the round trip. They are the limits of the DSLReports speed test
# (https://www.dslreports.com/faq/17930), which later tests have adopted. That test averages the delay that uploads add and the delay that
# downloads add; here both directions are loaded at once. Other services use other limits, so each grade is printed with its limits.
GRADES: tuple[tuple[float, str], ...] = ((5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D"))
WORST = "F"
RESPONSIVENESS: tuple[tuple[float, str], ...] = ((300, "poor"), (1000, "fair"), (6000, "good"))


@dataclass(frozen=True)
class Delays:
    """Statistics in the unit of the values. A quantile is the smallest value with at least that share at or below it (type 1, no
    interpolation). With lost probes, each is an infinite value in the quantiles; mean, min and max contain only the others."""

    count: int  # of values, without lost probes
    mean: float
    min: float
    p50: float
    p95: float
    p99: float
    max: float
    lost: int = 0  # of lost probes
    p50_low: float | None = None  # confidence interval of the median (p50_interval)
    p50_high: float | None = None


def delays(values: NDArray[Any], lost: int = 0, between: tuple[float, float] | None = None) -> Delays | None:
    """`lost`: the number of probes without a value; `between`: the confidence interval of the median."""
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    count = len(known)
    if not count:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # the sum of values near the largest double, of both signs
        mean, least, largest = float(known.mean()), float(known.min()), float(known.max())
    places = [_place(share, count + lost) for share in (0.5, 0.95, 0.99)]
    known = np.partition(known, [place for place in places if place < count] or 0)
    p50, p95, p99 = (float(known[place]) if place < count else math.inf for place in places)
    low, high = between if between is not None else (None, None)
    return Delays(count, mean, least, p50, p95, p99, largest, lost, low, high)


def _place(share: float, count: int) -> int:
    """The index of the quantile in so many ordered values."""
    return max(0, math.ceil(share * count - 1e-9) - 1)


def ranked(values: NDArray[Any], share: float) -> float:
    """The quantile as delays() has it. The values are at least one, and no NaN."""
    place = _place(share, len(values))
    return float(np.partition(values, place)[place])


def p50_interval(t_ns: NDArray[Any], values: NDArray[Any]) -> tuple[float, float] | None:
    """An interval that contains the median of the process with 95 % confidence, and always the p50 of these values (delays()).

    It holds each value m for which Student's t test of blocks of time does not reject that half of the values lie at or below m, and
    half at or above m. Neighbouring values depend on each other, so a block is at least half a second and at least a tenth of the
    whole time. Lost probes are infinite values. None if there are fewer than six blocks."""
    known = ~np.isnan(values)
    times, values = np.asarray(t_ns, np.int64)[known], np.asarray(values, np.float64)[known]
    if not len(values):
        return None
    first = int(times.min())
    length = max(BLOCK_NS, -(-(int(times.max()) - first + 1) // BLOCKS_MOST))
    places = (times - first) // length
    sizes = np.bincount(places)
    places, sizes = (np.cumsum(sizes > 0) - 1)[places], sizes[sizes > 0]
    if len(sizes) < BLOCKS_LEAST:
        return None
    limit = t_quantile(len(sizes) - 1)
    order = np.argsort(values)
    values, places = values[order], places[order]

    def rejected(inside: slice) -> bool:
        """Whether significantly fewer than half of the values are inside."""
        counts = np.bincount(places[inside], minlength=len(sizes))
        share = counts.sum() / len(values)
        error = math.sqrt(float(((counts - share * sizes) ** 2).sum()) * len(sizes) / (len(sizes) - 1)) / len(values)
        return bool(0.5 - share > limit * error)

    # The begin of each different value, and the end of the last one.
    starts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    middle = bisect.bisect_right(starts, (len(values) - 1) // 2) - 1
    low = bisect.bisect_left(range(middle), True, key=lambda i: not rejected(slice(0, starts[i + 1])))
    high = bisect.bisect_left(range(middle + 1, len(starts) - 1), True, key=lambda i: rejected(slice(starts[i], None))) + middle
    return float(values[starts[low]]), float(values[starts[high]])


def quantile(values: Floats | Sequence[float], share: float) -> float:
    """np.quantile and np.median import numpy.ma, a seventh of the time of numpy's own import. The values are at least one, and no
    NaN."""
    place = (len(values) - 1) * share
    first = math.floor(place)
    second = min(first + 1, len(values) - 1)
    a, b = np.partition(values, [first, second])[[first, second]].tolist()
    part = place - first
    return float(b - (b - a) * (1 - part) if part >= 0.5 else a + (b - a) * part)


def median(values: Floats | Sequence[float]) -> float:
    return quantile(values, 0.5)


def t_quantile(freedom: int) -> float:
    """Student's t at 97.5 %, by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5): right to 0.003 from 5 degrees on."""
    z = NORMAL
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / freedom + g2 / freedom**2 + g3 / freedom**3


def trimmed_mean(values: NDArray[Any], share: float = TRIM) -> float | None:
    """The mean of the lower `share` of the values: draft-ietf-ippm-responsiveness-06, section 4.3.1, removes the values above the 95th
    percentile."""
    known = np.asarray(values, np.float64)
    known = np.sort(known[~np.isnan(known)])
    if not len(known):
        return None
    return float(known[: max(1, int(np.ceil(len(known) * share)))].mean())


def responsiveness_rpm(foreign_ms: NDArray[Any], own_ms: NDArray[Any]) -> tuple[float, float | None, float | None] | None:
    """Round trips per minute under load: the combined figure, that of the foreign probes, and that of the load's own connections.

    draft-ietf-ippm-responsiveness-06, section 4.3.1: the mean of two figures, each of them 60000 over a trimmed mean in milliseconds, one
    of probes on connections of their own (foreign), one on the connections that carry the load (self). (Versions before it divided 60000
    by the mean of both times.) The draft's foreign probes are TCP, TLS and HTTP exchanges; here they are ICMP and UDP. If no request can be
    sent on a loaded connection, the draft allows TCP's own estimate of the round-trip time for self; this function uses that estimate. So
    the figure contains only the network's part of the draft's figure, and is higher. If one of the two inputs is missing, the figure is
    the other one's.
    """
    foreign, own = (60_000 / value if value else None for value in (trimmed_mean(foreign_ms), trimmed_mean(own_ms)))
    known = [rate for rate in (foreign, own) if rate is not None]
    return (sum(known) / len(known), foreign, own) if known else None


def responsiveness_class(rpm: float) -> str:
    """The draft's four classes (section 1.2)."""
    return next((word for limit, word in RESPONSIVENESS if rpm < limit), "excellent")


def grade(added_ms: float) -> str:
    """The letter for the delay that load adds: the median under load minus the idle median."""
    return next((letter for limit, letter in GRADES if added_ms < limit), WORST)


def scale_text() -> str:
    return ", ".join(f"{letter} < {limit:g} ms" for limit, letter in GRADES) + f", else {WORST}"
