# SPDX-License-Identifier: MIT OR Apache-2.0
"""The settings of a picture: their texts, what they change in the plots, and the same picture by `ktrxer plot` and by the explorer."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import drawn_texts
import numpy as np
import panel_runs
import pytest
from explore_server import opened
from ktrxer.cli import main
from ktrxer.explore.answers import Answers, Refused
from ktrxer.explore.library import Library
from ktrxer.panels import picture, settings
from ktrxer.panels.errors import SettingError
from ktrxer.panels.model import PlotModel
from ktrxer.panels.picture import Picture
from ktrxer.panels.spec import Options
from ktrxer.store import Run, open_run
from ktrxer.view import figure, pack, text

NAMES = ("fifo-1", "fifo-2", "fq-1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("settings")
    for i, (name, delay) in enumerate(zip(NAMES, (80, 90, 5), strict=True)):
        panel_runs.run(directory, name, up_ms=delay, seed=i + 1, seconds=12, loss=0.02, title=name)
    return directory


@pytest.fixture(scope="module")
def runs(place: Path) -> list[Run]:
    return [open_run(place / f"{name}.ktrxer") for name in NAMES]


def drawn(runs: list[Run], plot: str, arrange: Any = "overlay", **given: str | list[str]) -> PlotModel:
    """`given`: texts of settings, with `_` for `-`."""
    texts = {name.replace("_", "-"): [value] if isinstance(value, str) else value for name, value in given.items()}
    return picture.model(runs, Picture(plot, arrange, settings.parse(texts)))


# ------------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("name", "texts", "field", "value"),
    [
        ("part", ["load"], "part", "load"),
        ("data-cutoff", ["5,-5"], "part", (5.0, -5.0)),
        ("data-cutoff", ["0,0"], "part", (0.0, 0.0)),
        ("bounds-y", ["50"], "bounds_y", (None, 50.0)),
        ("bounds-y", ["10,"], "bounds_y", (10.0, None)),
        ("bounds-x", ["-1.5,2e3"], "bounds_x", (-1.5, 2000.0)),
        ("scaling", ["5,95"], "scaling", (5.0, 95.0)),
        ("smoothing", ["10"], "smooth", 10),
        ("norm-factor", ["0.5"], "norm", 0.5),
        ("zero-y", ["yes"], "zero", True),
        ("no-zero-y", ["yes"], "zero", False),
        ("series", ["UDP*", "ICMP"], "only", ("UDP*", "ICMP")),
        ("replace-legend", ["UDP=Probe", "a=b=c", "x="], "relabel", (("UDP", "Probe"), ("a", "b=c"), ("x", ""))),
        ("no-title", ["yes"], "title", ""),
        ("override-group-by", ["batch"], "by", "batch"),
        ("filter-regexp", [r"-\d$"], "drop_names", (r"-\d$",)),
        ("no-print-n", ["yes"], "count", False),
    ],
)
def test_a_text_is_read(name: str, texts: list[str], field: str, value: Any) -> None:
    made = settings.parse({name: texts})
    assert getattr(made, field) == value and hash(made) == hash(settings.parse({name: texts}))
    assert made != Options() or value == getattr(Options(), field)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nonsense": ["1"]}, "unknown setting 'nonsense'; valid: part, data-cutoff"),
        ({"part": ["../x"]}, "part: '../x' is wrong; valid: whole, load, idle"),
        ({"part": ["load", "idle"]}, "part: 2 values are given; at most 1 can be"),
        ({"part": ["load"], "data-cutoff": ["1,2"]}, "data-cutoff: contradicts part"),
        ({"data-cutoff": ["5"]}, "valid: BEGIN,END"),
        ({"data-cutoff": ["5,4"]}, "valid: BEGIN,END"),
        ({"data-cutoff": ["-1,4"]}, "valid: BEGIN,END"),
        ({"bounds-y": [""]}, "bounds-y: '' is wrong"),
        ({"bounds-y": [","]}, "bounds-y: ',' is wrong"),
        ({"bounds-y": ["2,1"]}, "bounds-y: '2,1' is wrong"),
        ({"bounds-y": ["nan,1"]}, "bounds-y: 'nan,1' is wrong"),
        ({"bounds-x": ["0,1e999"]}, "bounds-x: '0,1e999' is wrong"),
        ({"scaling": ["95,5"]}, "valid: LOW,HIGH, percentiles"),
        ({"scaling": ["0,101"]}, "valid: LOW,HIGH, percentiles"),
        ({"scaling": ["5,95"], "bounds-y": ["9"]}, "scaling: contradicts bounds-y"),
        ({"smoothing": ["1"]}, "smoothing: '1' is wrong"),
        ({"smoothing": ["٣"]}, "is wrong; valid: a whole number of samples from 2"),
        ({"smoothing": ["9999999"]}, "is wrong; valid: a whole number of samples from 2"),
        ({"norm-factor": ["0"]}, "norm-factor: '0' is wrong"),
        ({"zero-y": ["no"]}, "zero-y: 'no' is wrong; valid: yes"),
        ({"zero-y": ["yes"], "no-zero-y": ["yes"]}, "no-zero-y: contradicts zero-y"),
        ({"zero-y": ["yes"], "log": ["y"]}, "zero-y: contradicts log y"),
        ({"absolute-time": ["yes"], "concatenate": ["yes"]}, "absolute-time: contradicts concatenate"),
        ({"override-title": ["a\nb"]}, "valid: a line of text"),
        ({"override-title": ["x" * 201]}, "valid: at most 200 characters"),
        ({"override-label": ["x"] * 65}, "65 values are given; at most 64"),
        ({"replace-legend": ["=x"]}, "valid: TEXT=REPLACEMENT"),
        ({"filter-regexp": ["("]}, "valid: a regular expression"),
    ],
)
def test_a_wrong_text_has_one_line_that_names_the_setting(given: dict[str, list[str]], words: str) -> None:
    with pytest.raises(SettingError) as error:
        settings.parse(given)
    said = str(error.value)
    assert words in said and "\n" not in said and len(said) < 600
    assert said.split(":")[0] in given or said.startswith("unknown setting")


def test_texts_are_those_of_a_command_line() -> None:
    given = {"no-title": ["yes"], "series": ["a b", "--c"], "bounds-y": ["-5,5"], "part": []}
    assert settings.texts(given) == ["--bounds-y=-5,5", "--series=a b", "--series=--c", "--no-title"]


# ------------------------------------------------------------------------------------------------------------------- plots


def test_a_part_of_the_time_and_some_series_are_drawn(runs: list[Run]) -> None:
    (panel,) = drawn(runs[:1], "ping", data_cutoff="5,-5", series=["UDP *"], filter_series=["UDP EF"]).panels
    (one,) = panel.series
    assert one.label == "UDP BE" and one.x.min() >= 5 and one.x.max() <= 7
    (panel,) = drawn(runs[:1], "ping_cdf", data_cutoff="5,7").panels
    counts = [int(series.hint.split(": ")[1].split()[0]) for series in panel.series]
    assert 150 < max(counts) <= 201  # a probe every 10 ms


def test_smoothing_and_a_divisor_change_the_values(runs: list[Run]) -> None:
    whole = drawn(runs[:1], "ping", series=["Ping (ms) UDP BE"]).panels[0].series[0].y
    halves = drawn(runs[:1], "ping", series=["Ping (ms) UDP BE"], norm_factor="2").panels[0]
    assert np.nanmax(halves.series[0].y) == pytest.approx(np.nanmax(whole) / 2) and "Values are divided by 2." in halves.notes
    smooth = drawn(runs[:1], "ping", series=["Ping (ms) UDP BE"], smoothing="50").panels[0].series[0].y
    assert np.nanmax(smooth) < np.nanmax(whole)


@pytest.mark.slow
@pytest.mark.parametrize("plot", ["ping", "ping_cdf", "totals", "ping_heat", "ping_band", "box_ping", "ping_ccdf"])
def test_axes_titles_and_legends_are_changed_in_every_plot(runs: list[Run], plot: str) -> None:
    made = drawn(runs[:1], plot, bounds_y="0.1,95", label_x="Moment", label_y="Value", override_title="Mine", no_legend="yes")
    assert made.title == "Mine"
    for panel in made.panels:
        assert (panel.y.least, panel.y.most, panel.y.label, panel.x.label, panel.legend) == (0.1, 95, "Value", "Moment", False)
    assert "Moment" in text.draw(made, 80) or made.panels[0].x.names
    drawn_figure = figure.draw(made, vector=False)
    drawn_figure.canvas.draw()
    assert drawn_figure.axes[0].get_ylim() == pytest.approx((0.1, 95)) and drawn_texts.of_legend(drawn_figure.axes[0]) == []
    assert pack.panel(made.panels[0], pack.Pool(), 100)["legend"] is False


def test_no_title_leaves_its_place_to_the_plot(runs: list[Run]) -> None:
    with_title, without = (figure.draw(drawn(runs[:1], "ping", **more), vector=False) for more in ({}, {"no_title": "yes"}))
    assert without.get_figheight() < with_title.get_figheight() and len(without.texts) == len(with_title.texts) - 2
    assert text.draw(drawn(runs[:1], "ping", no_title="yes"), 80).splitlines()[0] == drawn(runs[:1], "ping").panels[0].title


def test_scaling_ignores_outliers_and_says_so(runs: list[Run]) -> None:
    flows, *_, delays = drawn(runs[:1], "all", scaling="5,90").panels
    assert delays.y.most is not None and any("lie outside the axis" in note for note in delays.notes)
    assert flows.y.most is None and not any("lie outside" in note for note in flows.notes)  # their rate is the same all the time


def test_several_runs_have_labels_times_and_groups(runs: list[Run]) -> None:
    made = drawn(runs, "ping", override_label=["A", "B"], series=["Ping (ms) UDP BE"]).panels[0]
    assert [one.label for one in made.series] == ["A", "B", "fq-1"]
    made = drawn(runs, "ping", concatenate="yes", series=["Ping (ms) UDP BE"]).panels[0]
    begins = [one.x.min() for one in made.series]
    assert begins == pytest.approx([0, 12, 24], abs=0.1)
    made = drawn(runs, "ping", absolute_time="yes", series=["Ping (ms) UDP BE"]).panels[0]
    assert [one.x.min() for one in made.series] == pytest.approx([0, 3600, 7200], abs=0.1)
    made = drawn(runs, "ping_cdf_combine", no_print_n="yes", override_group_by="name", series=["Ping (ms) avg"]).panels[0]
    assert [one.label for one in made.series] == ["fifo", "fq"]
    made = drawn(runs, "ping", override_label=["A", "B", "C"], arrange="beside")
    assert [panel.title for panel in made.panels] == ["A", "B", "C"]
    own = drawn(runs, "ping", "beside", own_axes="yes").panels
    assert own[0].y.most is None or own[0].y.most != own[2].y.most


@pytest.mark.parametrize(
    ("plot", "given", "words"),
    [
        ("ping", {"series": ["nope"]}, "series: this plot has no series 'nope'; valid: Ping (ms)"),
        ("ping", {"filter_series": ["nope"]}, "filter-series: this plot has no series 'nope'"),
        ("ping_cdf", {"smoothing": "5"}, "smoothing: does not fit the plot 'ping_cdf'; it fits plots of series over time"),
        ("ping_cdf", {"scaling": "5,95"}, "scaling: fits plots of samples over time"),
        ("ping", {"log": "x"}, "log: the x axis of this plot has times or names"),
        ("box_ping", {"bounds_x": "0,1"}, "bounds-x: the x axis of this plot has names"),
        ("ping", {"bounds_x": "500,600"}, "bounds-x: no sample of this plot lies there; they lie from 0"),
        ("ping", {"no_print_n": "yes"}, "no-print-n: does not fit the plot 'ping'"),
        ("ping", {"own_axes": "yes"}, "own-axes: does not fit the plot 'ping'"),
        ("ping", {"override_label": ["a", "b"]}, "override-label: 2 labels are given for 1 run"),
        ("ping_ccdf", {"bounds_y": "-1,1"}, "bounds-y: a logarithmic axis has only values above zero"),
    ],
)
def test_a_setting_that_fits_no_panel_is_refused(runs: list[Run], plot: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError) as error:
        drawn(runs[:1], plot, **given)
    assert words in str(error.value)


# --------------------------------------------------------------------------------------------- the command and the explorer


SAME: list[tuple[str, str, dict[str, list[str]]]] = [
    ("ping", "overlay", {"part": ["load"], "series": ["UDP BE"]}),
    ("ping", "overlay", {"data-cutoff": ["4,8"], "smoothing": ["5"], "replace-legend": ["UDP=Probe"]}),
    ("ping_cdf", "overlay", {"log": ["x"], "norm-factor": ["2"], "override-label": ["A", "B", "C"]}),
    ("ping_cdf", "by-name", {"part": ["load"], "no-print-n": ["yes"]}),
    ("ping", "beside", {"bounds-y": ["0,70"], "override-title": ["Runs -- 'all'"]}),
    ("box_combine", "overlay", {"override-group-by": ["name"], "filter-regexp": ["f"]}),
    ("totals", "overlay", {"label-y": ["Rate"], "no-zero-y": ["yes"], "scaling": ["1,99"]}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("plot", "arrange", "given"), SAME)
def test_the_explorer_and_its_command_draw_the_same(
    place: Path, plot: str, arrange: str, given: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Answers(Library(place, None))
    asked = {"runs": [f"{name}.ktrxer" for name in NAMES], "plot": plot, "arrange": arrange, "settings": given}
    command = opened(answers.picture(asked))[0]["command"]
    saved = json.loads(answers.save(asked | {"kind": "json"})[0])
    words = shlex.split(command)
    assert words[:2] == ["ktrxer", "plot"] and words[-2] == "-o"
    assert main([*words[1:-2], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == saved


def test_a_run_that_cannot_be_read_moves_neither_labels_nor_places(place: Path) -> None:
    """A request names runs by their places: labels, the shown run and the command are those of the same runs."""
    (place / "broken.ktrxer").write_bytes(b"no run")
    answers = Answers(Library(place, None))
    names = ["broken.ktrxer", "fifo-1.ktrxer", "fq-1.ktrxer"]
    asked: dict[str, Any] = {"runs": names, "plot": "ping_cdf", "settings": {"override-label": ["X", "slow", "fast"]}}
    head = opened(answers.picture(asked))[0]
    assert [label for _, label in head["names"]] == ["slow", "fast"]
    assert {one["label"].split(":")[0] for one in head["panels"][0]["series"]} == {"slow", "fast"}
    assert "broken" not in head["command"] and "--override-label=slow --override-label=fast" in head["command"]
    head = opened(answers.picture(asked | {"shown": 1}))[0]
    assert head["title"] == "fifo-1" and "fifo-1.ktrxer" in head["command"] and "override-label" not in head["command"]
    with pytest.raises(Refused, match=r"broken\.ktrxer"):
        answers.picture(asked | {"shown": 0})


def test_the_explorer_refuses_wrong_settings(place: Path) -> None:
    answers = Answers(Library(place, None))
    for wrong in ("load", {"part": "load"}, {"part": [1]}, {"part": ["x"]}, {"nope": ["1"]}, {"log": ["x"]}):
        with pytest.raises(Refused) as error:
            answers.picture({"runs": ["fifo-1.ktrxer"], "plot": "ping", "settings": wrong})
        assert "\n" not in str(error.value)
    assert [one["name"] for one in answers.about({})["settings"]] == [one.name for one in settings.SETTINGS]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--part", "x"], "--part: 'x' is wrong; valid: whole, load, idle"),
        (["--plot", "ping", "--series", "nope"], "--series: this plot has no series 'nope'"),
        (["--bounds-y", "5,1"], "--bounds-y: '5,1' is wrong"),
        (["--all", "--no-title"], "--no-title is for one picture"),
        (["--zero-y", "--log", "y"], "--zero-y: contradicts log y"),
        (["--smoothing"], "--smoothing: a value is missing: --smoothing COUNT"),
    ],
)
def test_the_command_names_the_option(
    place: Path, tmp_path: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["plot", str(place / "fifo-1.ktrxer"), *words])
    except SystemExit as error:
        status = int(error.code or 0)
    told = capsys.readouterr()
    assert status == 2 and message in told.err and told.err.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_a_smoothed_series_has_only_samples_of_its_part_and_says_that_it_is_smoothed(runs: list[Run]) -> None:
    """The mean of an idle and a loaded sample is the delay of neither."""
    panel = drawn(runs[:1], "ping_cdf", part="load").panels[0]
    mean = next(one for one in panel.series if one.label == "mean")
    assert mean.x.min() > 85 and "Smoothed: mean; each value is the mean of 10 neighbouring samples." in panel.notes
    assert not any("Smoothed" in note for note in drawn(runs[:1], "ping_cdf", part="load", series=["UDP *"]).panels[0].notes)
    panel = drawn(runs[:1], "ping", series=["UDP BE"], data_cutoff="4,8", smoothing="100").panels[0]
    assert np.nanmin(panel.series[0].y) > 85 and any("the mean of 100 neighbouring samples" in note for note in panel.notes)
