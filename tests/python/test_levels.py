# SPDX-License-Identifier: MIT OR Apache-2.0
"""Levels of a series as the estimators' library gives them (tests/unit/test_levels.c has their cases)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ktrxer.statistics.levels import Level, levels, window_ns

S = 10**9


def test_a_change_has_times_and_medians() -> None:
    assert levels(np.repeat([8e6, 2e6], [10, 20]), 3 * S, S // 2, 1500) == [Level(3 * S, 8 * S, 8e6), Level(8 * S, 18 * S, 2e6)]
    assert levels(np.repeat([5.0, 9.0], 10), 0, S) == [Level(0, 10 * S, 5.0), Level(10 * S, 20 * S, 9.0)]
    assert levels(np.full(20, 7.0), 3 * S, S, 1500, 10.0) == [Level(2 * S, 3 * S, 10.0), Level(3 * S, 23 * S, 7.0)]


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 9, [7.0] * 20, [1.0] * 20 + [9.0]], ids=len)
def test_no_change_of_level(values: list[float]) -> None:
    assert levels(np.asarray(values), 0, S) == []


def test_long_sample_intervals_make_levels_of_few_values() -> None:
    """`run tcp_upload -l 30 --sample-interval 5s`: the division of such a series failed, and with it the summary."""
    found = levels(np.asarray([1.0, 1, 1, 1, 5, 5, 5, 5]), 0, 5 * S)
    assert [one.to_ns // S for one in found] == [20, 40]


@given(st.lists(st.floats(0, 1e12), max_size=210), st.integers(0, 10 * S))
def test_levels_cover_the_series_whatever_it_is(values: list[float], window: int) -> None:
    found = levels(np.asarray(values, float), S, window)
    assert not found or ([one.from_ns for one in found[1:]] == [one.to_ns for one in found[:-1]] and found[-1].to_ns == S + len(values) * window)


def test_windows_of_a_rate() -> None:
    assert [window_ns(0, 10 * S, S // 5), window_ns(0, 10 * S, 5 * S), window_ns(0, 200 * S, 0)] == [4 * S // 10, 10 * S, S]
