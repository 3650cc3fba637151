# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot model compared with the run: rates are bytes in windows, gaps stay gaps, notes name missing data."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import drawn_texts
import numpy as np
import pytest
from explore_server import SIZES, numbers
from ktrxer.panels import makers, order, picture, plots
from ktrxer.panels.errors import PlotError
from ktrxer.panels.headline import headline
from ktrxer.panels.model import Panel, PlotModel
from ktrxer.statistics.distribution import ecdf, envelope, thin_ecdf
from ktrxer.store import Host, Meta, Phase, Run, Runner, RunWriter, Series, Zero, open_run
from ktrxer.summary.figures import summarise
from ktrxer.view import figure, pack
from ktrxer.view.numbers import of_model
from synthetic import synthetic

S, MS = 10**9, 10**6


@pytest.fixture(scope="module")
def rrul(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(synthetic(tmp_path_factory.mktemp("view"), seconds=20, delay=4))


def made(directory: Path, series: list[Series], rows: dict[str, list[dict[str, Any]]], **more: Any) -> Run:
    given: dict[str, Any] = {"phases": [Phase("idle_before", 0, S), Phase("load", S, 9 * S)]} | more
    meta = Meta(id="m", test="t", created="2026-11-21T15:30:00Z", host=Host("h"), zero=Zero(0, 0), length_ns=10 * S, series=series,
                runners=[Runner(0, "r", "ping", ["x"], interval_ns=10 * MS)], **given)  # fmt: skip
    writer = RunWriter(directory, meta, "made")
    for kind, batches in rows.items():
        for batch in batches:
            writer.append(kind, batch)
    return open_run(writer.finish())


def flow(number: int, t: np.ndarray, count: np.ndarray, end: int = 1) -> dict[str, Any]:
    return {"series": [number] * len(t), "t_ns": t.tolist(), "end": [end] * len(t), "bytes": count.tolist(), "bound_ns": [None] * len(t)}


def up(number: int, klass: str | None = None) -> Series:
    return Series(number, f"TCP upload {klass or number}", "bytes", "Mbit/s", 0, number, "up", klass, "TCP upload")


def by_key(panel: Panel | None, key: str) -> Any:
    assert panel is not None
    return next(series for series in panel.series if series.key == key)


# -------------------------------------------------------------------------------------------------------------- throughput


def test_rates_are_bytes_over_windows_and_sums_are_sums_of_bytes(rrul: Run) -> None:
    panel = makers.throughput(rrul, "down")
    assert panel is not None and panel.y.unit == "Mbit/s"
    total = by_key(panel, "down sum")
    span = np.diff(total.x)
    drawn = float(np.nansum(total.y[:-1] * span)) * 1e6 / 8
    counted = 0
    for series in rrul.meta.of_kind("bytes"):
        if series.direction == "down":
            arrays = rrul.arrays(series)
            there = arrays["bytes"][arrays["end"] == 0]
            counted += int(there[-1] - there[0])
    # All bytes except those in the half windows at both ends.
    assert drawn == pytest.approx(counted, rel=0.03)
    parts = sum(np.nan_to_num(s.y[:-1]).sum() for s in panel.series if s.key != "down sum")
    assert parts == pytest.approx(np.nan_to_num(total.y[:-1]).sum(), rel=0.02)


def test_a_constant_flow_has_a_constant_rate(tmp_path: Path) -> None:
    t = np.arange(S, 9 * S, 50 * MS)
    run = made(tmp_path, [up(0)], {"bytes": [flow(0, t, (t - S) // 1000)]})  # 1 byte in a microsecond: 8 Mbit/s
    series = by_key(makers.throughput(run, "up"), "TCP upload 0")
    assert series.y == pytest.approx(np.full(len(series.y), 8.0))
    assert series.x[0] == 1.0
    assert len(series.x) == len(series.y)


def test_no_sum_is_drawn_where_a_flow_is_missing_and_that_is_said(tmp_path: Path) -> None:
    t = np.arange(S, 9 * S, 100 * MS)
    hole = (t > 3 * S) & (t < 6 * S)
    run = made(tmp_path, [up(0, "BE"), up(1, "EF")], {"bytes": [flow(0, t, t // 1000), flow(1, t[~hole], t[~hole] // 1000)]})
    panel = makers.throughput(run, "up")
    total = by_key(panel, "up sum")
    inside = (total.x > 3.3) & (total.x < 5.7)
    assert inside.any() and np.isnan(total.y[inside]).all()
    assert total.y[np.searchsorted(total.x, 2.0)] == pytest.approx(16.0)
    assert panel is not None and any("only where all 2 flows have samples" in note for note in panel.notes)
    alone = by_key(panel, "TCP upload BE")
    assert not np.isnan(alone.y).any()


def test_whole_coverage_needs_no_words(rrul: Run) -> None:
    panel = makers.throughput(rrul, "up")
    assert panel is not None and not any("only where" in note for note in panel.notes)
    assert any("receiving end" in note for note in panel.notes)


def test_counts_of_the_sender_alone_are_called_that(tmp_path: Path) -> None:
    t = np.arange(S, 9 * S, 100 * MS)
    panel = makers.throughput(made(tmp_path, [up(0)], {"bytes": [flow(0, t, t // 1000, end=0)]}), "up")
    assert panel is not None and any("no counts of the receiving end" in note for note in panel.notes)


def test_many_flows_are_a_mean_and_a_spread(tmp_path: Path) -> None:
    t = np.arange(S, 9 * S, 200 * MS)
    count = 40
    run = made(tmp_path, [up(i) for i in range(count)], {"bytes": [flow(i, t, t // 1000 * (i + 1)) for i in range(count)]})
    panel = makers.throughput(run, "up")
    assert panel is not None and [series.key for series in panel.series] == ["mean of flows", "up sum"]
    spread = panel.series[0]
    assert spread.low is not None and spread.high is not None
    middle = len(spread.y) // 2
    assert spread.high[middle] / spread.low[middle] == pytest.approx(count)
    assert by_key(panel, "up sum").y[middle] > spread.y[middle]


def test_units_fit_the_figures(tmp_path: Path) -> None:
    t = np.arange(S, 9 * S, 100 * MS)
    panel = makers.throughput(made(tmp_path, [up(0)], {"bytes": [flow(0, t, t // 1_000_000)]}), "up")
    assert panel is not None and panel.y.unit == "kbit/s"


# ----------------------------------------------------------------------------------------------------------------- latency


def probes(states: list[int], rtt: list[int | None], late: list[int | None] | None = None) -> dict[str, Any]:
    n = len(states)
    return {"series": [0] * n, "t_ns": [i * 10 * MS for i in range(n)], "seq": list(range(n)), "state": states, "rtt_ns": rtt,
            "lateness_ns": late or [None] * n}  # fmt: skip


PING = Series(0, "Ping (ms) ICMP", "latency", "ms", 0, group="Ping (ms)")


def test_lost_probes_are_gaps_marks_and_words(tmp_path: Path) -> None:
    run = made(tmp_path, [PING], {"latency": [probes([0, 1, 0, 2, 3, 4, 5, 6, 0], [MS, None, 2 * MS, None, None, None, None, 9 * MS, 3 * MS])]})
    panel = makers.latency(run)
    series = by_key(panel, "Ping (ms) ICMP")
    assert series.label == "ICMP"
    assert panel is not None and panel.event_rows[0].key == series.key and panel.event_rows[0].x.tolist() == pytest.approx([0.01, 0.03, 0.04])
    # The line has neither unsent probes nor a second answer to the same probe.
    assert [None if v != v else v for v in series.y.tolist()] == [1, None, 2, None, None, 3]
    assert panel is not None
    assert "ICMP: 3 of 6 lost (50 %: 1 up, 1 down); 1 probe could not be sent; 1 skipped." in panel.notes


@pytest.mark.slow
def test_lost_probes_have_a_lane_above_the_plot(tmp_path: Path) -> None:
    """No cross lies among the delays or in the text above the plot."""
    lossy = [probes([0, 1, 0, 2, 0], [MS, None, 2 * MS, None, 3 * MS]) | {"series": [number] * 5} for number in range(3)]
    series = [Series(number, f"Ping (ms) UDP {klass}", "latency", "ms", 0, klass=klass) for number, klass in enumerate(("BE", "BK", "EF"))]
    panel = makers.latency(made(tmp_path, series, {"latency": lossy}))
    assert panel is not None
    drawn = figure.draw(PlotModel("t", "s", (panel,)), vector=True)
    drawn.canvas.draw()
    (axes,) = drawn.axes
    top = axes.get_window_extent().y1
    heights = [line.get_transform().transform(line.get_xydata())[:, 1] for line in axes.lines if line.get_marker() == "x"]
    words = [text.get_window_extent() for text in axes.texts if text.get_text() in ("idle", "load")]
    names = [text.get_window_extent() for text in drawn_texts.of_legend(axes)]
    assert len(heights) == 3 and len({float(y) for row in heights for y in row}) == 3, "a row for each series"
    assert len(words) == 2 and len(names) == 3
    assert all(top < y < min(box.y0 for box in [*names, *words]) for row in heights for y in row)


def test_the_queues_of_both_hosts_are_drawn_where_they_were_measured(tmp_path: Path) -> None:
    measured = probes([0, 1, 0, 0], [MS, None, 2 * MS, 3 * MS]) | {
        "own_queue_ns": [5000, None, 8000, 7000], "far_queue_ns": [None, None, 40_000, None]}  # fmt: skip
    panel = makers.MAKERS["host_queues"](made(tmp_path, [PING], {"latency": [measured]}))
    own, far = by_key(panel, "Ping (ms) ICMP"), by_key(panel, "Ping (ms) ICMP, far host")
    assert panel is not None and panel.y.unit == "µs"
    assert own.x.tolist() == pytest.approx([0, 0.02, 0.03]) and own.y.tolist() == [5, 8, 7]
    assert far.x.tolist() == pytest.approx([0.02]) and far.y.tolist() == [40]
    assert own.color == far.color and own.dash != far.dash
    (tmp_path / "b").mkdir()
    unknown = made(tmp_path / "b", [PING], {"latency": [probes([0], [MS])]})
    assert makers.MAKERS["host_queues"](unknown) is None


def test_nothing_to_show_is_no_panel(tmp_path: Path) -> None:
    run = made(tmp_path, [PING, up(1)], {"latency": [probes([1, 1], [None, None])]})
    assert [panel for panel in order.report_panels(run, headline(summarise(run))) if panel.key != "lateness"] == []
    with pytest.raises(PlotError, match="no samples for the plot"):
        plots.model([run], "all")


def test_the_distribution_tells_idle_from_load(rrul: Run) -> None:
    panel = makers.latency_cdf(rrul)
    loaded, idle = by_key(panel, "Ping (ms) ICMP"), by_key(panel, "Ping (ms) ICMP (idle)")
    assert loaded.dash == () and idle.dash
    assert loaded.y[-1] == idle.y[-1] == 100 and loaded.y[0] == idle.y[0] == 0
    half = [float(series.x[np.searchsorted(series.y, 50)]) for series in (loaded, idle)]
    assert half[0] > 2 * half[1]
    assert (np.diff(loaded.x) >= 0).all() and (np.diff(loaded.y) >= 0).all()


def test_one_way_delays_carry_their_bound(rrul: Run) -> None:
    panel = makers.one_way(rrul, "up")
    assert panel is not None and panel.notes == ("The offset between the two clocks has an uncertainty of ±180 µs; the band shows it.",)
    series = panel.series[0]
    assert series.high is not None and series.low is not None
    width = series.high - series.low
    assert np.nanmax(width) == pytest.approx(0.36, rel=1e-6)
    assert [s.key for s in panel.series] == ["Ping (ms) UDP BE", "Ping (ms) UDP BK", "Ping (ms) UDP EF"]


def test_lateness_has_the_line_of_the_verdict(tmp_path: Path) -> None:
    run = made(tmp_path, [PING], {"latency": [probes([0, 0, 0], [MS, MS, MS], [5000, -2000, 2_000_000])]})
    panel = makers.lateness(run)
    assert panel is not None and panel.y.unit == "µs"
    assert by_key(panel, "limit of lateness").y.tolist() == [1000, 1000]  # a tenth of 10 ms
    assert any("1 probe left early, by at most 2 µs" in note for note in panel.notes)


# ------------------------------------------------------------------------------------------------------------ distributions


def test_the_empirical_distribution() -> None:
    x, share = ecdf(np.array([3.0, 1.0, np.nan, 1.0, 2.0]))
    assert x.tolist() == [1, 2, 3] and share.tolist() == [0.5, 0.75, 1]
    assert len(ecdf(np.array([]))[0]) == 0


def test_a_thinned_distribution_keeps_its_ends_and_its_shape() -> None:
    rng = np.random.default_rng(1)
    x, share = ecdf(rng.gamma(2, 10, 50_000))
    few_x, few = thin_ecdf(x, share, 2000)
    assert len(few_x) <= 2000
    assert few_x[:64].tolist() == x[:64].tolist() and few_x[-64:].tolist() == x[-64:].tolist()
    assert np.diff(few).max() <= 1 / (2000 - 128) + 2 / 50_000
    assert set(few_x) <= set(x)


@pytest.mark.parametrize("seed", range(5))
def test_fewer_samples_keep_every_extreme_and_every_long_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.normal(0, 1, 30_000)
    spikes = rng.integers(0, 12_000, 5)
    y[spikes] = 100 + spikes
    y[12_000:15_000] = np.nan
    kept = envelope(y, 1000)
    assert len(kept) <= 1010 and (np.diff(kept) > 0).all()
    assert y[spikes].max() == y[kept][~np.isnan(y[kept])].max()
    assert np.nanmin(y) == np.nanmin(y[kept])
    assert np.isnan(y[kept]).any()
    # The line has a gap: a sample without a value lies between its two sides.
    before, after = kept[kept < 12_000].max(), kept[kept >= 15_000].min()
    assert np.isnan(y[kept[(kept > before) & (kept < after)]]).all() and ((kept > before) & (kept < after)).any()


def test_few_samples_and_nothing_stay_as_they_are() -> None:
    assert envelope(np.array([1.0, np.nan]), 100).tolist() == [0, 1]
    assert envelope(np.array([]), 100).tolist() == []
    assert len(envelope(np.full(1000, np.nan), 100)) >= 2


# ------------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("plot", [*plots.PLOTS, *(name + "_scaled" for name in plots.PLOTS)])
def test_every_plot_draws_an_rrul(rrul: Run, plot: str) -> None:
    model = plots.model([rrul], plot)
    assert model.panels
    for panel in model.panels:
        assert panel.series and panel.y.label and panel.title
        assert panel.x.names or panel.x.unit
        for series in panel.series:
            assert len(series.x) == len(series.y)
            assert series.samples


def test_all_names_that_tests_give_are_known_or_passed_over(rrul: Run) -> None:
    assert plots.default(rrul).removesuffix("_scaled") in plots.PLOTS
    rrul_plots = rrul.meta.plots
    try:
        rrul.meta.plots = ["a plot of the future", "__class__"]
        assert plots.default(rrul) == "all"
    finally:
        rrul.meta.plots = rrul_plots


@pytest.mark.parametrize(("wrong", "words"), [("pign", "did you mean ping?"), ("zzz", "there are: all, totals"), ("", "there are: all")])
def test_a_wrong_name_is_helped(rrul: Run, wrong: str, words: str) -> None:
    with pytest.raises(PlotError, match=words.replace("?", r"\?")):
        plots.model([rrul], wrong)


def test_scaled_plots_say_what_they_cut_off(tmp_path: Path) -> None:
    rtt: list[int | None] = [10 * MS] * 500
    rtt[77] = 900 * MS
    (panel,) = plots.model([made(tmp_path, [PING], {"latency": [probes([0] * 500, rtt)]})], "ping_scaled").panels
    assert panel.y.most == pytest.approx(11)
    assert panel.notes[-1] == "Scaled to 99 % of the samples; 1 of 500 lie above."
    calm = made(tmp_path, [PING], {"latency": [probes([0] * 500, [10 * MS] * 500)]})
    assert plots.model([calm], "ping_scaled").panels[0].y.most is None


def test_runs_over_each_other_are_told_apart(tmp_path: Path, rrul: Run) -> None:
    other = open_run(synthetic(tmp_path, seconds=20, delay=4, seed=3, depth_ms=0.02, name="other", title="synthetic"))
    model = plots.model([rrul, other], "all")
    assert [panel.key for panel in model.panels] == ["throughput-down", "throughput-up", "latency"]
    down, _, latency = model.panels
    # Two equal titles: the file names distinguish the runs.
    assert [series.label for series in down.series] == [rrul.name, "other"]
    assert len({(s.color, s.dash) for s in latency.series}) == len(latency.series) == 8
    # Both are in the unit of the first.
    assert float(np.nanmedian(latency.series[-1].y)) == pytest.approx(10, rel=0.3)


def test_the_meaning_of_dashes_is_said_of_one_run_only(tmp_path: Path, rrul: Run) -> None:
    """Of several runs, a dash is a series."""
    other = open_run(synthetic(tmp_path, seconds=20, delay=4, seed=3, name="other", title="synthetic"))
    alone, both = (plots.model(runs, "ping_cdf").panels[0] for runs in ([rrul], [rrul, other]))
    assert any("Solid: under load" in note for note in alone.notes)
    assert len({one.dash for one in both.series if one.label.endswith(", load")}) > 1
    assert not any("Solid" in note for note in both.notes)


# -------------------------------------------------------------------------------------------------------------------- pack


def unpack(packed: dict[str, Any]) -> np.ndarray:
    data = base64.b64decode(packed["data"])
    assert len(data) == packed["count"] * SIZES[packed["type"]]
    return packed["base"] + packed["scale"] * numbers(packed["type"], data, packed["count"])


def back(pool: pack.Pool, number: int) -> np.ndarray:
    return unpack(pool.packed[number])


def test_columns_come_back_as_exact_as_promised() -> None:
    pool = pack.Pool()
    times = np.array([-3.0, 0.0, 1e-6, 69.999999, np.nan])
    values = np.array([1e-3, 123.456789, np.nan, -5e4, 0.0])
    assert np.nanmax(np.abs(back(pool, pool.times(times)) - times)) < 0.6e-6
    again = back(pool, pool.values(values))
    assert np.nanmax(np.abs(again - values) / np.maximum(np.abs(values), 1e-9)) < 1.2e-7
    assert np.isnan(again[2])
    assert pool.times(times) == 0 and pool.values(values) == 1 and len(pool.packed) == 2  # each once


def test_delays_need_three_bytes() -> None:
    """Where a step of the 24 bits is finer than any clock; idle and loaded delays are together in a column."""
    rng = np.random.default_rng(3)
    values = np.concatenate([1 + rng.exponential(0.01, 500), 100 + rng.exponential(20, 3000), [np.nan]])
    pool = pack.Pool()
    again = back(pool, pool.values(values))
    assert pool.packed[0]["type"] == "i24" and np.isnan(again[-1])
    assert np.nanmax(np.abs(again - values)) < 2e-5  # 20 ns, in ms
    spike = np.append(values, 1e9)
    assert back(pool, pool.values(spike))[:500] == pytest.approx(values[:500], rel=1.2e-7) and pool.packed[1]["type"] == "f32"


@pytest.mark.parametrize("values", [[], [np.nan, np.nan], [1e308, -1e308, 5e-324], [np.inf, -np.inf]])
def test_strange_columns_are_packed_too(values: list[float]) -> None:
    pool = pack.Pool()
    given = np.array(values)
    np.testing.assert_array_equal(back(pool, pool.values(given)), given)
    assert len(back(pool, pool.times(given))) == len(values)


def test_long_series_are_thinned_for_the_page_and_that_is_said(rrul: Run) -> None:
    panel = makers.latency(rrul)
    assert panel is not None
    pool = pack.Pool()
    packed = pack.panel(panel, pool, 500)
    assert any("drawn with" in note for note in packed["notes"])
    assert all(pool.packed[series["x"]]["count"] <= 520 for series in packed["series"])
    assert not any("drawn with" in note for note in pack.panel(panel, pool, 0)["notes"])


@pytest.mark.parametrize("plot", [name for name, one in plots.PLOTS.items() if one.reads])
def test_a_plot_of_few_columns_is_that_of_all(rrul: Run, plot: str) -> None:
    light = open_run(rrul.path)
    picture.narrow([light], picture.Picture(plot))
    assert len(light.table("latency").column_names) < len(rrul.table("latency").column_names)
    assert of_model(plot, plots.model([light], plot)) == of_model(plot, plots.model([rrul], plot))


def test_the_series_of_two_runs_are_distinct(tmp_path: Path, rrul: Run) -> None:
    (both,) = plots.model([rrul, open_run(shutil.copy(rrul.path, tmp_path / "other.ktrxer"))], "ping_cdf").panels
    assert len(both.series) == 16
    assert len({(one.color, one.dash) for one in both.series}) == 16
