# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error bounds by the estimators' library: the C unit tests have the cases, these the way to Python."""

import numpy as np
import pytest
from ktrxer.statistics import error_bounds
from ktrxer.statistics.error_bounds import Bound
from ktrxer.statistics.latency import delays


def test_a_median_with_and_without_unknown_values() -> None:
    values = np.array([50, 10, 40, 20, 30, 60])
    assert error_bounds.of_median(values) == 0
    assert error_bounds.of_median(values, 2) == 10
    assert error_bounds.of_median(values, 6) is None
    assert error_bounds.of_median(values, 0, 1) == 10
    assert error_bounds.of_median(values, 0, 6) == 30
    assert error_bounds.of_median(values[:0]) is None


def test_lost_probes_are_longer_than_all_others() -> None:
    assert error_bounds.of_median(np.array([1.5, np.inf, 2.5]), 0) == 0
    assert error_bounds.of_median(np.array([1.5, np.inf, 2.5]), 1) == 1, "the p50 of four values is the second one"
    assert error_bounds.of_median(np.array([1.5, np.inf, 2.5]), 2) is None
    assert error_bounds.of_median(np.array([1.5, np.inf, np.inf]), 1) == 0, "the p50 is infinite: loss is the figure"
    assert error_bounds.of_median(np.array([1e300, 1e300])) == 0


def test_each_way_to_fill_in_the_missing_values_is_within_the_bound() -> None:
    draw = np.random.default_rng(4)
    for _ in range(200):
        count, missing = int(draw.integers(1, 40)), int(draw.integers(0, 40))
        values = np.round(draw.exponential(50, count), 3)
        bound = error_bounds.of_median(values, missing)
        if bound is None:
            assert missing >= count
            continue
        p50 = delays(values).p50
        for low in range(missing + 1):
            filled = delays(np.concatenate([values, np.zeros(low), np.full(missing - low, 1e6)])).p50
            assert abs(filled - p50) <= bound + 2e-3, "the bound is of whole nanoseconds"


def test_loss() -> None:
    assert error_bounds.of_loss(0, 0) is None
    assert error_bounds.of_loss(2, 0) == Bound(0, 0)
    found = error_bounds.of_loss(1000, 10, 5, 5)
    assert found is not None and found.bound == pytest.approx(0.998) and found.low is not None and found.high is not None
    assert found.low < found.value == 1 < found.high
    with pytest.raises(ValueError):
        error_bounds.of_loss(1, 2)


def test_a_rate_by_the_time_without_counts() -> None:
    assert error_bounds.of_rate(10e6, 1, 10) == 1e6
    assert error_bounds.of_rate(10e6, 10, 10) is None
    with pytest.raises(ValueError):
        error_bounds.of_rate(float("nan"), 0, 1)


def test_tolerances() -> None:
    assert error_bounds.tolerances() == error_bounds.Tolerances(5, 20_000, 0.5)
