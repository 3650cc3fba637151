# SPDX-License-Identifier: MIT OR Apache-2.0
"""How often the intervals over whole runs hold the truth: the tables of docs/measurements/2026-11-23-series.md.

    PYTHONPATH=python python tests/python/simulate.py difference     two groups, `ktrxer compare`
    PYTHONPATH=python python tests/python/simulate.py until          a batch that stops when a mean is known, `ktrxer batch --until`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from ktrxer.batch.spec import LEAST
from ktrxer.statistics.difference import difference
from ktrxer.statistics.sequential import precision

Draw = Callable[[np.random.Generator], float]


def doubled(in_ten: float) -> tuple[Draw, float]:
    """100, but 200 in so many of ten runs."""
    return lambda rng: 200.0 if rng.random() < in_ten / 10 else 100.0, 100 + 10 * in_ten


# A figure of one run, and its mean.
FIGURES: dict[str, tuple[Draw, float]] = {
    "normal, standard deviation 2 %": (lambda rng: rng.normal(100, 2), 100),
    "normal, standard deviation 12 %": (lambda rng: rng.normal(100, 12), 100),
    "gamma, shape 16 (25 %)": (lambda rng: rng.gamma(16, 100 / 16), 100),
    "log-normal, sigma 0.3": (lambda rng: 100 * rng.lognormal(-0.045, 0.3), 100),
    "100 in nine runs of ten, 200 in one": doubled(1),
    "100 in eight runs of ten, 200 in two": doubled(2),
    "100 in 19 runs of 20, 200 in one": doubled(0.5),
}


def until(name: str, share: float, least: int, batches: int, seed: int = 1) -> tuple[float, float]:
    """The share of batches whose interval holds the mean when they stop, and the median number of their runs."""
    draw, mean = FIGURES[name]
    rng = np.random.default_rng(seed)
    held, counts = 0, []
    for _ in range(batches):
        values = [draw(rng) for _ in range(least)]
        while not (found := precision(values, share, least)).reached:
            values.append(draw(rng))
        assert found.low is not None and found.high is not None
        held += found.low <= mean <= found.high
        counts.append(found.count)
    return held / batches, float(np.median(counts))


def p95_of_run(rng: np.random.Generator, runs: int, more: float = 0.0) -> np.ndarray:
    """The p95 of each of so many runs: 600 samples that depend on each other, with a level that differs from run to run."""
    shocks = rng.standard_normal((runs, 600)) * math.sqrt(1 - 0.95**2)
    samples = np.empty((runs, 600))
    samples[:, 0] = rng.standard_normal(runs)
    for i in range(1, 600):
        samples[:, i] = 0.95 * samples[:, i - 1] + shocks[:, i]
    return np.quantile(80 * rng.lognormal(0, 0.08, (runs, 1)) + 10 * samples, 0.95, axis=1) + more


def pairs(runs: int, count: int, seed: int = 1) -> tuple[float, float]:
    """The share of intervals that hold a difference of 8, and of comparisons with p < 0.05 where there is none."""
    rng = np.random.default_rng(seed)
    held = alarms = 0
    for _ in range(count):
        a, b = p95_of_run(rng, runs), p95_of_run(rng, runs, 8.0)
        found = difference(a, b, resamples=999)
        assert found.low is not None and found.high is not None
        held += found.low <= 8 <= found.high
        same = difference(a, b - 8, resamples=999)
        alarms += same.p is not None and same.p < 0.05
    return held / count, alarms / count


def main(what: str) -> None:
    if what == "difference":
        print("| runs in each group | interval holds a true difference of 8 ms | p < 0.05 without a difference |\n|---|---|---|")
        for runs in (3, 4, 5, 10, 30):
            held, alarms = pairs(runs, 1000)
            print(f"| {runs} | {held:.1%} | {alarms:.1%} |")
        return
    shares = (0.05, 0.1, 0.2)
    print("| figure of a run | " + " | ".join(f"within {share:.0%}" for share in shares) + " |\n|---|" + "---|" * len(shares))
    for name in FIGURES:
        found = [until(name, share, LEAST, 500) for share in shares]
        print(f"| {name} | " + " | ".join(f"{held:.1%}, {runs:.0f} runs" for held, runs in found) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
