# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot --text`: the plot model with letters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import golden_plots
import numpy as np
import panel_runs
import pytest
import view_samples
from ktrxer.cli import main
from ktrxer.panels.model import Axis, Panel, PlotModel, Series
from ktrxer.view import text


def one_panel(series: Series, y: Axis | None = None) -> list[str]:
    panel = Panel("p", "Panel", Axis("Time", "s"), y or Axis("Delay", "ms"), (series,))
    return text.draw(PlotModel("title", "subtitle", (panel,)), 60).splitlines()


def cells(lines: list[str]) -> list[str]:
    """The rows of the plot, the uppermost first, without what is left of them."""
    return [line[text.MARGIN :].ljust(60 - text.MARGIN) for line in lines if line[text.MARGIN - 1 : text.MARGIN] == "|"]


def heights(rows: list[str]) -> dict[int, int]:
    """The height of the uppermost sign of each column that has one."""
    found = {column: next((i for i, row in enumerate(rows) if row[column] != " "), None) for column in range(len(rows[0]))}
    return {column: text.ROWS - 1 - at for column, at in found.items() if at is not None}


def test_a_rising_line_goes_from_corner_to_corner() -> None:
    lines = one_panel(Series("s", "UDP", "line", np.array([0.0, 10.0]), np.array([0.0, 5.0])))
    at = list(heights(cells(lines)).values())
    assert len(cells(lines)) == text.ROWS and len(at) == 60 - text.MARGIN
    assert at == sorted(at) and at[0] == 0 and at[-1] == text.ROWS - 1
    assert lines[:2] == ["title", "subtitle"] and "Delay (ms)" in lines and "* UDP" in lines
    assert any(line.split() == ["0", "Time", "(s)", "10"] for line in lines)
    assert [line.split("|")[0].strip() for line in lines if "|" in line] == ["5", *[""] * (text.ROWS - 2), "0"]


def test_an_axis_of_time_begins_at_0_where_the_first_probe_left_within_a_column() -> None:
    series = Series("s", "UDP", "line", np.array([2.673e-05, 10.0]), np.array([0.0, 5.0]))
    panel = Panel("p", "Panel", Axis("Time", "s", zero=False), Axis("Delay", "ms"), (series,))
    lines = text.draw(PlotModel("title", "subtitle", (panel,)), 60).splitlines()
    assert any(line.split() == ["0", "Time", "(s)", "10"] for line in lines), lines


def test_a_gap_stays_a_gap() -> None:
    x = np.linspace(0, 10, 11)
    drawn = heights(cells(one_panel(Series("s", "UDP", "line", x, np.where((x > 3) & (x < 7), np.nan, 5.0)))))
    places = 60 - text.MARGIN - 1
    assert set(drawn) == {c for c in range(places + 1) if not round(0.3 * places) < c < round(0.7 * places)}


def test_a_logarithmic_axis_has_equal_steps() -> None:
    ten = Series("s", "a", "points", np.array([0.0, 1, 2]), np.array([1.0, 10, 100]))
    low, middle, high = heights(cells(one_panel(ten, Axis("Delay", "ms", "log", zero=False)))).values()
    assert (low, high) == (0, text.ROWS - 1) and middle in (text.ROWS // 2 - 1, text.ROWS // 2)


def test_each_style_and_both_axes_are_drawn() -> None:
    wanted = {
        golden_plots.curves: ("!", "right axis: Window (segments)", "o ICMP", "1 of 6 was lost"),
        golden_plots.shapes: ("###", "===", "1: fifo   2: fq_codel", "@@"),
    }
    for make, words in wanted.items():
        model = make()
        drawn = text.draw(model, 80)
        assert [word for word in words if word not in drawn] == [], drawn
        assert len(drawn.splitlines()) > text.ROWS * len(model.panels)


def test_a_wrong_width_is_bounded() -> None:
    for width, wanted in ((0, text.LEAST_WIDTH), (100_000, text.MOST_WIDTH)):
        frame = next(line for line in text.draw(golden_plots.curves(), width).splitlines() if line.strip().startswith("+-"))
        assert len(frame) == wanted


def test_a_panel_without_samples_is_a_frame() -> None:
    model = golden_plots.curves()
    empty = replace(model.panels[0], series=(), event_rows=())
    assert "Round trip" in text.draw(replace(model, panels=(empty,)), 60)


def test_the_command_prints_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    panel_runs.run(tmp_path, "fifo", up_ms=80, seconds=12)
    view_samples.hostile(tmp_path)
    assert main(["plot", str(tmp_path / "fifo.ktrxer"), "--plot", "ping", "--text"]) == 0
    told = capsys.readouterr().out
    assert "Round trip (ms)" in told and "* UDP BE" in told and max(map(len, told.splitlines()[:16])) <= 90
    assert main(["plot", str(tmp_path / "fifo.ktrxer"), "--plot", "ping_cdf", "--text"]) == 0
    told = capsys.readouterr().out
    assert "UDP BE, idle" in told and "Dotted" not in told, "text has signs, not dashes"
    for plot in ("all", "ping", "ping_cdf", "ping_heat"):  # huge values, NaN, control characters
        assert main(["plot", str(tmp_path / "hostile.ktrxer"), "--plot", plot, "--text"]) == 0
        told = capsys.readouterr().out
        assert all(line.isprintable() for line in told.splitlines())
    with pytest.raises(SystemExit):
        main(["plot", str(tmp_path / "fifo.ktrxer"), "--text", "-o", "x.svg"])
    assert "--text prints the plot" in capsys.readouterr().err
