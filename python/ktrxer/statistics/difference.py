# SPDX-License-Identifier: MIT OR Apache-2.0
"""Differences of two groups of runs, by resampling of whole runs: samples within a run depend on each other, so a run is one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.student import outside, student_t

Floats = NDArray[np.float64]

RESAMPLES = 4999
RUNS_LEAST = 3  # in each group: the spread of fewer runs is not an estimate
FEW = 4  # runs in the larger group, up to which resamples are too few different ones
TREND_LEAST = 8  # runs in all, for a trend over time
NO_SPREAD = 1e-6  # of the standard error: less is rounding
SEED = 20170704  # of the resamples: equal input gives equal output


@dataclass(frozen=True)
class Difference:
    """B - A of the mean over runs, in the unit of the values. `low` and `high` are None where a group has fewer than RUNS_LEAST runs."""

    mean_a: float
    mean_b: float
    difference: float
    count_a: int
    count_b: int
    low: float | None = None  # the interval that holds the true difference with the stated level
    high: float | None = None
    p: float | None = None  # of a difference at least as large where there is none
    hedges_g: float | None = None  # difference over the pooled standard deviation, corrected for small groups
    superiority: float | None = None  # the probability that a run of B has a larger value than a run of A; a tie counts half


def difference(a: Sequence[float] | Floats, b: Sequence[float] | Floats, level: float = 0.95, resamples: int = RESAMPLES) -> Difference:
    """The symmetric studentized bootstrap interval (Hall 1988, "On symmetric bootstrap confidence intervals") of mean(b) - mean(a) with
    unequal variances. If both groups have at most FEW runs it is that of Welch's t test: resamples make it wider than stated (98 %).
    All values are finite; a group has at least one."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    n, m = len(x), len(y)
    if not n or not m or not np.isfinite(x).all() or not np.isfinite(y).all():
        raise ValueError("a group is empty or has a value that is not finite")
    mean_a, mean_b = float(x.mean()), float(y.mean())
    delta = mean_b - mean_a
    if min(n, m) < RUNS_LEAST:
        return Difference(mean_a, mean_b, delta, n, m)
    var_a, var_b = float(x.var(ddof=1)), float(y.var(ddof=1))
    error = math.sqrt(var_a / n + var_b / m)
    larger = float(np.mean((y[:, None] > x[None, :]) + 0.5 * (y[:, None] == x[None, :])))
    if error <= 1e-12 * max(abs(mean_a), abs(mean_b), 1e-300):  # all runs of a group are equal, as in virtual time with one seed
        return Difference(mean_a, mean_b, delta, n, m, delta, delta, 0.0 if delta else 1.0, None, larger)
    if max(n, m) <= FEW:
        share = var_a / n / error**2
        freedom = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))
        width = student_t((1 + level) / 2, freedom) * error
        p = outside(delta / error, freedom)
    else:
        t = _studentized(x, y, error, resamples)
        width = float(np.quantile(t, level)) * error
        p = (1 + int((t >= abs(delta) / error).sum())) / (len(t) + 1)
    pooled = math.sqrt(((n - 1) * var_a + (m - 1) * var_b) / (n + m - 2))
    g = delta / pooled * (1 - 3 / (4 * (n + m) - 9))
    return Difference(mean_a, mean_b, delta, n, m, delta - width, delta + width, p, g, larger)


@lru_cache(maxsize=4)
def _draws(n: int, m: int, resamples: int) -> tuple[Floats, Floats]:
    """How often each run of a group is in each resample: the same for all figures of two groups."""
    rng = np.random.default_rng(SEED)
    return _counts(rng.integers(0, n, (resamples, n)), n), _counts(rng.integers(0, m, (resamples, m)), m)


def _counts(places: NDArray[np.int64], n: int) -> Floats:
    rows = np.arange(len(places))[:, None] * n
    return np.bincount((places + rows).ravel(), minlength=len(places) * n).reshape(-1, n).astype(np.float64)


@lru_cache(maxsize=4)
def _orders(count: int, permutations: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(SEED)
    return rng.permuted(np.broadcast_to(np.arange(count), (permutations, count)), axis=1)


def _studentized(x: Floats, y: Floats, error: float, resamples: int) -> Floats:
    """|t| of each resample. A resample without spread has no t, and is left out."""
    counts_a, counts_b = _draws(len(x), len(y), resamples)
    mean_a, square_a = _mean_and_square(x - x.mean(), counts_a)
    mean_b, square_b = _mean_and_square(y - y.mean(), counts_b)
    shifts = mean_b - mean_a  # from the difference of the groups themselves
    errors = np.sqrt(square_a + square_b)
    known = errors > NO_SPREAD * error
    made: Floats = np.abs(shifts[known]) / errors[known]
    return made


def _mean_and_square(centred: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """The mean of each resample, and the square of its standard error."""
    n = len(centred)
    means = np.einsum("rn,n->r", counts, centred) / n
    squares = np.einsum("rn,n->r", counts, centred**2) / n - means**2
    return means, np.maximum(squares, 0) / (n - 1)


def holm(p: Sequence[float]) -> list[float]:
    """p values corrected for their number (Holm 1979): where no figure differs, the probability that one is below 0.05 is at most 0.05."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    made, largest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p[i] * (len(p) - rank)))
        made[i] = largest
    return made


@dataclass(frozen=True)
class Trend:
    per_hour: float  # in the unit of the values (Theil-Sen)
    p: float


def trend(t_s: Sequence[float] | Floats, residuals: Sequence[float] | Floats, permutations: int = 1999) -> Trend | None:
    """Do values change with time? The p value is of Spearman's rank correlation, by permutation. None: fewer than TREND_LEAST values."""
    t, values = np.asarray(t_s, np.float64), np.asarray(residuals, np.float64)
    if len(t) < TREND_LEAST or len(np.unique(t)) < TREND_LEAST or not np.ptp(values):
        return None
    ranks_t, ranks = _ranks(t), _ranks(values)
    ranks_t, ranks = ranks_t - ranks_t.mean(), ranks - ranks.mean()
    observed = abs(float(ranks_t @ ranks))
    shuffled = ranks[_orders(len(ranks), permutations)]
    p = (1 + int((np.abs(shuffled @ ranks_t) >= observed * (1 - 1e-12)).sum())) / (permutations + 1)
    i, j = np.triu_indices(len(t), 1)
    apart = t[j] != t[i]
    slope = float(np.median((values[j] - values[i])[apart] / (t[j] - t[i])[apart]))
    return Trend(slope * 3600, p)


def _ranks(values: Floats) -> Floats:
    """Ranks count from 1; equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    made: Floats = (ends - (counts - 1) / 2)[place]
    return made
