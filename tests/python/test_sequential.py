# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sequential stopping: the interval of a mean that is looked at after each run."""

import math

import numpy as np
import pytest
from ktrxer.batch.spec import LEAST
from ktrxer.statistics.sequential import precision
from ktrxer.statistics.student import outside, student_t
from simulate import until


def test_an_interval_that_is_looked_at_after_each_run_holds_the_mean_as_often_as_stated():
    rng = np.random.default_rng(3)
    held, counts = 0, []
    for _ in range(400):
        values: list[float] = []
        while not (found := precision(values, 0.1, 3)).reached:
            values.append(float(rng.normal(100, 12)))
        held += found.low <= 100 <= found.high
        counts.append(found.count)
    assert held / 400 >= 0.95
    assert np.mean(counts) < 20  # a fixed number of runs would be 8


def test_an_interval_of_skewed_figures_that_is_looked_at_after_each_run_holds_the_mean():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        values = list(100 * rng.lognormal(-0.02, 0.2, 5))
        while not (found := precision(values, 0.1, 5)).reached:
            values.append(float(100 * rng.lognormal(-0.02, 0.2)))
        held += found.low <= 100 <= found.high
    assert held / 200 >= 0.95


@pytest.mark.parametrize("name", ["100 in nine runs of ten, 200 in one", "100 in eight runs of ten, 200 in two"])
def test_a_figure_that_doubles_in_some_runs_is_held_too(name):
    held, _ = until(name, 0.2, LEAST, 400)
    assert held >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / 400)
    assert until("100 in nine runs of ten, 200 in one", 0.2, 5, 100)[0] < 0.8  # the reason for LEAST


def test_an_infinite_figure_is_never_known_well_enough():
    assert not precision([1.0, 1.0, 1.0, float("inf")], 0.5, 3).reached


@pytest.mark.parametrize(
    ("p", "freedom", "value"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 5, 2.57058), (0.995, 9, 3.24984), (0.975, 30, 2.04227), (0.9995, 4, 8.6103)],
)
def test_student_t_against_printed_tables(p, freedom, value):
    assert student_t(p, freedom) == pytest.approx(value, rel=1e-5)
    assert outside(value, freedom) == pytest.approx(2 - 2 * p, rel=1e-4)


def test_student_t_between_two_whole_degrees_of_freedom():
    assert student_t(0.975, 2.0) > student_t(0.975, 2.5) > student_t(0.975, 3.0)
    assert outside(student_t(0.975, 2.5), 2.5) == pytest.approx(0.05, abs=1e-6)
