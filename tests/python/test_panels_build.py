# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots from specifications, over runs whose numbers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ktrxer.analyse.compare import compare
from ktrxer.analyse.figures import of_summary
from ktrxer.analyse.grouping import Group, Member, facts
from ktrxer.panels import comparison, order, plots
from ktrxer.panels.arrange import Arrange
from ktrxer.panels.build import build
from ktrxer.panels.errors import BuildError, PlotError
from ktrxer.panels.events import rises
from ktrxer.panels.flent_variants import SPECS
from ktrxer.panels.headline import headline
from ktrxer.panels.model import Panel, PlotModel
from ktrxer.panels.picture import Picture, model
from ktrxer.panels.spec import Options, Pick, Spec
from ktrxer.panels.tracks import fairness, sum_at, tracks
from ktrxer.store import Run
from ktrxer.summary.figures import summarise
from ktrxer.view import figure
from panel_runs import run
from synthetic import synthetic_run

PROBES = (Pick("Ping (ms)**", exclude=("*avg",)),)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two runs over a short queue, two over a long one."""
    place = tmp_path_factory.mktemp("runs")
    return [
        run(place, f"q-{name}-{i}", title="", up_ms=delay, seed=i, seconds=16) for name, delay in (("short", 10), ("long", 100)) for i in (1, 2)
    ]


def one(spec: Spec, runs: list[Run], **more: object) -> Panel:
    (panel,), _ = build("x", {"x": spec}, runs, Options(**more))  # type: ignore[arg-type]
    return panel


def test_tracks_have_the_names_of_flent(four: list[Run]) -> None:
    found = tracks(four[0])
    assert {"Ping (ms) UDP BE", "Ping (ms) UDP BE::owd_up", "Ping (ms) UDP EF::own_queue", "Ping (ms) avg", "TCP upload BE", "TCP upload sum",
            "TCP download avg", "TCP totals"} <= set(found)  # fmt: skip
    assert found["Ping (ms) UDP BE"].unit == "ms" and found["TCP upload sum"].unit == "Mbit/s"
    assert np.nanmedian(found["TCP upload sum"].y) == pytest.approx(20, rel=0.01)
    assert np.nanmedian(found["TCP totals"].y) == pytest.approx(40, rel=0.01)
    assert len(found["TCP upload BE"].t) == len(found["TCP upload BE"].y)


def test_the_index_of_fairness_and_sums() -> None:
    assert fairness(np.array([[1.0, 4.0, np.nan], [1.0, 0.0, 1.0]])) == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    t, y = sum_at((np.array([0.1, 0.3, 0.5]), np.array([1.0, 2, 3])), (np.array([0.3, 0.5, 0.7]), np.array([10.0, np.nan, 30])), 0.2)
    assert t == pytest.approx([0.2, 0.4]) and y == pytest.approx([12, np.nan], nan_ok=True)


def test_a_part_of_the_time_is_cut_out(four: list[Run]) -> None:
    whole, load = (one(Spec("series", "s", PROBES, part=part), four[2:3]) for part in ("whole", "load"))  # type: ignore[arg-type]
    assert whole.series[0].x[0] < 0.1 and load.series[0].x[0] >= 4 and load.series[0].x[-1] < 12
    assert one(Spec("series", "s", PROBES), four[2:3], part=(5.0, -5.0)).series[0].x[-1] <= 11
    assert float(np.nanmedian(load.series[0].y)) == pytest.approx(110, rel=0.05) and load.y.unit == "ms"


def test_runs_beside_each_other_and_one_after_the_other(four: list[Run]) -> None:
    spec = Spec("series", "s", PROBES[:1])
    beside = one(spec, four[:2])
    assert len(beside.series) == 4 and len({s.label for s in beside.series}) == 4 and len({(s.color, s.dash) for s in beside.series}) == 4
    after = one(spec, four[:2], concatenate=True)
    assert after.series[2].x[0] >= 16 > after.series[0].x[-1] and after.bands == ()
    absolute = one(spec, four[:2], absolute_time=True)
    assert absolute.series[2].x[0] >= 3600


def test_pooled_and_reduced_runs(four: list[Run]) -> None:
    pool = one(Spec("cdf", "s", PROBES[:1], part="load", combine="pooled"), four, only=("Ping (ms) UDP BE",))
    assert [s.label for s in pool.series] == ["short (n=2)", "long (n=2)"]
    assert np.interp(0.5, pool.series[1].y / 100, pool.series[1].x) == pytest.approx(110, rel=0.05)
    box = one(Spec("box", "s", (Pick("Ping (ms) UDP BE"),), part="load", combine="each"), four)
    assert box.x.names == ("short (n=2)", "long (n=2)") and [s.y[2] for s in box.series] == pytest.approx([20, 110], rel=0.05)
    added = one(Spec("bar", "s", (Pick("Ping (ms) UDP BE", reduce="mean_span"),), combine="each", part="load"), four, count=False)
    assert added.x.names == ("short", "long") and added.series[0].low is None  # two runs have no interval
    assert [s.y[0] for s in added.series] == pytest.approx([10, 100], rel=0.05), "above the empty queue, also where the load never leaves it"


def test_averaged_runs_have_the_range_of_the_runs(four: list[Run]) -> None:
    panel = one(Spec("series", "s", (Pick("TCP upload sum"),), combine="averaged"), four)
    first = panel.series[0]
    assert first.low is not None and first.high is not None and np.nanmedian(first.y) == pytest.approx(20, rel=0.02)


def test_two_axes(four: list[Run]) -> None:
    panel = one(Spec("series", "s", (Pick("TCP upload sum"), Pick("Ping (ms) avg", axis=2))), four[:1])
    assert panel.y2 is not None and (panel.y.unit, panel.y2.unit) == ("Mbit/s", "ms") and [s.axis for s in panel.series] == [1, 2]
    right = one(Spec("series", "s", (Pick("nothing"), Pick("Ping (ms) avg", axis=2))), four[:1])
    assert right.y2 is None and right.y.unit == "ms" and [s.axis for s in right.series] == [1]


def test_quantiles_of_two_runs(four: list[Run]) -> None:
    panel = one(Spec("qq", "s", (Pick("Ping (ms) UDP BE"),), part="load"), [four[0], four[2]])
    points = panel.series[0]
    assert points.style == "points" and np.median(points.x) == pytest.approx(20, rel=0.1) and np.median(points.y) == pytest.approx(110, rel=0.1)
    with pytest.raises(BuildError, match="compares two runs"):
        one(Spec("qq", "s", PROBES), four[:1])


def test_the_difference_of_groups(tmp_path: Path) -> None:
    runs = [
        run(tmp_path, f"d-{name}-{i}", title="", up_ms=delay, seed=i + 10, seconds=12) for name, delay in (("a", 10), ("b", 30)) for i in (1, 2, 3)
    ]
    panel = one(Spec("difference", "s", (Pick("Ping (ms) UDP BE"),), part="load", combine="each"), runs)
    (bar,) = panel.series
    assert bar.y[0] == pytest.approx(20, rel=0.05) and bar.low is not None and bar.high is not None
    assert bar.low[0] < 20.5 and bar.high[0] > 19.5 and panel.x.names == ("UDP BE: b - a",)
    with pytest.raises(BuildError, match="two groups"):
        one(Spec("difference", "s", PROBES, combine="each"), runs[:3])


def test_small_multiples_have_the_same_axes(four: list[Run]) -> None:
    panels, columns = build("x", {"x": Spec("series", "s", (Pick("Ping (ms) UDP BE"),), multiples="run")}, four)
    assert len(panels) == 4 and columns == 2 and len({panel.y.most for panel in panels}) == 1 and panels[0].title == "q-short-1"
    panels, _ = build("x", {"x": Spec("series", "s", PROBES, multiples="series")}, four[:1])
    assert [panel.title for panel in panels] == ["UDP BE", "UDP EF"] and [len(panel.series) for panel in panels] == [1, 1]


def test_outliers_do_not_set_the_axis(tmp_path: Path) -> None:
    made = run(tmp_path, up_ms=10)
    arrays = made.arrays(made.meta.of_kind("latency")[0])
    arrays["rtt_ns"][700] = 9e9
    panel = one(Spec("series", "s", (Pick("Ping (ms) UDP BE"),), scaling=(5, 95)), [made])
    assert panel.y.most is not None and panel.y.most < 100 and any("lie outside" in note for note in panel.notes)


def test_labels_filters_and_bounds(four: list[Run]) -> None:
    panel = one(Spec("series", "s", PROBES), four[:1], drop=("UDP EF",), relabel=(("UDP", "Probe"),), norm=2.0, bounds_y=(1.0, 50.0), log="y")
    assert [s.label for s in panel.series] == ["Probe BE"] and (panel.y.least, panel.y.most, panel.y.scale) == (1.0, 50.0, "log")
    assert float(np.nanmin(panel.series[0].y)) == pytest.approx(5, rel=0.05)


def test_lost_probes_are_rows_of_events(tmp_path: Path) -> None:
    panel = one(Spec("series", "s", PROBES), [run(tmp_path, loss=0.1)])
    assert [row.kind for row in panel.event_rows] == ["lost", "lost"] and all(len(row.x) > 100 for row in panel.event_rows)


def test_the_plots_of_a_recipe_are_drawn_by_name_and_in_reports(tmp_path: Path) -> None:
    own = [
        {"name": "mine", "title": "delay of EF", "series": ["Ping*EF"], "type": "time"},
        {"name": "tail", "title": "", "series": ["Ping (ms) UDP BE"], "type": "cdf"},
        {"name": "bad", "title": "x", "series": 7, "type": "time"},
        {"name": "strange", "title": "x", "series": ["*"], "type": ["time"]},
        {"title": "no name"},
    ]
    made = run(tmp_path, up_ms=20, panels=own)
    (panel,) = plots.model([made], "mine").panels
    assert panel.title == "Delay of EF" and [s.label for s in panel.series] == ["UDP EF"]
    assert set(plots.of_recipe(made)) == {"mine", "tail"}
    keys = [one.key for one in order.report_panels(made, headline(summarise(made)))]
    assert "mine" in keys and "tail" in keys
    with pytest.raises(PlotError, match="unknown plot 'bad'"):
        plots.model([made], "bad")


def test_counters_become_events(tmp_path: Path) -> None:
    x, rise = rises(np.array([0, 1, 2, 3, 4, 5]) * 10**9, np.array([0, 0, 3, np.nan, 1, 2.0]))
    assert x.tolist() == [2, 5] and rise.tolist() == [3, 1]  # a restarted counter is no event
    panel = one(plots.OWN["ping_events"], [synthetic_run(tmp_path, seconds=10, delay=2)])
    kinds = [row.kind for row in panel.event_rows]
    assert {"lost", "drop", "retransmit"} <= set(kinds) and all(row.counts is None or (row.counts > 0).all() for row in panel.event_rows)


def test_no_samples_are_no_panel(tmp_path: Path, four: list[Run]) -> None:
    for kind in ("series", "band", "cdf", "ccdf", "histogram", "box", "violin", "bar", "line", "ellipse", "heat"):
        assert build("x", {"x": Spec(kind, "s", (Pick("no such series"),))}, four) == ([], 1)  # type: ignore[arg-type]
    lost = run(tmp_path, loss=1.0, idle_loss=1.0)
    for name, spec in (SPECS | plots.OWN).items():
        if spec.kind in ("qq", "difference") or spec.picks != PROBES:
            continue
        assert build(name, SPECS | plots.OWN, [lost])[0] == [], name
    with pytest.raises(PlotError, match="no samples for the plot 'ping_cdf_combine'"):
        plots.model([lost], "ping_cdf_combine")


def test_the_plots_of_queues_have_every_queue(tmp_path: Path) -> None:
    """`ktrxer run --with qdisc@netns:left` names its series otherwise than Flent's test qdisc-stats."""
    made = synthetic_run(tmp_path, seconds=10, delay=2)
    queues = [series.name for series in made.meta.of_kind("qdisc")]
    for name in ("drops", "backlog"):
        found = {series.key.rpartition("::")[0] for series in one(SPECS[name], [made]).series}
        assert queues and found == set(queues), name


@pytest.mark.parametrize("name", ["ellipsis", "totals"])
def test_runs_beyond_the_number_of_colours_are_told_apart_by_dashes(four: list[Run], name: str) -> None:
    panel = plots.model([*four, *four], name, Options(labels=tuple("abcdefgh"))).panels[0]
    lines = [series for series in panel.series if series.style != "points"]
    assert len(lines) >= 8 and len({(series.color, series.dash) for series in lines}) == len(lines)


def test_an_ellipse_covers_the_runs_of_a_group_together(four: list[Run]) -> None:
    def hints(arrange: Arrange) -> dict[str, int]:
        (panel,) = model(four, Picture("ellipsis_sum", arrange)).panels
        return {series.label: int(series.hint.split()[0].replace(",", "")) for series in panel.series if series.style == "outline"}

    alone = hints("overlay")
    assert hints("by-name") == {f"{name} (n=2)": alone[f"q-{name}-1"] + alone[f"q-{name}-2"] for name in ("short", "long")}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(plots.OWN))
def test_own_plots_are_drawn(four: list[Run], name: str) -> None:
    for runs in (four, four[:1]):
        if plots.OWN[name].kind == "difference" and len(runs) == 1:
            continue
        model = plots.model(runs, name)
        drawn = figure.draw(model, vector=False)
        drawn.canvas.draw()
        assert len(model.panels) >= 1 and all(panel.series for panel in model.panels)


@pytest.mark.slow
def test_every_plot_of_flent_that_an_rrul_has_is_drawn(tmp_path: Path) -> None:
    runs = [synthetic_run(tmp_path, seconds=12, delay=3, name=f"rrul-{i}", seed=i, title="") for i in (1, 2)]
    drawn = set()
    for name in SPECS:
        panels, columns = build(name, SPECS, runs)
        if panels:
            drawn.add(name)
            figure.draw(PlotModel(name, "", tuple(panels), columns=columns), vector=True).canvas.draw()
        for panel in panels:
            for series in panel.series:
                assert len(series.x) == len(series.y) or series.z is not None, (name, series.key)
                assert not np.isinf(series.y).any(), (name, series.key)
    assert {"all", "totals", "ping_cdf", "box_combine", "ellipsis", "ellipsis_combine", "qq_icmp", "tcp_rtt_cdf", "tcp_pacing", "totals_combine"} <= drawn


@pytest.mark.slow
def test_a_comparison_shows_differences_with_intervals(tmp_path: Path) -> None:
    groups, known = [], {}
    for name, delay in (("fifo", 60.0), ("codel", 6.0)):
        members = []
        for seed in (1, 2, 3):
            made = run(tmp_path, f"{name}-{seed}", up_ms=delay, seed=seed, seconds=12)
            figures = of_summary(summarise(made))
            known |= {one.key: one for one in figures if one.key not in known}
            members.append(Member(made.name, facts(made.meta), {one.key: one.value for one in figures}))
        groups.append(Group(name, members))
    panels = comparison.panels(compare(groups[0], groups[1], known))
    first = panels[0]
    assert first.key == "differences" and first.x.names[0] == "1" and first.series[0].label.startswith("1: ")
    loaded = next(series for series in first.series if series.key == "udp.rtt.load.p50")
    assert loaded.style == "box" and loaded.y[2] == pytest.approx(-77, abs=3) and loaded.y[0] < loaded.y[2] < loaded.y[4]
    assert {panel.y.unit for panel in panels[1:]} >= {"ms", "Mbit/s"}
    figure.draw(PlotModel("t", "", tuple(panels)), vector=False).canvas.draw()


def test_options_leave_the_specification_alone(four: list[Run]) -> None:
    spec = Spec("series", "s", PROBES)
    one(spec, four[:1], smooth=5)
    assert spec == replace(spec) and one(spec, four[:1], smooth=50).series[0].y.std() <= one(spec, four[:1]).series[0].y.std()
