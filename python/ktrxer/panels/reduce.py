# SPDX-License-Identifier: MIT OR Apache-2.0
"""One number from a series, parts of a series, and smoothing. The names that Flent has mean the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ktrxer.panels.model import Floats

Reducer = Callable[[Floats, Floats], float]  # from times and finite values; there is at least one value

SEQ_LOSS, MOS = "raw_seq_loss", "mos"  # they need the lost probes, too (`lossy`)


def _area(t: Floats, y: Floats) -> float:
    """The area below the straight lines between the samples, in the unit of y times seconds."""
    return float(np.sum((y[1:] + y[:-1]) / 2 * np.diff(t)))


def _quantile(share: float) -> Reducer:
    return lambda _, y: float(np.quantile(y, share, method="inverted_cdf"))


REDUCERS: dict[str, Reducer] = {
    "mean": lambda _, y: float(y.mean()),
    "median": lambda _, y: float(np.median(y)),
    "std": lambda _, y: float(y.std(ddof=1)) if len(y) > 1 else math.nan,
    "var": lambda _, y: float(y.var(ddof=1)) if len(y) > 1 else math.nan,
    "min": lambda _, y: float(y.min()),
    "max": lambda _, y: float(y.max()),
    "p1": _quantile(0.01),
    "p5": _quantile(0.05),
    "p25": _quantile(0.25),
    "p50": _quantile(0.50),
    "p75": _quantile(0.75),
    "p95": _quantile(0.95),
    "p99": _quantile(0.99),
    "p999": _quantile(0.999),
    "sum": lambda _, y: float(y.sum()),
    "count": lambda _, y: float(len(y)),
    "first": lambda _, y: float(y[0]),
    "last": lambda _, y: float(y[-1]),
    "span": lambda _, y: float(y.max() - y.min()),
    "mean_span": lambda _, y: float(y.mean() - y.min()),  # the delay that queues add, where the smallest is that of an empty queue
    "area": _area,
}
# Names of Flent for the same: `pct99`, the cumulated sum at the end, `raw_` for samples instead of a grid (here there is no grid).
_SAME = {"pct99": "p99", "cumsum": "sum", "fairness_mean": "mean"}
REDUCERS |= {name: REDUCERS[same] for name, same in _SAME.items()}
REDUCERS |= {f"raw_{name}": REDUCERS[name] for name in ("mean", "median", "std", "var", "min", "max", "pct99", "cumsum")}
NAMES = (*REDUCERS, "mean_zero", SEQ_LOSS, MOS)


def reduce(name: str, t: Floats, y: Floats, lost: int = 0) -> float:
    """NaN for a series without values; `lost`: of probes without an answer. KeyError for an unknown name."""
    there = np.isfinite(y) & np.isfinite(t)
    values = y[there]
    if name == SEQ_LOSS:
        sent = len(values) + lost
        return lost / sent if sent else math.nan
    if name == MOS:
        return mos(values, lost)
    if name == "mean_zero":  # a missing value counts as zero
        return float(np.where(there, y, 0.0).mean()) if len(y) else math.nan
    reducer = REDUCERS[name]
    return reducer(t[there], values) if len(values) else math.nan


def mos(delay_ms: Floats, lost: int) -> float:
    """The mean opinion score of a G.711 call from one-way delays in ms: the E-model of ITU-T G.107 with its defaults, the impairment by
    delay as Cole and Rosenbluth (2001) simplify it, and a robustness to random loss of 4.3 (G.711, ITU-T G.113)."""
    sent = len(delay_ms) + lost
    if not len(delay_ms):
        return math.nan if not sent else 1.0
    delay = float(delay_ms.mean())
    percent = 100 * lost / sent
    rating = 93.2 - 0.024 * delay - (0.11 * (delay - 177.3) if delay > 177.3 else 0.0) - 95 * percent / (percent + 4.3)
    if rating <= 0:
        return 1.0
    return min(4.5, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)


def cut(t: Floats, start: float | None, end: float | None, length: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Selects the samples between two times in seconds. An end that is zero or negative counts from the end of the run, as in Flent."""
    low = -math.inf if start is None else start
    high = math.inf if end is None else length + end if end <= 0 else end
    return np.asarray((t >= low) & (t <= high))


def smooth(y: Floats, width: int) -> Floats:
    """The mean of `width` samples around each one; at the ends of those that are there. A missing value stays missing."""
    if width <= 1 or not len(y):
        return y
    there = np.isfinite(y)
    total = np.concatenate([[0.0], np.cumsum(np.where(there, y, 0.0))])
    number = np.concatenate([[0], np.cumsum(there)])
    at = np.arange(len(y))
    low, high = np.clip(at - width // 2, 0, len(y)), np.clip(at + (width + 1) // 2, 0, len(y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(there, (total[high] - total[low]) / (number[high] - number[low]), np.nan)
