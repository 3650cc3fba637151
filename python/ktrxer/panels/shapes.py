# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers of the panels that are not series over time: distributions, boxes, violins, intervals, ellipses, heat maps. NaN is a missing
value everywhere; an empty input gives empty columns or None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.panels.model import Floats
from ktrxer.statistics.distribution import ecdf, envelope, thin_ecdf
from ktrxer.statistics.student import student_t

WHISKERS = (0.01, 0.25, 0.5, 0.75, 0.99)
CDF_POINTS = 2000
MOST_BINS = 200
DENSITY_POINTS = 96
ELLIPSE_POINTS = 72
COVERED = 0.68  # of the pairs of a normal distribution lie in its ellipse
LEVEL = 0.95
LARGEST = 1e150


def known(values: NDArray[Any]) -> Floats:
    """The finite values up to LARGEST, whose squares do not overflow."""
    given = np.asarray(values, np.float64)
    return np.asarray(given[np.abs(given) <= LARGEST])


# ---------------------------------------------------------------------------------------------------------- distributions


def cdf(values: NDArray[Any], most: int = CDF_POINTS) -> tuple[Floats, Floats, bool]:
    """The share of values at or below x as the columns of a step series, and whether points were left out. The curve begins at zero."""
    exact = ecdf(known(values))
    if not len(exact[0]):
        return np.empty(0), np.empty(0), False
    x, share = thin_ecdf(*exact, most)
    return np.concatenate([x[:1], x, x[-1:]]), np.concatenate([[0.0], share, share[-1:]]), len(x) < len(exact[0])


def ccdf(values: NDArray[Any], most: int = CDF_POINTS) -> tuple[Floats, Floats, bool]:
    """The share of values above x, for a logarithmic axis: its last step, which is zero, is left out and the curve ends at 1/n, at the
    largest value."""
    x, share, thinned = cdf(values, most)
    # The share above, between two values, is that at the lower one.
    return x[:-1], 1.0 - np.concatenate([share[:1], share[:-2]]), thinned


def histogram(values: NDArray[Any], bins: int | None = None) -> tuple[Floats, Floats]:
    """Edges and counts as the columns of a step series; all values are in a bin. The width follows Freedman and Diaconis (1981)."""
    there = np.sort(known(values))
    if not len(there):
        return np.empty(0), np.empty(0)
    low, high = float(there[0]), float(there[-1])
    if high <= low:
        half = abs(low) * 1e-3 or 0.5
        return np.array([low - half, low + half]), np.array([float(len(there))] * 2)
    if bins is None:
        q1, q3 = np.quantile(there, (0.25, 0.75))
        width = 2 * float(q3 - q1) / len(there) ** (1 / 3)
        bins = MOST_BINS if width <= 0 else math.ceil(min(MOST_BINS, (high - low) / width))
    counts, edges = np.histogram(there, bins=max(1, bins), range=(low, high))
    return edges, np.append(counts, counts[-1]).astype(np.float64)


def five(values: NDArray[Any]) -> Floats | None:
    """p1, p25, p50, p75 and p99, each a measured value."""
    there = known(values)
    return np.quantile(there, WHISKERS, method="inverted_cdf") if len(there) else None


def violin(values: NDArray[Any], at: float, half: float = 0.38) -> tuple[Floats, Floats] | None:
    """The outline of the density around the position `at`, at most `half` wide to each side: a Gaussian kernel with Silverman's width, and
    reflection at the smallest value, because a delay has a lower bound. It ends at the extremes."""
    there = np.sort(known(values))
    if not len(there):
        return None
    low, high = float(there[0]), float(there[-1])
    q1, q3 = np.quantile(there, (0.25, 0.75))
    spread = min(float(there.std()), float(q3 - q1) / 1.34) or float(there.std())
    width = 0.9 * spread * len(there) ** -0.2
    if high <= low or width <= 0:
        return np.array([at - half, at + half]), np.array([low, low])
    y = np.linspace(low, high, DENSITY_POINTS)
    # Thousands of samples: the kernel works on a fine histogram of them.
    counts, edges = np.histogram(there, bins=min(4096, max(64, 8 * math.ceil((high - low) / width))), range=(low, high))
    middles = (edges[:-1] + edges[1:]) / 2
    density = np.zeros(len(y))
    for centres in (middles, 2 * low - middles, 2 * high - middles):
        density += np.exp(-0.5 * ((y[:, None] - centres[None, :]) / width) ** 2) @ counts
    sides = half * density / density.max()
    return np.concatenate([at - sides, at + sides[::-1], [at - sides[0]]]), np.concatenate([y, y[::-1], y[:1]])


# --------------------------------------------------------------------------------------------------------------- intervals


@dataclass(frozen=True)
class Interval:
    """A mean, with the interval that contains the true mean with LEVEL; low and high are None where too few values give none."""

    mean: float
    count: int
    low: float | None
    high: float | None


def mean_interval(values: NDArray[Any]) -> Interval | None:
    """Student's t for independent values, one for each run. Fewer than three values have no interval, as in statistics/difference.py."""
    there = known(values)
    if not len(there):
        return None
    mean = float(there.mean())
    if len(there) < 3:
        return Interval(mean, len(there), None, None)
    half = student_t((1 + LEVEL) / 2, len(there) - 1) * float(there.std(ddof=1)) / math.sqrt(len(there))
    return Interval(mean, len(there), mean - half, mean + half)


def percentile_band(
    values: NDArray[Any], t: Floats, window: float, low: float = 5, high: float = 95
) -> tuple[Floats, Floats, Floats, Floats]:
    """Edges of windows of time as a step series, with the median and two percentiles of each window; NaN for an empty window."""
    there = np.isfinite(values) & np.isfinite(t)
    if not there.any() or window <= 0:
        return np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    at, y = t[there], np.asarray(values, np.float64)[there]
    first = math.floor(float(at.min()) / window)
    number = np.floor(at / window).astype(np.int64) - first
    count = int(number.max()) + 1
    made = np.full((3, count + 1), np.nan)
    order = np.lexsort((y, number))
    number, y = number[order], y[order]
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], len(number))
    for row, share in enumerate((0.5, low / 100, high / 100)):
        rank = starts + np.clip(np.ceil(share * (ends - starts) - 1e-9).astype(np.int64) - 1, 0, None)
        made[row, number[starts]] = y[rank]
    made[:, count] = made[:, count - 1]
    edges = np.asarray((first + np.arange(count + 1)) * window, np.float64)
    return edges, made[0], made[1], made[2]


# ---------------------------------------------------------------------------------------------------------- two quantities


def qq(a: NDArray[Any], b: NDArray[Any], most: int = 500) -> tuple[Floats, Floats]:
    """Quantiles of b over the same quantiles of a, as many as the smaller of both has values."""
    one, other = np.sort(known(a)), np.sort(known(b))
    count = min(len(one), len(other), most)
    if not count:
        return np.empty(0), np.empty(0)
    shares = (np.arange(count) + 0.5) / count
    return np.quantile(one, shares), np.quantile(other, shares)


def pairs(t_a: Floats, a: Floats, t_b: Floats, b: Floats, window: float) -> tuple[Floats, Floats]:
    """Two series at the same times: the means of both in windows in which both have values."""
    there_a, there_b = np.isfinite(a), np.isfinite(b)
    if not there_a.any() or not there_b.any() or window <= 0:
        return np.empty(0), np.empty(0)
    numbers = [np.floor(t / window).astype(np.int64) for t in (t_a[there_a], t_b[there_b])]
    both = np.intersect1d(numbers[0], numbers[1])
    made = []
    for number, values in zip(numbers, (a[there_a], b[there_b]), strict=True):
        inside = np.isin(number, both)
        place = np.searchsorted(both, number[inside])
        made.append(np.bincount(place, values[inside], len(both)) / np.maximum(1, np.bincount(place, minlength=len(both))))
    return made[0], made[1]


@dataclass(frozen=True)
class Ellipse:
    x: Floats  # the outline, closed
    y: Floats
    centre: tuple[float, float]


def ellipse(x: NDArray[Any], y: NDArray[Any], covered: float = COVERED) -> Ellipse | None:
    """The ellipse of the covariance around the means, which covers that share of the pairs of a normal distribution."""
    there = (np.abs(x) <= LARGEST) & (np.abs(y) <= LARGEST)
    if not there.any():
        return None
    points = np.stack([np.asarray(x, np.float64)[there], np.asarray(y, np.float64)[there]])
    centre = points.mean(axis=1)
    if points.shape[1] < 3:
        return Ellipse(centre[:1], centre[1:], (float(centre[0]), float(centre[1])))
    values, vectors = np.linalg.eigh(np.cov(points))
    radii = np.sqrt(np.maximum(values, 0) * -2 * math.log(1 - covered))
    turn = np.linspace(0, 2 * math.pi, ELLIPSE_POINTS + 1)
    outline = centre[:, None] + vectors @ (radii[:, None] * np.stack([np.cos(turn), np.sin(turn)]))
    return Ellipse(outline[0], outline[1], (float(centre[0]), float(centre[1])))


@dataclass(frozen=True)
class Heat:
    x: Floats  # edges of time, one more than columns
    y: Floats  # edges of value, one more than rows
    z: Floats  # share of the samples of each column, row by row from the smallest value; NaN in a column without samples


def heat(t: Floats, values: NDArray[Any], columns: int = 160, rows: int = 48, *, log: bool = False) -> Heat | None:
    """The shares of the samples of each part of the time. The rows cover all values, so that no sample is outside."""
    y = np.asarray(values, np.float64)
    there = (np.abs(y) <= LARGEST) & np.isfinite(t) & ((y > 0) | (not log))
    if not there.any():
        return None
    at, y = t[there], y[there]
    columns = max(1, min(columns, len(y) // 8))
    x_edges = _spaced(float(at.min()), float(at.max()), columns)
    y_edges = np.exp(_spaced(math.log(y.min()), math.log(y.max()), rows)) if log else _spaced(float(y.min()), float(y.max()), rows)
    column = np.clip(np.searchsorted(x_edges, at, "right") - 1, 0, columns - 1)
    row = np.clip(np.searchsorted(y_edges, y, "right") - 1, 0, rows - 1)
    counts = np.bincount(row * columns + column, minlength=rows * columns).reshape(rows, columns).astype(np.float64)
    whole = counts.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares = counts / np.where(whole > 0, whole, np.nan)
    return Heat(x_edges, y_edges, np.where((counts > 0) | np.isnan(shares), shares, 0.0))


def _spaced(low: float, high: float, count: int) -> Floats:
    if high <= low:
        half = abs(low) * 1e-3 or 0.5
        low, high = low - half, high + half
    return np.linspace(low, high, count + 1)


# -------------------------------------------------------------------------------------------------------------- decimation


def window(x: Floats, y: Floats, start: float, end: float, pixels: int) -> NDArray[np.int64]:
    """The indices of the samples to draw between `start` and `end` on so many pixels: the extremes of each part, and the neighbours
    outside, so that a line reaches the border. `x` is sorted."""
    first, last = int(np.searchsorted(x, start, "left")), int(np.searchsorted(x, end, "right"))
    inside = envelope(y[first:last], 2 * max(2, pixels)) + first
    outside = [one for one in (first - 1, last) if 0 <= one < len(x)]
    return np.unique(np.concatenate([inside, np.array([*outside, *([first, last - 1] if last > first else [])], np.int64)]))


def limits(columns: Sequence[Floats], low: float, high: float) -> tuple[float, float] | None:
    """The percentiles `low` and `high` of all values together, with a twentieth of their distance as a margin; None without values."""
    there = known(np.concatenate([np.empty(0), *columns]))
    if not len(there):
        return None
    a, b = (float(one) for one in np.percentile(there, (low, high)))
    margin = (b - a) / 20
    return a - margin, b + margin
