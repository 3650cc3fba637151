"""Figures of a sender from arrival stamps: errors of intervals, quantiles, rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def quantile(values: Iterable[float], q: float) -> float:
    """A quantile of type 1 (inverse of the empirical distribution), as in ktrxer's histograms. NaN without values."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


def median(values: Iterable[float]) -> float:
    return quantile(values, 0.5)


@dataclass(frozen=True)
class Arrival:
    number: int  # the sender's number
    at_ns: int  # the far end's kernel stamp


def interval_errors_ns(arrivals: Sequence[Arrival], interval_ns: int) -> list[int]:
    """Signed error of each interval between neighbouring numbers. For a lost probe both of its intervals are left out."""
    at: dict[int, int] = {}
    for arrival in arrivals:
        at.setdefault(arrival.number, arrival.at_ns)
    return [at[number + 1] - at[number] - interval_ns for number in sorted(at) if number + 1 in at]


@dataclass(frozen=True)
class Timing:
    """Statistics of |interval error| in microseconds; the IQR is that of the signed error."""

    count: int
    median_us: float
    iqr_us: float
    p99_us: float
    max_us: float

    def __str__(self) -> str:
        tail = f"p99 {self.p99_us:.1f} us, max {self.max_us:.1f} us, {self.count} intervals"
        return f"median {self.median_us:.2f} us, IQR {self.iqr_us:.2f} us, {tail}"


def timing(errors_ns: Sequence[int]) -> Timing:
    sizes = [abs(error) / 1000 for error in errors_ns]
    spread = quantile(errors_ns, 0.75) - quantile(errors_ns, 0.25)
    return Timing(len(sizes), median(sizes), spread / 1000, quantile(sizes, 0.99), max(sizes, default=math.nan))


def merge(rounds: Iterable[Sequence[int]]) -> list[int]:
    return [error for errors in rounds for error in errors]
