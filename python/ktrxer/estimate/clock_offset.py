# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clock offset estimator: for each time the interval that contains the offset of a far clock, from the limits that round trips set.

The models are those of methods/clock/clock_offset.h (docs/decisions/0038-clock-offset.md). Disciplined clocks: the offset changes by at
most RATE, so each limit spreads as a cone. Free-running clocks: in addition the rate changes by at most DRIFT. Times and offsets are
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Times = NDArray[np.float64]

RATE = 600e-6  # a slew of 500 ppm, plus the rate errors of both hosts' oscillators
DRIFT = 0.05e-15  # per nanosecond; equal to 0.05 ppm a second
USUAL_RATE = 50e-6
STAMP_ERROR_NS = 1000.0
CONFIRM = 3  # so many round trips that agree with each other and contradict earlier ones show a step
_GRID = 128
_SLICES = 512
_BLOCK = 256  # round trips that are compared at once while none contradicts another one
_THINNINGS = 5
_HALVINGS = 36  # of the range of rates: to 2e-14, that is a nanosecond in 14 hours
Cone = tuple[float, float]  # time and limit
Curve = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Limits:
    """Each round trip is one entry: the offset is at most `high` at the time `high_at`, and at least `low` at `low_at`. Sorted by
    `high_at`."""

    high_at: Times
    high: Floats
    low_at: Times
    low: Floats

    def part(self, of: NDArray[np.int64]) -> Limits:
        return Limits(self.high_at[of], self.high[of], self.low_at[of], self.low[of])


@dataclass(frozen=True)
class Interval:
    low: Floats
    high: Floats
    middle: Floats
    drifts: bool  # no offset with a smooth rate fits the limits

    @property
    def bound(self) -> Floats:
        return np.maximum(self.high - self.middle, self.middle - self.low)


def segments(limits: Limits) -> NDArray[np.int64]:
    """The segment of each round trip, from 0 on. A step of a clock begins a new segment. -1: the round trip contradicts its neighbours."""
    number = np.zeros(len(limits.high), np.int64)
    segment, doubted = 0, list[int]()
    upper, lower = (0.0, np.inf), (-np.inf, -np.inf)  # the tightest ones
    for first in range(0, len(number), _BLOCK):
        block = Limits(*(part[first : first + _BLOCK] for part in (limits.high_at, limits.high, limits.low_at, limits.low)))
        if not doubted and (tightest := _agree(block, upper, lower)) is not None:
            number[first : first + _BLOCK] = segment
            upper, lower = tightest
            continue
        rows = np.stack([block.high_at, block.high, block.low_at, block.low], axis=1).tolist()
        for i, (high_at, high, low_at, low) in enumerate(rows, first):
            at_low = upper[1] + RATE * max(low_at - upper[0], 0.0)
            at_high = lower[1] - RATE * abs(high_at - lower[0]) if np.isfinite(lower[0]) else -np.inf
            if low <= at_low + STAMP_ERROR_NS and high >= at_high - STAMP_ERROR_NS:
                doubted.clear()
            else:
                if doubted and _disagree(limits, doubted[-1], i):
                    doubted.clear()
                doubted.append(i)
                number[i] = -1
                if len(doubted) < CONFIRM:
                    continue
                segment += 1
                number[doubted] = segment
                upper, lower = _cone(limits, doubted[0])
                doubted.clear()
            number[i] = segment
            if high <= upper[1] + RATE * max(high_at - upper[0], 0.0):
                upper = (high_at, high)
            if low >= lower[1] - RATE * (max(low_at - lower[0], 0.0) if np.isfinite(lower[0]) else 0.0):
                lower = (low_at, low)
    return number


def _agree(block: Limits, upper: Cone, lower: Cone) -> tuple[Cone, Cone] | None:
    """The tightest cones after round trips that all agree with each other and with these cones; None if one contradicts."""
    raised, lowered = block.high - RATE * block.high_at, block.low + RATE * block.low_at
    before = np.minimum.accumulate(np.concatenate([[upper[1] - RATE * upper[0]], raised[:-1]])) + RATE * block.low_at
    below = np.maximum.accumulate(np.concatenate([[lower[1] + RATE * lower[0]], lowered[:-1]])) - RATE * block.high_at
    if np.any(block.low > before + STAMP_ERROR_NS) or np.any(block.high < below - STAMP_ERROR_NS):
        return None
    high, low = int(raised.argmin()), int(lowered.argmax())
    if raised[high] <= upper[1] - RATE * upper[0]:
        upper = _cone(block, high)[0]
    if lowered[low] >= lower[1] + RATE * lower[0]:
        lower = _cone(block, low)[1]
    return upper, lower


def _cone(limits: Limits, i: int) -> tuple[Cone, Cone]:
    return (float(limits.high_at[i]), float(limits.high[i])), (float(limits.low_at[i]), float(limits.low[i]))


def _disagree(limits: Limits, a: int, b: int) -> bool:
    slack = RATE * (limits.low_at[b] - limits.high_at[a]) + STAMP_ERROR_NS
    return bool(limits.low[b] > limits.high[a] + slack or limits.low[a] > limits.high[b] + slack)


def interval(limits: Limits, at: Times, free_running: bool) -> Interval:
    """The interval of the offset in one segment, at the given times."""
    low_order = np.argsort(limits.low_at, kind="stable")
    low_at, lows = limits.low_at[low_order], limits.low[low_order]
    high = _cones(limits.high_at, limits.high, at)
    low = -_cones(low_at, -lows, at)
    # Limits may contradict each other by the error of the stamps: then the interval spans both.
    low, high = np.minimum(low, high), np.maximum(low, high)
    smooth = _smooth(Limits(limits.high_at, limits.high, low_at, lows), at)
    if smooth is None:
        return Interval(low, high, (low + high) / 2, True)
    if free_running:
        low, high = np.maximum(low, np.minimum(smooth.low, high)), np.minimum(high, np.maximum(smooth.high, low))
    return Interval(low, high, np.clip(smooth.middle, low, high), False)


def _cones(at: Times, limit: Floats, when: Times) -> Floats:
    """The minimum of limit + RATE * distance in time."""
    left = np.concatenate([[np.inf], np.minimum.accumulate(limit - RATE * at)])
    right = np.concatenate([np.minimum.accumulate((limit + RATE * at)[::-1])[::-1], [np.inf]])
    i = np.searchsorted(at, when, side="right")
    return np.minimum(left[i] + RATE * when, right[i] - RATE * when)


def _smooth(limits: Limits, when: Times) -> Interval | None:
    """Relative to a time x, an offset whose rate changes by at most DRIFT differs at t from a straight line by at most DRIFT (t - x)^2 / 2.
    The term with x is linear in t, so one hull of limit + DRIFT t^2 / 2 serves each x."""
    first = float(limits.high_at[0])
    end = max(float(limits.low_at[-1]) - first, 1.0)
    upper = _Hull(limits.high_at - first, limits.high + DRIFT / 2 * (limits.high_at - first) ** 2, end)
    lower = _Hull(limits.low_at - first, -(limits.low - DRIFT / 2 * (limits.low_at - first) ** 2), end)
    x = np.linspace(0, end, _GRID + 1)

    bend, drift = DRIFT / 2 * x**2, DRIFT * x

    # Rates are rows of one rate for each x. Each function gives its value and its slope at these rates.
    def high(rate: Floats) -> tuple[Floats, Floats]:
        value, t = upper.touch(rate + drift)
        return value + rate * x + bend, x - t

    def below(rate: Floats) -> tuple[Floats, Floats]:
        """Minus the lower limit."""
        value, t = lower.touch(drift - rate)
        return value - rate * x + bend, t - x

    def room(rate: Floats) -> tuple[Floats, Floats]:
        (above, rise), (under, fall) = high(rate), below(rate)
        return above + under, rise + fall

    steep = np.full(len(x), RATE)
    widest = _peak(room, -steep, steep)
    if np.any(room(widest)[0] < -2):
        return None
    slowest, fastest = ends = _last(room, widest, np.stack([-steep, steep]))
    # An idle second before a load leaves a wide range of possible rates. The estimate uses the likely rates.
    likely = np.clip(-USUAL_RATE, slowest, fastest), np.clip(USUAL_RATE, slowest, fastest)
    least, most = np.stack([ends, likely], axis=1)
    top, above = high(_peak(high, least, most))[0]
    bottom, under = -below(_peak(below, least, most))[0]
    middle = (above + under) / 2
    # Between two points of the grid, the offset differs from their chord by at most this amount.
    slack = DRIFT * (end / _GRID) ** 2 / 8 + 1
    at = np.clip(when - first, 0, end)
    beyond = np.abs(when - first - at) * RATE
    return Interval(np.interp(at, x, bottom) - slack - beyond, np.interp(at, x, top) + slack + beyond, np.interp(at, x, middle), False)


class _Hull:
    """The lower convex hull of points. Removing points only widens the limits, so only the lowest points of each slice are used."""

    def __init__(self, t: Floats, v: Floats, end: float) -> None:
        slices = np.minimum((t / end * _SLICES).astype(np.int64), _SLICES - 1)
        order = np.lexsort((v, slices))
        lowest = order[np.flatnonzero(np.concatenate([[True], np.diff(slices[order]) != 0]))]
        t, v = _thinned(t[lowest], v[lowest])
        kept = _chain(t, v)
        self.t, self.v = t[kept], v[kept]
        self.slopes = np.diff(self.v) / np.diff(self.t)

    def touch(self, slope: Floats) -> tuple[Floats, Floats]:
        """For each slope, the value at t = 0 of the line that touches the hull, and the time at which it touches."""
        i = self.slopes.searchsorted(slope)
        t = self.t.take(i)
        return self.v.take(i) - slope * t, t


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Without most points that lie above the chord of their neighbours: those are not on the hull, and _chain() is slow."""
    for _ in range(_THINNINGS):
        if len(x) < 3:
            break
        above = (x[1:-1] - x[:-2]) * (y[2:] - y[:-2]) - (y[1:-1] - y[:-2]) * (x[2:] - x[:-2]) < 0
        kept = np.concatenate([[True], ~above, [True]])
        x, y = x[kept], y[kept]
    return x, y


def _chain(x: Floats, y: Floats) -> list[int]:
    """Andrew's monotone chain."""
    kept: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for k, (xk, yk) in enumerate(zip(xs, ys, strict=True)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (xs[b] - xs[a]) * (yk - ys[a]) - (ys[b] - ys[a]) * (xk - xs[a]) > 0:
                break
            kept.pop()
        if kept and xs[kept[-1]] == xk:
            if ys[kept[-1]] <= yk:
                continue
            kept.pop()
        kept.append(k)
    return kept


def _peak(f: Curve, low: Floats, high: Floats) -> Floats:
    """The position of the maximum of each concave function: there its slope changes its sign."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rises = f(middle)[1] > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray((low + high) / 2, np.float64)


def _last(room: Curve, fits: Floats, limit: Floats) -> Floats:
    """The last rate that fits, searched between `fits` and `limit`."""
    end, all_fit = limit, room(limit)[0] >= 0
    for _ in range(_HALVINGS):
        middle = (fits + limit) / 2
        good = room(middle)[0] >= 0
        fits, limit = np.where(good, middle, fits), np.where(good, limit, middle)
    return np.where(all_fit, end, fits)
