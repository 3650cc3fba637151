# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error bounds by the estimators' library: the C unit tests have the cases, these the way to Python."""

import numpy as np
import pytest
from ktrxer.statistics import error_bounds
from ktrxer.statistics.error_bounds import Bound


def test_a_median_with_and_without_unknown_values() -> None:
    values = np.array([50, 10, 40, 20, 30, 60], np.int64)
    assert error_bounds.of_median(values) == Bound(35, 0, 10, 60)
    assert error_bounds.of_median(values, 2) == Bound(35, 10, 10, 60)
    assert error_bounds.of_median(values, 6) == Bound(35, None, 10, 60)
    assert error_bounds.of_median(values[:2]) == Bound(30, 0)
    assert error_bounds.of_median(values[:0]) is None


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
