# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot --all` and `--style`, and golden images of what matplotlib draws."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
import zlib
from dataclasses import replace
from pathlib import Path

import drawn_texts
import golden_plots
import numpy as np
import panel_runs
import pytest
import view_samples
from ktrxer.cli import main
from ktrxer.panels import plots
from ktrxer.panels.model import Axis, Panel, PlotModel, Series
from ktrxer.store import open_run
from ktrxer.view import arguments, figure
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 2.0  # points of 1/72 inch: a release of matplotlib may measure a text a little differently


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plot")
    panel_runs.run(directory, "fifo", up_ms=80, seconds=12, plots=["ping", "ping_cdf", "totals_scaled", "ping", "no_such_plot"])
    panel_runs.run(directory, "fq", up_ms=5, seconds=12, plots=["box_ping", "tcp_cwnd"])
    view_samples.empty(directory)
    view_samples.damaged(directory, synthetic(directory, seconds=8, delay=2, name="rrul"))
    return directory


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --------------------------------------------------------------------------------------------------------------------- all


@pytest.mark.slow
def test_all_draws_each_plot_of_each_test(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "out").mkdir()
    words = ["plot", str(place / "fifo.ktrxer"), str(place / "fq.ktrxer"), "--all", "--format", "png", "-D", "out"]
    assert main(words) == 0
    told = capsys.readouterr()
    wanted = {"fifo-ping.png", "fifo-ping_cdf.png", "fifo-totals_scaled.png", "fq-box_ping.png"}
    assert {path.name for path in (here / "out").iterdir()} == wanted
    assert {Path(line).name for line in told.out.split()} == wanted
    assert all((here / "out" / name).read_bytes().startswith(b"\x89PNG") for name in wanted)
    assert told.err == "ktrxer plot: left out: fq: no samples for the plot 'tcp_cwnd'\n"
    # The same picture as of a command for it alone.
    assert main(["plot", str(place / "fifo.ktrxer"), "--plot", "ping_cdf", "-o", "one.png"]) == 0
    assert (here / "one.png").read_bytes() == (here / "out" / "fifo-ping_cdf.png").read_bytes()


@pytest.mark.slow
def test_all_goes_on_after_a_run_that_cannot_be_drawn(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.ktrxer").write_bytes(b"no run")
    assert main(["plot", "broken.ktrxer", str(place / "empty.ktrxer"), str(place / "fq.ktrxer"), "--all"]) == 1
    told = capsys.readouterr()
    assert "broken.ktrxer" in told.err and "empty.ktrxer: no plot of its test has samples" in told.err
    assert told.out == "fq-box_ping.svg\n"


@pytest.mark.slow
def test_all_replaces_no_file_unasked(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "fifo-ping.svg").write_text("drawn by hand")
    assert main(["plot", str(place / "fifo.ktrxer"), "--all"]) == 1
    told = capsys.readouterr()
    assert "fifo-ping.svg: exists already" in told.err and told.out.split() == ["fifo-ping_cdf.svg", "fifo-totals_scaled.svg"]
    assert (here / "fifo-ping.svg").read_text() == "drawn by hand"
    assert main(["plot", str(place / "fifo.ktrxer"), "--all", "--force", "--json"]) == 0
    made = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["plot"] for one in made] == ["ping", "ping_cdf", "totals_scaled"] and made[0]["panels"][0]["y"]["unit"] == "ms"


def test_all_keeps_runs_of_the_same_name_apart(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "other").mkdir()
    shutil.copy(place / "fq.ktrxer", here / "other" / "fifo.ktrxer")
    shutil.copy(place / "fq.ktrxer", here / "other" / "fq.ktrxer")
    assert main(["plot", str(place / "fq.ktrxer"), "other/fifo.ktrxer", "other/fq.ktrxer", "--all", "--force"]) == 1
    told = capsys.readouterr()
    assert told.out.split() == ["fq-box_ping.svg", "fifo-box_ping.svg"]
    assert f"fq-box_ping.svg: is the picture of {place / 'fq.ktrxer'}; draw other/fq.ktrxer to another folder (-D)" in told.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--all", "-o", "x.svg"], "for one picture"),
        (["--all", "--plot", "ping"], "for one picture"),
        (["--all", "--arrange", "all"], "for one picture"),
        (["--all", "-D", "nowhere"], "No such file or directory"),
        (["-o", "x.svg", "--format", "pdf"], "-o names the whole file"),
        (["--style", "poster"], "is not known; it is one of"),
    ],
)
def test_wrong_use(place: Path, here: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["plot", str(place / "fifo.ktrxer"), *words])
    except SystemExit as error:
        status = int(error.code or 0)
    told = capsys.readouterr()
    assert status == 2 and message in told.err and told.err.count("\n") == 1 and list(here.iterdir()) == []


def test_the_first_plot_may_be_the_recipe_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is any text, also one that looks like a path."""
    own = [{"name": name, "title": "Mine", "type": "cdf", "series": ["Ping*"]} for name in ("../mine", "my plot")]
    made = panel_runs.run(tmp_path, "own", seconds=12, plots=["../mine", "my plot", "ping"], panels=own)
    assert plots.of_test(made) == ["../mine", "my plot", "ping"] and plots.default(made) == "../mine"
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert main(["plot", "../own.ktrxer", "--all"]) == 0
    assert {path.name for path in folder.iterdir()} == {"own-..-mine.svg", "own-my-plot.svg", "own-ping.svg"}
    assert {path.name for path in tmp_path.iterdir()} == {"own.ktrxer", "folder"}


# ------------------------------------------------------------------------------------------------------------------- style


@pytest.mark.parametrize(("style", "inches"), [("screen", 9.0), ("column", 3.5), ("page", 7.16)])
def test_a_style_has_its_width(place: Path, here: Path, style: str, inches: float) -> None:
    assert main(["plot", str(place / "fifo.ktrxer"), "--plot", "ping_cdf", "--style", style, "-o", "x.svg"]) == 0
    root = xml.etree.ElementTree.parse(here / "x.svg").getroot()
    assert float(root.get("width", "").removesuffix("pt")) == pytest.approx(72 * inches, abs=0.1)
    words = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert bool(words) == (style == "screen"), "letters are outlines in a figure for print"


@pytest.mark.slow
def test_a_pdf_contains_its_font(place: Path, here: Path) -> None:
    assert main(["plot", str(place / "fifo.ktrxer"), "--plot", "ping_cdf", "--style", "column", "-o", "x.pdf"]) == 0
    raw = (here / "x.pdf").read_bytes()
    texts = [raw]
    for found in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL):
        try:
            texts.append(zlib.decompress(found[1]))
        except zlib.error:
            continue
    whole = b"\n".join(texts)
    assert b"/FontFile2" in whole and b"/Type3" not in whole  # TrueType: publishers refuse fonts of type 3


@pytest.mark.slow
def test_nothing_stands_on_another_in_a_narrow_figure(place: Path) -> None:
    import matplotlib

    for plot in ("ping", "ping_cdf", "totals", "box_ping"):
        model = plots.model([open_run(place / "fifo.ktrxer")], plot)
        look = figure.LOOKS["column"]
        with matplotlib.rc_context(figure.STYLE | {"font.size": look.font} | dict(look.settings)):
            drawn = figure.draw(model, vector=False, look=look)
            canvas = drawn.canvas
            canvas.draw()
            renderer = canvas.get_renderer()
        boxes = [box for _, box in drawn_texts.boxes(drawn, renderer)]
        assert len(boxes) > 3
        for box in boxes:
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= drawn.bbox.x1 + 1 and box.y1 <= drawn.bbox.y1 + 1, plot
        for i, box in enumerate(boxes):
            for other in boxes[i + 1 :]:
                assert min(min(box.x1, other.x1) - max(box.x0, other.x0), min(box.y1, other.y1) - max(box.y0, other.y0)) <= 2, plot


def test_a_legend_of_hundreds_of_series_is_cut() -> None:
    x = np.array([0.0, 1.0])

    def names(count: int) -> tuple[list[str], float]:
        series = tuple(Series(f"{i}", f"S{i}", "line", x, x + i) for i in range(count))
        drawn = figure.draw(PlotModel("", "", (Panel("latency", "", Axis("", "s"), Axis("", "ms"), series),)), vector=False)
        return [text.get_text() for text in drawn_texts.of_legend(drawn.axes[0])], drawn.get_figheight()

    most = figure.MOST_NAMES
    every, height = names(most)
    assert every == [f"S{i}" for i in range(most)]
    cut, higher = names(480)
    assert cut == [*every, f"and {480 - most} further series"]
    assert higher - height < 0.4, "inches: one line more"


def test_the_names_of_the_styles_are_those_of_the_looks() -> None:
    assert tuple(figure.LOOKS) == arguments.STYLES


# ------------------------------------------------------------------------------------------------------------------ golden


def different(golden: list[golden_plots.Part], made: list[golden_plots.Part]) -> str:
    """The first difference; "": none."""
    for old, new in zip(golden, made, strict=False):
        if old.what != new.what or len(old.numbers) != len(new.numbers):
            return f"{old} became {new}"
        if any(abs(a - b) > TOLERANCE for a, b in zip(old.numbers, new.numbers, strict=True)):
            return f"{old} moved to {new}"
    return "" if len(golden) == len(made) else f"{len(golden)} parts became {len(made)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", golden_plots.IMAGES)
def test_a_picture_is_as_the_golden_one(name: str, tmp_path: Path) -> None:
    """After a wanted change: `PYTHONPATH=python python tests/python/golden_plots.py`, and look at the new pictures."""
    made = tmp_path / "made.svg"
    golden_plots.draw(name, made)
    golden = golden_plots.parts(golden_plots.GOLDEN / f"{name}.svg")
    assert len(golden) > 40
    assert different(golden, golden_plots.parts(made)) == ""


def test_a_changed_picture_differs_from_the_golden_one(tmp_path: Path) -> None:
    model = golden_plots.model_of("delay")
    (latency,) = model.panels
    ping, alone = latency.series
    moved = replace(ping, y=ping.y + 20.0)
    changes = {
        "moved to": replace(latency, series=(moved, alone)),
        "=#015fd5": replace(latency, series=(replace(ping, color=3), alone)),
        "text Round trip": replace(latency, title="Another title"),
    }
    golden = golden_plots.parts(golden_plots.GOLDEN / "delay.svg")
    for what, panel in changes.items():
        figure.save(replace(model, panels=(panel,)), tmp_path / "x.svg", "svg")
        assert what in different(golden, golden_plots.parts(tmp_path / "x.svg")), what


@pytest.mark.slow
def test_a_picture_imports_no_more_than_it_needs(tmp_path):
    """matplotlib's module of three dimensions, the summary of a run and the file systems of other hosts are a tenth of its time."""
    path = synthetic(tmp_path, seconds=4, delay=1, seed=1, name="whole")
    code = f"""if True:
        import sys
        from ktrxer.cli import main
        assert main(["plot", {str(path)!r}, "-o", {str(tmp_path / "whole.png")!r}]) == 0
        import mpl_toolkits  # a recipe may use it
        print(*sys.modules)"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.split())
    assert {"matplotlib.figure", "pyarrow.parquet", "ktrxer.panels.plots"} <= loaded and done.stderr == ""
    unused = {"mpl_toolkits.mplot3d", "pandas", "pyarrow._s3fs", "matplotlib.pyplot", "ktrxer.summary.figures", "ktrxer.panels.headline"}
    assert not unused & loaded
