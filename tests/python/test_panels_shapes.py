# SPDX-License-Identifier: MIT OR Apache-2.0
"""The numbers of panels against their definitions: distributions, intervals, ellipses, heat maps, reducers, and thinning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ktrxer.panels import reduce, select, shapes
from ktrxer.panels.groups import averaged, stems
from ktrxer.statistics.student import student_t

RNG = np.random.default_rng(11)
STRANGE = [np.array([]), np.array([np.nan, np.nan]), np.array([5.0]), np.array([5.0, 5.0, 5.0]), np.array([np.inf, 1.0]), np.array([1e308, -1e308, 0])]
COLUMN = hnp.arrays(np.float64, st.integers(0, 3000), elements=st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)))


# ----------------------------------------------------------------------------------------------------------- thinning


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(COLUMN, st.floats(0, 1), st.floats(0, 1), st.integers(2, 400))
def test_a_thinned_window_keeps_every_extreme_of_each_pixel(y: np.ndarray, a: float, b: float, pixels: int) -> None:
    x = np.arange(len(y), dtype=float)
    start, end = sorted((a * len(y), b * len(y)))
    kept = shapes.window(x, y, start, end, pixels)
    assert (np.diff(kept) > 0).all() and (not len(kept) or (kept[0] >= 0 and kept[-1] < len(y)))
    inside = np.flatnonzero((x >= start) & (x <= end))
    values = y[inside]
    if np.isfinite(values).any():
        shown = y[kept[(x[kept] >= start) & (x[kept] <= end)]]
        assert np.nanmax(shown) == np.nanmax(values) and np.nanmin(shown) == np.nanmin(values)
    if len(inside):
        # The slices are those of the samples inside: a neighbour outside hides no extreme.
        first, last = inside[0], inside[-1] + 1
        count = last - first
        if count > 2 * max(2, pixels) >= 4:
            cuts = np.unique(np.linspace(0, count, max(2, pixels), endpoint=False).astype(int)) + first
            for low, high in zip(cuts, [*cuts[1:], last], strict=True):
                part = y[low:high]
                if np.isfinite(part).any():
                    there = y[kept[(kept >= low) & (kept < high)]]
                    assert np.nanmax(there) == np.nanmax(part) and np.nanmin(there) == np.nanmin(part)
    assert len(kept) <= max(8, 3 * 2 * max(2, pixels)) + 4


def test_a_window_reaches_over_its_borders_by_one_sample() -> None:
    x = np.arange(10.0)
    assert shapes.window(x, x, 3.5, 6.5, 100).tolist() == [3, 4, 5, 6, 7]
    assert shapes.window(x, x, -5, -1, 100).tolist() == [0]
    assert shapes.window(np.array([]), np.array([]), 0, 1, 100).tolist() == []


# ------------------------------------------------------------------------------------------------------ distributions


def test_the_tail_ends_at_one_of_n() -> None:
    values = RNG.permutation(np.arange(1.0, 1001.0))
    x, above, thinned = shapes.ccdf(values, 10_000)
    assert not thinned and above[0] == 1 and above[-1] == pytest.approx(1 / 1000) and x[-1] == 1000
    at = np.searchsorted(x, 900.5, "right") - 1
    assert above[at] == pytest.approx(0.1, abs=2e-3)
    x, share, _ = shapes.cdf(values, 10_000)
    assert share[0] == 0 and share[-1] == 1 and x[0] == 1


def test_a_histogram_counts_every_sample() -> None:
    values = RNG.lognormal(2, 1, 5000)
    edges, counts = shapes.histogram(values)
    assert counts[:-1].sum() == 5000 and edges[0] == values.min() and edges[-1] == values.max() and len(edges) == len(counts)
    assert shapes.histogram(np.full(7, 3.0))[1].tolist() == [7, 7]


def test_a_violin_is_as_wide_as_the_density_and_ends_at_the_extremes() -> None:
    values = np.concatenate([RNG.normal(10, 1, 4000), RNG.normal(20, 1, 2000)])
    outline = shapes.violin(values, 3.0)
    assert outline is not None
    x, y = outline
    assert y.min() == values.min() and y.max() == values.max() and x.max() - 3 == pytest.approx(0.38)
    width = {centre: x[np.abs(y - centre) < 1].max() - 3 for centre in (10, 15, 20)}
    assert width[10] > width[20] > width[15] and width[10] / width[20] == pytest.approx(2, rel=0.25)


@pytest.mark.parametrize("values", STRANGE)
def test_strange_columns_have_shapes_or_none(values: np.ndarray) -> None:
    t = np.arange(len(values), dtype=float)
    finite = int(np.isfinite(values).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        assert (shapes.five(values) is None) == (finite == 0)
        assert (shapes.violin(values, 0) is None) == (finite == 0)
        assert (shapes.mean_interval(values) is None) == (finite == 0)
        assert (shapes.ellipse(values, values) is None) == (finite == 0)
        assert (shapes.heat(t, values) is None) == (finite == 0)
        for column in (shapes.cdf(values)[0], shapes.ccdf(values)[0], shapes.qq(values, values)[0], shapes.histogram(values)[0]):
            assert (len(column) == 0) == (finite == 0)
        assert len({len(column) for column in shapes.percentile_band(values, t, 1.0)}) == 1


# ----------------------------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (9, 2.262), (11, 2.201), (15, 2.131), (29, 2.045), (120, 1.980)])
def test_the_quantiles_of_student(freedom: int, quantile: float) -> None:
    assert student_t(0.975, freedom) == pytest.approx(quantile, abs=6e-4)


def test_the_interval_of_a_mean_covers_it() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        found = shapes.mean_interval(rng.normal(7, 3, 6))
        assert found is not None and found.low is not None and found.high is not None
        covered += found.low <= 7 <= found.high
    assert 0.92 < covered / 400 < 0.98
    assert shapes.mean_interval(np.array([1.0, 2.0])) == shapes.Interval(1.5, 2, None, None)


def test_percentile_bands_are_of_each_window() -> None:
    t = np.arange(0, 10, 0.01)
    y = np.where(t < 5, 1.0, 3.0) + np.tile(np.arange(100) / 100, 10)
    edges, middle, low, high = shapes.percentile_band(y, t, 1.0)
    assert edges.tolist() == list(range(11)) and middle[2] == pytest.approx(1.49) and middle[7] == pytest.approx(3.49)
    assert low[2] == pytest.approx(1.04) and high[2] == pytest.approx(1.94)
    hole = np.where((t >= 3) & (t < 4), np.nan, y)
    assert np.isnan(shapes.percentile_band(hole, t, 1.0)[1][3])


def test_the_ellipse_covers_its_share() -> None:
    points = RNG.multivariate_normal([10, 50], [[4, 3], [3, 9]], 20_000).T
    found = shapes.ellipse(*points)
    assert found is not None and found.centre == pytest.approx((10, 50), abs=0.1)
    turned = points - np.array(found.centre)[:, None]
    distance = np.einsum("in,ij,jn->n", turned, np.linalg.inv(np.cov(points)), turned)
    assert (distance < -2 * math.log(1 - shapes.COVERED)).mean() == pytest.approx(0.68, abs=0.015)
    outline = np.stack([found.x, found.y]) - np.array(found.centre)[:, None]
    assert np.einsum("in,ij,jn->n", outline, np.linalg.inv(np.cov(points)), outline) == pytest.approx(-2 * math.log(1 - shapes.COVERED))


def test_equal_distributions_lie_on_the_diagonal() -> None:
    a, b = shapes.qq(RNG.exponential(5, 4000), RNG.exponential(5, 6000))
    assert len(a) == 500 and np.abs(a - b)[:450].max() < 1


def test_pairs_are_of_the_same_time() -> None:
    t = np.arange(0, 10, 0.1)
    x, y = shapes.pairs(t, t, t[:50], 2 * t[:50], 1.0)
    assert len(x) == 5 and y == pytest.approx(2 * x)


@pytest.mark.parametrize("log", [False, True])
def test_a_heat_map_has_every_sample(log: bool) -> None:
    t, y = np.sort(RNG.random(5000) * 60), RNG.lognormal(1, 1, 5000)
    found = shapes.heat(t, y, log=log)
    assert found is not None and found.z.shape == (len(found.y) - 1, len(found.x) - 1)
    columns = np.nansum(found.z, axis=0)
    assert columns[columns > 0] == pytest.approx(1)
    assert found.y[0] == pytest.approx(y.min()) and found.y[-1] == pytest.approx(y.max())


def test_limits_leave_out_the_outliers() -> None:
    y = np.concatenate([np.linspace(10, 20, 1000), [1e6]])
    found = shapes.limits([y], 5, 95)
    assert found is not None and 9 < found[0] < 11 and 19 < found[1] < 21
    assert shapes.limits([np.full(3, np.nan)], 5, 95) is None


# -------------------------------------------------------------------------------------------------------------- reducers


def test_the_reducers() -> None:
    t, y = np.arange(5.0), np.array([2.0, np.nan, 4.0, 6.0, 12.0])
    wanted = {
        "mean": 6, "median": 5, "min": 2, "max": 12, "sum": 24, "count": 4, "first": 2, "last": 12, "span": 10, "mean_span": 4, "p50": 4,
        "area": 3 * 2 + 5 + 9, "mean_zero": 24 / 5, "raw_mean": 6, "pct99": 12, "std": np.std([2, 4, 6, 12], ddof=1),
    }  # fmt: skip
    assert {name: pytest.approx(reduce.reduce(name, t, y)) for name in wanted} == wanted
    assert reduce.reduce("raw_seq_loss", t, y, lost=1) == pytest.approx(0.2)
    assert all(math.isnan(reduce.reduce(name, t, np.full(5, np.nan))) for name in reduce.NAMES if name != "mean_zero")
    with pytest.raises(KeyError):
        reduce.reduce("nope", t, y)


def test_the_opinion_score_of_a_call() -> None:
    good, late = np.full(100, 20.0), np.full(100, 400.0)
    assert reduce.mos(good, 0) == pytest.approx(4.4, abs=0.05)
    assert reduce.mos(good, 0) > reduce.mos(good, 3) > reduce.mos(late, 3) >= 1
    assert reduce.mos(np.empty(0), 5) == 1.0 and math.isnan(reduce.mos(np.empty(0), 0))


def test_cutting_counts_from_the_end_too() -> None:
    t = np.arange(0, 70.0)
    assert reduce.cut(t, 5, -5, 70).sum() == 61 and reduce.cut(t, None, None, 70).all() and reduce.cut(t, 0, 0, 70).all()


def test_smoothing_is_the_mean_of_neighbours() -> None:
    y = np.array([0.0, 3.0, np.nan, 3.0, 6.0])
    assert reduce.smooth(y, 3) == pytest.approx([1.5, 1.5, np.nan, 4.5, 4.5], nan_ok=True)
    assert reduce.smooth(y, 1) is y and len(reduce.smooth(np.empty(0), 5)) == 0


# --------------------------------------------------------------------------------------------------------- names, groups


def test_patterns_stop_at_a_colon() -> None:
    names = ["TCP upload BE", "TCP upload::1", "TCP upload::1::tcp_rtt", "TCP upload sum", "Ping (ms) avg", "a*b"]
    assert select.chosen(names, "TCP upload *") == ["TCP upload BE", "TCP upload sum"]
    assert select.chosen(names, "TCP upload::*") == ["TCP upload::1"]
    assert select.chosen(names, "TCP**", ["*sum"]) == ["TCP upload BE", "TCP upload::1", "TCP upload::1::tcp_rtt"]
    assert select.chosen(names, "Ping (ms) avg") == ["Ping (ms) avg"] and select.chosen(names, "a*b") == ["a*b"]
    assert select.chosen(["x" * 5000], "*" * 30) == ["x" * 5000]
    assert select.chosen(["a" * 2000], "*a" * 40 + "b") == []  # a pattern of unknown origin takes no more time than any other
    assert select.matches("**a*", "xa:xa") and not select.matches("*a*", "xa:xa") and select.matches("?b", "ab") and not select.matches("?", ":")
    assert select.matches("", "") and not select.matches("", "a") and not select.matches("a.c", "abc")


def test_labels_are_replaced_in_order() -> None:
    assert select.relabelled("UDP BE", (("UDP", "Probe"), ("Probe B", "b"))) == "bE"
    assert select.relabelled("UDP BE", ()) == "UDP BE"


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["rrul-fifo-1", "rrul-fifo-2", "rrul-codel-1"], ["fifo", "fifo", "codel"]),
        (["a-01-x", "a-02-x"], ["x", "x"]),
        (["alone"], ["alone"]),
        (["same", "same"], ["same", "same"]),
        (["run-100mbit-3", "run-10mbit-3"], ["100mbit", "10mbit"]),
        (["1", "2"], ["1", "2"]),
        (["rrul-1", "rrul-2"], ["rrul", "rrul"]),
    ],
)
def test_file_names_make_groups(names: list[str], wanted: list[str]) -> None:
    assert stems(names) == wanted


def test_an_average_of_runs_is_not_of_other_runs_beside_it() -> None:
    t = np.arange(0, 10, 0.1)
    hole = (t > 4) & (t < 6)
    at, mean, low, high = averaged([(t, np.full(100, 10.0)), (t[~hole], np.full((~hole).sum(), 20.0))], 1.0)
    assert mean[1] == 15 and low[1] == 10 and high[1] == 20 and np.isnan(mean[(at > 5) & (at < 5.9)]).all()
    assert len(averaged([], 1.0)[0]) == 0
