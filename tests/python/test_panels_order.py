# SPDX-License-Identifier: MIT OR Apache-2.0
"""The order of a report's panels, which of them are folded, logarithmic axes, colours, and series that lie on each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ktrxer.panels import palette, parts, plots
from ktrxer.panels.headline import headline
from ktrxer.panels.model import Axis, Band, Panel, Series
from ktrxer.panels.order import axis_of_delays, coincident, report_panels, same_colours
from ktrxer.store.meta import Series as Stored
from ktrxer.summary.figures import summarise
from panel_runs import run


def arranged(directory: Path, **more: Any) -> list[Panel]:
    made = run(directory, **more)
    return report_panels(made, headline(summarise(made)))


def line(key: str, y: np.ndarray, x: np.ndarray | None = None, **more: Any) -> Series:
    return Series(key, key, "line", np.arange(len(y)) * 0.01 if x is None else x, np.asarray(y, float), **more)


def panel(*series: Series, key: str = "latency", **more: Any) -> Panel:
    return Panel(key, key, Axis("Time", "s"), Axis("Delay", "ms"), series, **more)


@pytest.mark.parametrize(
    ("delays", "first"),
    [
        ({"up_ms": 100}, ["latency", "oneway-up", "throughput-up"]),
        ({"down_ms": 100}, ["latency", "oneway-down", "throughput-down"]),
        ({"own_ms": 100}, ["latency", "host-queues", "throughput-up"]),
        ({"loss": 0.05}, ["latency"]),
        ({"verdict": "invalid", "reasons": ["late"], "late_us": 3000}, ["lateness", "latency"]),
    ],
)
def test_the_panels_that_show_the_answer_come_first(tmp_path: Path, delays: dict[str, Any], first: list[str]) -> None:
    keys = [one.key for one in arranged(tmp_path, **delays)]
    assert keys[: len(first)] == first


def test_panels_without_news_are_folded_with_a_reason_and_stand_last(tmp_path: Path) -> None:
    made = arranged(tmp_path, up_ms=100)
    folded = {one.key: one.folded for one in made if one.folded}
    assert folded["lateness"] == "No probe was later than the threshold."
    assert folded["host-queues"].startswith("p99 is") and folded["oneway-down"].startswith("The delay down changes by")
    assert "oneway-up" not in folded and "latency" not in folded
    state = [bool(one.folded) for one in made]
    assert state == sorted(state)


def test_late_probes_are_news(tmp_path: Path) -> None:
    assert not next(one for one in arranged(tmp_path, late_us=2000) if one.key == "lateness").folded


def test_a_hundredfold_delay_has_a_logarithmic_axis(tmp_path: Path) -> None:
    by_key = {one.key: one for one in arranged(tmp_path, base_ms=0.4, up_ms=200)}
    assert by_key["latency"].y.scale == "log" and not by_key["latency"].y.zero
    assert any("logarithmic, because the delay under load is" in note for note in by_key["latency"].notes)
    low = {one.key: one for one in arranged(tmp_path, name="low", up_ms=100)}
    assert low["latency"].y.scale == "linear"


def test_a_run_without_idle_samples_keeps_its_axis() -> None:
    band = (Band(0, 10, "load", "load"),)
    assert axis_of_delays(panel(line("a", np.full(500, 100.0)), bands=band)).y.scale == "linear"
    assert axis_of_delays(panel(line("a", np.full(500, np.nan)), bands=band)).y.scale == "linear"
    assert axis_of_delays(panel()).y.scale == "linear"


def test_series_that_lie_on_each_other_are_named() -> None:
    rng = np.random.default_rng(2)
    y = 50 + 20 * np.sin(np.arange(2000) / 100)
    made = coincident(panel(line("BE", y), line("EF", y + rng.normal(0, 0.1, 2000)), line("BK", y + 20)))
    assert made.notes == ("BE, EF coincide: for 95 % of the time they differ by less than 2 % of the axis.",)
    assert coincident(panel(line("BE", y), line("BK", y + 20))).notes == ()
    half = np.where(np.arange(2000) < 1000, y, np.nan)
    assert coincident(panel(line("BE", y), line("EF", half))).notes == ()  # the other half is not hidden
    assert coincident(panel(line("BE", np.full(9, np.nan)), line("EF", np.zeros(0)))).notes == ()


def test_a_series_keeps_its_colour_in_all_panels() -> None:
    first = panel(line("BE", np.ones(5), color=3), line("EF", np.ones(5), color=5))
    second = panel(line("EF", np.ones(5), color=2), line("new", np.ones(5), color=5), key="other")
    made = same_colours([first, second])
    looks = [{one.key: (one.color, one.dash) for one in each.series} for each in made]
    assert looks[0]["EF"] == looks[1]["EF"] == (5, ())
    assert looks[1]["new"] != looks[1]["EF"]  # the same colour, another dash
    again = same_colours(made)
    assert [one.series[0].color for one in again] == [one.series[0].color for one in made]


def test_a_direction_keeps_its_colour_without_the_other_one(tmp_path: Path) -> None:
    made = run(tmp_path)
    for one in made.meta.series:
        one.direction = None if one.direction == "down" else one.direction
    (total, *_) = plots.model([made], "totals").panels
    assert [one.color for one in total.series] == [palette.DIRECTIONS["up"]]


def test_folding_is_only_of_reports(tmp_path: Path) -> None:
    made = run(tmp_path, up_ms=50)
    assert not any(one.folded for one in plots.model([made], "lateness").panels)


def test_the_label_of_a_flow_of_a_recipes_own_group():
    """`late upload` of the group `late` is not `upload` in a legend that has `TCP upload`, too."""
    labels = [parts.label_of(Stored(1, name, "bytes", "byte", direction="up", group=group)) for name, group in (
        ("TCP upload", "TCP upload"), ("TCP upload BE", "TCP upload"), ("TCP upload 2", "TCP upload"), ("late upload", "late"))]  # fmt: skip
    assert labels == ["TCP upload", "BE", "flow 2", "late upload"]
