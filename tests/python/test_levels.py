# SPDX-License-Identifier: MIT OR Apache-2.0
"""Levels of a series: a change from one to another is found where it is, and what is no change of level is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ktrxer.statistics.levels import levels

LEAST = 8


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(LEAST, 40), st.booleans()), min_size=2, max_size=4),
    st.floats(1.5, 50), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_levels_of_known_lengths(parts: list[tuple[int, bool]], factor: float, seed: int) -> None:
    level, expected, made = 10.0, [], []
    for length, up in parts:
        level *= factor if up else 1 / factor
        expected.append((len(made), len(made) + length))
        made += [level] * length
    values = np.asarray(made) * np.random.default_rng(seed).normal(1, 0.01, len(made))
    assert [(one.first, one.last) for one in levels(values, LEAST)] == expected


NOISE = np.random.default_rng(7)


@pytest.mark.parametrize("values", [
    np.linspace(1, 10, 80), np.exp(np.linspace(0, 3, 80)), 8 - 2 * (np.arange(90) % 15) / 15, np.exp(NOISE.normal(0, 0.5, 100)),
    np.where(np.arange(60) % 20 < 3, 50.0, 5.0), np.full(60, 7.0), np.full(2 * LEAST - 1, 1.0),
    np.asarray([1.0] * 20 + [9.0] * (LEAST - 3)), np.empty(0), np.repeat([28.0, 10.0], 30) * np.exp(NOISE.normal(0, 0.1, 60)),
], ids=["ramp", "exponential", "sawtooth", "noise", "bursts", "constant", "too short", "a short end", "nothing", "flows that compete"])  # fmt: skip
def test_what_is_no_change_of_level(values: np.ndarray) -> None:
    assert len(levels(values, LEAST)) == 1


@pytest.mark.parametrize(("values", "least", "ends"), [
    ([1.0, 1, 1, 1, 5, 5, 5, 5], 1, [4, 8]), ([1.0, 5], 1, [1, 2]), ([5.0, 5, 5, 1], 1, [3, 4]), ([1.0, 5, 5, 5], 1, [1, 4]),
    ([1.0, 1, 5, 5], 2, [2, 4]), ([1.0, 5], 0, [1, 2]), ([3.0], 1, [1]), ([], 1, [0]), ([2.0, 2], 1, [2]),
], ids=str)  # fmt: skip
def test_levels_of_few_values(values: list[float], least: int, ends: list[int]) -> None:
    """Long sample intervals make levels of one or two values (run tcp_upload -l 30 --sample-interval 5s)."""
    assert [one.last for one in levels(np.asarray(values), least)] == ends


@given(st.lists(st.floats(1e-3, 1e6), max_size=14), st.integers(0, 8))
def test_levels_cover_the_series_whatever_it_is(values: list[float], least: int) -> None:
    found = levels(np.asarray(values, float), least)
    assert [one.first for one in found] == [0, *(one.last for one in found)][:-1] and found[-1].last == len(values)
