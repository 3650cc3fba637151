# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot` and `ktrxer report`: files, messages, exit statuses. The tests of the page in a browser are in web/browser/."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import drawn_texts
import pytest
import view_samples
from ktrxer.cli import main
from ktrxer.panels import plots
from ktrxer.store import RunWriter, open_run
from ktrxer.summary.figures import summarise
from ktrxer.view import page, report
from ktrxer.view.arguments import FORMATS
from synthetic import describe, synthetic


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("view")
    synthetic(directory, seconds=12, delay=3, name="rrul", title="A & B <i>")
    view_samples.hostile(directory)
    view_samples.empty(directory)
    view_samples.damaged(directory, directory / "rrul.ktrxer")
    return directory


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data_of(text: str) -> dict[str, Any]:
    at = text.index("{", text.index('id="report"'))
    return dict(json.loads(text[at : text.index("</script>", at)]))


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("command", [["report"], ["plot", "--plot", "ping"]])
def test_the_name_of_a_made_file(place: Path, here: Path, command: list[str], terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the name of the run. A terminal gets no control characters, a program the exact bytes."""
    bad = b"e\x1b]0;x\x07\xc2\x9b2J\xff"
    shutil.copy(place / "rrul.ktrxer", here / os.fsdecode(bad + b".ktrxer"))
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(out, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", out)
    assert main([*command, os.fsdecode(bad + b".ktrxer")]) == 0
    ending = b".html" if command == ["report"] else b"-ping.svg"
    assert (here / os.fsdecode(bad + ending)).is_file()
    assert out.buffer.getvalue() == (b"e?]0;x??2J?" if terminal else bad) + ending + b"\n"  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------------------------- plot


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_of_each_kind(place: Path, here: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(place / "rrul.ktrxer"), "--plot", "all", "-o", f"x.{kind}"]) == 0
    assert capsys.readouterr().out == f"x.{kind}\n"
    made = (here / f"x.{kind}").read_bytes()
    assert made.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "csv": b"panel,series,x,"}[kind])
    assert (here / f"x.{kind}").stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert len(list(here.iterdir())) == 1  # no incomplete file is left


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.slow
def test_the_svg_has_its_text_as_text_and_is_always_the_same(place: Path, here: Path) -> None:
    for name in ("a.svg", "b.svg"):
        assert main(["plot", str(place / "rrul.ktrxer"), "--plot", "all", "-o", name]) == 0
    text = (here / "a.svg").read_text()
    assert text == (here / "b.svg").read_text()
    words = {"".join(node.itertext()).strip() for node in xml.etree.ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")}
    assert {"A & B <i>", "Download throughput", "Throughput (Mbit/s)", "Round trip (ms)", "Time (s)", "BE", "EF", "sum of 4", "ICMP", "load", "idle"} <= words


@pytest.mark.slow
def test_no_text_stands_on_another_or_is_cut_off(place: Path) -> None:
    """The positions of the texts come from matplotlib."""
    import matplotlib
    from ktrxer.view import figure

    for plot in ("all", "ping_cdf", "lateness", "qdisc", "tcp_cwnd", "box_totals"):
        model = plots.model([open_run(place / "rrul.ktrxer")], plot)
        with matplotlib.rc_context(figure.STYLE):
            drawn = figure.draw(model, vector=False)
            renderer = drawn.canvas.get_renderer()
            drawn.draw(renderer)
            page_box = drawn.bbox
            titles = drawn_texts.boxes(drawn, renderer)
            titles += [(text.get_text(), text.get_window_extent(renderer)) for text in drawn.texts]
        for name, box in titles:
            if not name.strip():
                continue
            assert box.x0 >= page_box.x0 - 1 and box.x1 <= page_box.x1 + 1 and box.y0 >= page_box.y0 - 1 and box.y1 <= page_box.y1 + 1, (plot, name)
        for i, (name, box) in enumerate(titles):
            for other, at in titles[i + 1 :]:
                overlap = min(box.x1, at.x1) - max(box.x0, at.x0), min(box.y1, at.y1) - max(box.y0, at.y0)
                assert not (name.strip() and other.strip() and min(overlap) > 2), (plot, name, other)


@pytest.mark.slow
def test_matplotlib_is_used_as_it_is() -> None:
    """Its modules in sys.modules are its own, and a formula can be drawn after a plot."""
    program = (
        "import sys, io\nimport matplotlib.figure, matplotlib.artist, mpl_toolkits\nbefore = dict(sys.modules)\n"
        "from ktrxer.view import figure\nfrom ktrxer.panels.model import PlotModel\n"
        "figure.draw(PlotModel('t', 's', ()), vector=False).canvas.draw()\n"
        "print(all(sys.modules[name] is module for name, module in before.items()), matplotlib.artist.kwdoc(matplotlib.artist.Artist) != '')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n", done.stderr


def test_without_a_name_the_test_chooses_plot_and_file(place: Path, here: Path) -> None:
    assert main(["plot", str(place / "rrul.ktrxer")]) == 0
    (made,) = here.iterdir()
    assert re.fullmatch(r"rrul-all\w*\.svg", made.name)


def test_the_numbers_of_a_plot(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(place / "rrul.ktrxer"), "--plot", "ping", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (panel,) = told["panels"]
    assert panel["y"] == {"label": "Round trip", "unit": "ms"}
    series = panel["series"][0]
    assert series["name"] == "ICMP" and len(series["x"]) == len(series["y"]) == 1200
    assert len(series["lost"]) == sum(value is None for value in series["y"])
    assert list(here.iterdir()) == []
    assert main(["plot", str(place / "rrul.ktrxer"), "--plot", "ping", "--json", "-o", "x.png"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == "x.png" and told["panels"][0]["series"][0]["name"] == "ICMP" and "x" not in told["panels"][0]["series"][0]


def test_csv_has_all_that_is_drawn(place: Path, here: Path) -> None:
    """Bands, events and heat maps, too."""
    run = str(place / "rrul.ktrxer")
    rows: dict[str, list[dict[str, str]]] = {}
    for plot in ("ping_band", "ping_events", "ping_heat"):
        assert main(["plot", run, "--plot", plot, "-o", f"{plot}.csv"]) == 0
        rows[plot] = list(csv.DictReader((here / f"{plot}.csv").read_text().splitlines()))
    assert all(float(row["low"]) <= float(row["y"]) <= float(row["high"]) for row in rows["ping_band"] if row["y"])
    events = [row for row in rows["ping_events"] if row["y unit"] == "events"]
    assert {"drop", "retransmit"} <= {row["series"].rpartition(": ")[2] for row in events} and all(float(row["y"]) > 0 for row in events)
    shares: dict[str, float] = {}
    for row in rows["ping_heat"]:
        shares[row["x"]] = shares.get(row["x"], 0) + float(row["share"] or 0)
    assert len(shares) > 50 and all(total == pytest.approx(1) for total in shares.values() if total)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["RRUL", "--plot", "pign"], 2, "unknown plot 'pign'; did you mean ping? There are: all, totals, "),
        (["RRUL", "--plot", "nope"], 2, "unknown plot 'nope'; there are: all, totals, "),
        (["missing.ktrxer", "--plot", "nope_scaled"], 2, "unknown plot 'nope_scaled'; there are: all, "),
        (["RRUL", "-o", "x.gif"], 2, "x.gif: unknown format; the name must end in .svg, .pdf, .png, .csv"),
        (["RRUL", "-o", "nowhere/x.svg"], 1, "nowhere/x.svg: cannot be written: No such file or directory"),
        (["missing.ktrxer"], 1, "missing.ktrxer: No such file or directory"),
        (["EMPTY", "--plot", "all", "-o", "x.svg"], 1, "empty: no samples for the plot 'all'"),
        ([], 2, "RUN is missing: a file NAME.ktrxer"),
        (["RRUL", "--nonsense"], 2, "--nonsense: no such option"),
    ],
)
def test_wrong_use_of_plot(place: Path, here: Path, words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"RRUL": str(place / "rrul.ktrxer"), "EMPTY": str(place / "empty.ktrxer")}
    try:
        ended = main(["plot", *(files.get(word, word) for word in words)])
    except SystemExit as error:
        ended = int(error.code or 0)
    told = capsys.readouterr()
    assert ended == status
    assert message in told.err and told.err.startswith("ktrxer plot: ") and told.err.count("\n") == 1
    assert told.out == "" and list(here.iterdir()) == []


def test_a_hostile_run_is_drawn_as_text(place: Path, here: Path) -> None:
    for plot in ("all", "ping", "ping_cdf", "lateness"):
        assert main(["plot", str(place / "hostile.ktrxer"), "--plot", plot, "-o", f"{plot}.svg"]) == 0
        tree = xml.etree.ElementTree.parse(here / f"{plot}.svg")
        assert not [node for node in tree.iter() if str(node.tag).split("}")[-1] in ("script", "iframe", "foreignObject", "a")]
        # Thousands of marks are an embedded image.
        links = [value for node in tree.iter() for name, value in node.attrib.items() if name.endswith("href")]
        assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
        assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]


def test_a_run_is_never_overwritten_by_its_picture(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, name in (("plot", "x.svg"), ("report", "x.html")):
        run = here / name
        shutil.copy(place / "rrul.ktrxer", run)
        before = run.read_bytes()
        assert main([command, str(run), "-o", f"./{name}", "--force"]) == 1
        assert "would be overwritten" in capsys.readouterr().err
        assert run.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("words", [["plot", "--plot", "ping", "-o", "x.svg"], ["report", "-o", "x.html"], ["plot", "--plot", "ping"], ["report"]])
def test_a_file_is_replaced_on_demand_only(place: Path, here: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [words[0], str(place / "rrul.ktrxer"), *words[1:]]
    assert main(words) == 0
    made = Path(capsys.readouterr().out.strip())
    made.write_text("edited by hand")
    assert main(words) == 1
    assert capsys.readouterr().err == f"ktrxer {words[0]}: {made}: exists already; --force replaces it, -o or -D writes elsewhere\n"
    assert made.read_text() == "edited by hand"
    assert main([*words, "--force"]) == 0 and made.read_text() != "edited by hand"


def test_a_full_disk_leaves_the_old_file_whole(place: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "x.html").write_text("the old one")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(["report", str(place / "rrul.ktrxer"), "-o", "x.html", "--force"]) == 1
    assert "x.html: cannot be written: No space left on device" in capsys.readouterr().err
    assert (here / "x.html").read_text() == "the old one"
    assert [path.name for path in here.iterdir()] == ["x.html"]


# ------------------------------------------------------------------------------------------------------------------ report


def test_the_page_allows_itself_nothing_but_its_own_program(place: Path, here: Path) -> None:
    assert main(["report", str(place / "rrul.ktrxer")]) == 0
    text = (here / "rrul.html").read_text("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    rules = {rule.split(" ", 1)[0]: rule.split(" ", 1)[1] for rule in policy[1].split("; ")}
    assert rules["default-src"] == "'none'" and rules["require-trusted-types-for"] == "'script'"
    for name, tag in (("script-src", r'<script type="module">'), ("style-src", "<style>")):
        body = re.findall(tag + r"(.*?)</(?:script|style)>", text, re.DOTALL)
        assert len(body) == 1
        digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    # The page makes no requests: it has no addresses of other hosts, except in text.
    assert not re.findall(r'(?:src|href)\s*=\s*"(?!data:,|#)[^"]*"', text)
    assert "uPlot" in text and "Leon Sorokin" in text  # the bundle contains its licence


def test_the_page_says_what_the_run_says(place: Path, here: Path) -> None:
    assert main(["report", str(place / "rrul.ktrxer"), "-o", "r.html"]) == 0
    text = (here / "r.html").read_text("utf-8")
    assert "<title>A &amp; B &lt;i&gt;</title>" in text
    data = data_of(text)
    (run,) = data["runs"]
    assert run["title"] == "A & B <i>" and run["verdict"] == "valid" and run["repeat"][0].startswith("ktrxer run rrul -H far.example")
    panels = [panel["key"] for panel in run["panels"]]
    assert panels[:3] == ["latency", "oneway-up", "throughput-up"]
    assert {"oneway-up", "oneway-down", "latency-cdf", "lateness", "queue", "cwnd"} <= set(panels)
    assert {figure["label"] for figure in run["figures"]} >= {"Download", "Upload", "Latency, idle", "Latency, loaded", "Responsiveness", "Grade"}
    tables = {table["title"]: table for table in run["tables"]}
    assert [row[0] for row in tables["Latency by direction"]["rows"]] == [
        *(f"{name}, UDP" for name in ("round trip", "up", "down", "own queue", "far queue")), "round trip, ICMP"]
    for table in run["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_figures_are_those_of_the_summary(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(place / "rrul.ktrxer"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    figures, _ = report.summary(summarise(open_run(place / "rrul.ktrxer")))
    tiles = {figure["label"]: figure["value"] for figure in figures}
    down = next(one for one in summary["throughput"] if one["direction"] == "down")
    trip = next(one for one in summary["latency"] if one["name"] == "round trip")
    assert tiles["Download"] == report.figure(down["mean_mbps"])
    loaded = trip["loaded"]
    half = (loaded["p50_high"] - loaded["p50_low"]) / 2
    assert float(tiles["Latency, loaded"]) == pytest.approx(loaded["p50"], abs=max(half / 2, loaded["p50"] / 200)), "with the digits that its interval supports"
    assert len(tiles["Latency, loaded"].partition(".")[2]) <= 1 or half < 0.1
    assert tiles["Grade"] == summary["grade"]["letter"]
    notes = {figure["label"]: figure["note"] for figure in figures}
    assert all("UDP" in notes[label] for label in ("Latency, idle", "Latency, loaded", "Responsiveness", "Grade")), "of which kind"


@pytest.mark.slow
def test_runs_side_by_side_say_where_their_kinds_of_probes_differ(place: Path, here: Path) -> None:
    synthetic(here, seconds=12, delay=3, name="deaf", udp_answered_until_s=3)
    for names_of, told in ((("rrul", "rrul"), {""}), (("rrul", "deaf"), {"(UDP)", "(ICMP)"})):
        runs = [str((here if name == "deaf" else place) / f"{name}.ktrxer") for name in names_of]
        assert main(["report", *runs, "-o", "two.html", "-f"]) == 0
        (table,) = (one for one in data_of((here / "two.html").read_text("utf-8"))["overview"]["tables"] if one["title"] == "Comparison of the runs")
        for label in ("Latency, idle", "Latency, loaded", "Responsiveness", "Grade"):
            cells = {row[table["columns"].index(label)] for row in table["rows"]}
            assert {(re.findall(r"\(\w+\)$", cell) or [""])[0] for cell in cells} == told, (label, cells)
        assert bool(table["notes"]) == (len(told) > 1)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (0.00421, "0.00421"), (1.23456, "1.23"), (45.678, "45.7"), (345.67, "346"), (1234.5, "1,234"), (-12.5, "\u221212.5"),
     (None, "\u2013"), (float("nan"), "\u2013"), (float("inf"), "\u2013"), (3e12, "3.0e+12")],
)  # fmt: skip
def test_numbers_read_well(value: float | None, words: str) -> None:
    assert report.figure(value) == words


def test_a_report_answers_first(place: Path, here: Path) -> None:
    assert main(["report", str(place / "rrul.ktrxer"), "-o", "x.html"]) == 0
    text = (here / "x.html").read_text("utf-8")
    (run,) = data_of(text)["runs"]
    assert run["headline"]["kind"] == "added" and run["headline"]["text"].startswith("The upload queue adds ")
    assert text.index(html.escape(run["headline"]["text"])) < text.index("Verdict: valid.")  # also without JavaScript
    assert run["panels"][0]["key"] == "latency" and [bool(one["folded"]) for one in run["panels"]] == sorted(bool(one["folded"]) for one in run["panels"])
    facts = dict(run["facts"])
    assert facts["congestion control"] == "cubic" and "the error bound of a headline figure is above its tolerance (5 %" in facts["thresholds of the verdict"]


def test_nothing_of_a_hostile_run_becomes_markup(place: Path, here: Path) -> None:
    assert main(["report", str(place / "hostile.ktrxer"), "-o", "h.html"]) == 0
    text = (here / "h.html").read_text("utf-8")
    assert text.count("<script") - text[text.index('<script type="module">') :].count("<script") == 1  # the data, then the script
    between = text[: text.index('<script type="module">')]
    for mark in ("<img", "<svg", "<iframe", "pwned=5>", "</title><"):
        assert mark not in between
    data = data_of(text)
    (run,) = data["runs"]
    assert run["title"] == view_samples.BACKWARDS["title"] + view_samples.HOSTILE[0]
    assert run["metadata"]["settings"]["huge"] == str(2**63 - 1)
    assert "%DATA%%STATIC%%TITLE%" in [*(one["text"] for one in run["reasons"]), *(line.rstrip(".") for line in run["headline"]["details"])]


def test_a_damaged_run_is_shown_as_far_as_it_goes(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(place / "damaged.ktrxer"), "-o", "d.html"]) == 0
    assert "latency samples cannot be read" in capsys.readouterr().err
    (run,) = data_of((here / "d.html").read_text("utf-8"))["runs"]
    assert len(run["damage"]) == 1
    keys = {panel["key"] for panel in run["panels"]}
    assert "throughput-down" in keys and "latency" not in keys


def test_an_unfinished_run_is_shown_and_says_so(here: Path) -> None:
    writer = RunWriter(here, describe(10, 2, "cut off"), "cut")
    writer.append("latency", {"series": [0], "t_ns": [5], "seq": [0], "state": [0], "rtt_ns": [1000]})
    writer.sync()
    shutil.copytree(here / "cut.ktrxer.part", here / "dead.ktrxer.part")  # no process holds the lock of the copy
    for name, text in (("cut", "still being recorded"), ("dead", "`ktrxer recover`")):
        assert main(["report", str(here / f"{name}.ktrxer.part"), "-o", f"{name}.html"]) == 0
        (run,) = data_of((here / f"{name}.html").read_text("utf-8"))["runs"]
        assert text in run["damage"][0]
        assert run["panels"][0]["key"] == "latency"


def test_a_report_is_no_picture(place: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(place / "rrul.ktrxer"), "-o", "x.pdf"]) == 2
    assert capsys.readouterr().err == "ktrxer report: -o x.pdf: a report is a page NAME.html; `ktrxer plot` draws .pdf\n"
    assert list(here.iterdir()) == []


def test_a_file_that_is_no_run_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "x.ktrxer").write_bytes(b"not a run")
    assert main(["report", "x.ktrxer"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("ktrxer report: x.ktrxer: ") and told.err.count("\n") == 1
    assert not (here / "x.html").exists()


def test_several_runs_are_compared(place: Path, here: Path) -> None:
    other = synthetic(here, seconds=12, delay=3, name="other", title="C", seed=2)
    assert main(["report", str(place / "rrul.ktrxer"), str(other), "-o", "two.html"]) == 0
    data = data_of((here / "two.html").read_text("utf-8"))
    assert data["title"] == "2 runs compared" and len(data["runs"]) == 2
    assert data["overview"]["sentences"] == [f"{run['title']}: {run['headline']['text']}" for run in data["runs"]]
    (table,) = data["overview"]["tables"]
    assert [row[0] for row in table["rows"]] == ["A & B <i>", "C"]
    assert [panel["key"] for panel in data["overview"]["panels"]] == ["latency", "throughput-down", "throughput-up", "latency-cdf"]


def test_seventy_seconds_of_rrul_are_small(here: Path) -> None:
    made = synthetic(here, name="long")
    assert main(["report", str(made)]) == 0
    size = (here / "long.html").stat().st_size
    print(f"figure: report of a 70-second rrul: {size / 1e6:.2f} MB (goal 1.5)")
    assert size < 1.5e6


# -------------------------------------------------------------------------------------------------------------------- page


def test_json_in_html_ends_nothing() -> None:
    text = page.json_for_html({"a": "</script><!--<script>&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": "</script><!--<script>&\u2028\u2029"}
    with pytest.raises(ValueError, match="JSON"):
        page.json_for_html({"a": float("nan")})


def test_free_json_becomes_plain() -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    made = page.plain({"nan": float("nan"), "big": 2**60, "small": 5, "yes": True, "none": None, 3: (1, 2), "deep": deep})
    assert made["nan"] == "nan" and made["big"] == str(2**60) and made["small"] == 5 and made["yes"] is True and made["3"] == [1, 2]
    assert "too deeply" in json.dumps(made["deep"])


def test_marks_in_a_title_stay_text() -> None:
    data = {"runs": [], "overview": None, "x": "%STATIC%"}
    text = page.fill("%DATA% %STATIC% %TITLE%", data)
    assert "<title>%DATA% %STATIC% %TITLE%</title>" in text
    assert data_of(text) == data


def test_a_lone_surrogate_in_a_title_is_no_end(place: Path) -> None:
    run = open_run(place / "rrul.ktrxer")
    run.meta.title = "half \ud83d of a sign"
    title, data = report.build([report.readable(run)], "now")
    assert b"half ? of a sign" in page.fill(title, data).encode("utf-8", "replace")
