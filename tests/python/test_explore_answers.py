# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the explorer answers: the table, pictures, comparisons, changes of the directory."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import panel_runs
import pytest
from explore_server import FIFO, FQ, RRUL, columns, make_runs, opened, send, serving
from explore_server import numbers as raw_numbers
from ktrxer.cli import main
from ktrxer.explore import server
from ktrxer.explore.answers import MOST_SERIES_SAMPLES, Answers, Refused
from ktrxer.explore.library import Library, Unknown
from ktrxer.panels import plots
from ktrxer.panels.errors import PlotError
from ktrxer.panels.model import Axis, Panel, Series
from ktrxer.panels.picture import Picture, apart, model
from ktrxer.store import RunWriter
from ktrxer.view import numbers, pack


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("explore"), tmp_path_factory.mktemp("outside"))


@pytest.fixture(scope="module")
def answers(runs: Path) -> Answers:
    return Answers(Library(runs, None))



@pytest.fixture(scope="module")
def up(runs: Path) -> Iterator[server.Server]:
    with serving(runs) as made:
        yield made


# ------------------------------------------------------------------------------------------------------------------- table


@pytest.mark.slow
def test_the_table_has_each_run_and_any_property_as_a_column(answers: Answers) -> None:
    found = answers.runs({"columns": ["settings/qdisc", "added"]})
    assert found["columns"][-2:] == ["settings/qdisc", "added"]
    rows = {row[0]: dict(zip(["name", "state", *found["columns"]], row, strict=True)) for row in found["rows"]}
    assert rows[RRUL]["title"] == "A & B <i>" and rows[RRUL]["verdict"] == "valid"
    assert rows[FIFO[0]]["settings/qdisc"] == "pfifo" and rows[FIFO[0]]["added"] == pytest.approx(80, abs=5)
    assert rows["half.ktrxer"]["state"] == "damaged" and "half.ktrxer: " in str(rows["half.ktrxer"]["file"])
    assert "outside the directory" in str(rows["link.ktrxer"]["file"])
    assert rows["hostile.ktrxer"]["title"].startswith("</title><svg")
    assert [row[0] for row in answers.runs({"where": "settings/qdisc=fq_codel"})["rows"]] == FQ[::-1]


def test_a_directory_without_runs_has_an_empty_table(tmp_path: Path) -> None:
    made = Answers(Library(tmp_path, None))
    assert made.runs({})["rows"] == []
    tmp_path.rmdir()
    with pytest.raises((Refused, Unknown), match="No such file"):
        made.runs({})


def test_the_page_names_the_directory_that_the_command_calls_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Answers(Library(Path(), None)).about({})["directory"] == str(tmp_path)


@pytest.mark.slow
def test_keys_offer_figures_and_paths_that_are_columns(answers: Answers) -> None:
    keys = answers.keys({"runs": [FIFO[0]]})["keys"]
    assert "udp.rtt.load.p95" in keys and "settings/qdisc" in keys
    assert len(answers.runs({"columns": keys[:40]})["rows"]) == 13


@pytest.mark.slow
def test_two_thousand_runs_are_one_table_in_time(tmp_path: Path) -> None:
    """The copies share one cache entry each; the second table reads no file."""
    one = panel_runs.run(tmp_path, "run-0", seconds=9)
    for i in range(1, 2000):
        os.link(one.path, tmp_path / f"run-{i}.ktrxer")
    made = Answers(Library(tmp_path, tmp_path / "cache" / "runs.sqlite"))
    made.runs({})
    begin = time.process_time()
    rows = made.runs({})["rows"]
    took = time.process_time() - begin
    print(f"figure: table of 2,000 runs from the cache: {took * 1e3:.0f} ms of CPU time")
    assert len(rows) == 2000 and took < 5


# ----------------------------------------------------------------------------------------------------------------- changes


def test_a_run_appears_grows_and_ends(tmp_path: Path) -> None:
    """The answer to `changes` comes as soon as the directory changes."""
    with serving(tmp_path) as up:
        before = json.loads(send(up, "POST", "/api/runs", {})[2])["version"]
        seen: list[str] = []
        waiting = threading.Thread(
            target=lambda: seen.append(json.loads(send(up, "POST", "/api/changes", {"since": before})[2])["version"])
        )
        waiting.start()
        whole = panel_runs.run(tmp_path / "..", "template", seconds=9)
        meta = whole.meta
        writer = RunWriter(tmp_path, meta, "live")
        waiting.join()
        assert seen[0] != before
        rows = json.loads(send(up, "POST", "/api/runs", {})[2])["rows"]
        assert [row[:2] for row in rows] == [["live.ktrxer.part", "running"]]
        part = whole.table("latency").slice(0, 200)
        writer.append("latency", {name: part.column(name).to_pylist() for name in part.column_names})
        writer.sync()
        names, _ = opened(send(up, "POST", "/api/picture", {"runs": ["live.ktrxer.part"], "plot": "ping"})[2])
        assert len(names["panels"]) == 1 and "still being recorded" in names["problems"][0]
        writer.finish()
        rows = json.loads(send(up, "POST", "/api/runs", {})[2])["rows"]
        assert [row[:2] for row in rows] == [["live.ktrxer", "finished"]]
        # The page may still ask for the name that the run had.
        status, _, body = send(up, "POST", "/api/picture", {"runs": ["live.ktrxer.part"], "plot": "ping"})
        assert status == 200 and opened(body)[0]["problems"] == []


# ----------------------------------------------------------------------------------------------------------------- picture


def test_a_spike_is_in_the_answer_at_any_zoom() -> None:
    """The server sends the minimum and the maximum of each part, and of its bounds: one sample of a million is not lost."""
    count = 1_000_000
    rng = np.random.default_rng(1)
    y = rng.normal(10, 0.1, count)
    y[654_321], y[100_001] = 500.0, -3.0
    high = y + 1
    high[222_222] = 900.0
    t = np.arange(count) / 1e3
    panel = Panel("p", "p", Axis("t", "s"), Axis("y", "ms"), (Series("s", "s", "line", t, y, low=y - 1, high=high),))
    for window in (None, (600.0, 700.0), (654.0, 655.0)):
        pool = pack.Pool()
        begin = time.process_time()
        head, rest = opened(pool.answer({"panels": [pack.panel(panel, pool, MOST_SERIES_SAMPLES, window)]}))
        took = time.process_time() - begin
        x, values = columns(pool.answer(head), 0, 0)
        one = head["panels"][0]["series"][0]
        top = head["arrays"][one["high"]]
        highs = top["base"] + top["scale"] * raw_numbers(top["type"], rest[top["at"] :], top["count"])
        assert len(values) <= 1.1 * MOST_SERIES_SAMPLES and values.max() == 500.0
        at = x[values.argmax()]
        assert at == pytest.approx(654.321, abs=1e-5)
        if window is None:
            assert values.min() == -3.0 and highs.max() == 900.0
            print(f"figure: a million samples reduced to {len(values):,} in {took * 1e3:.0f} ms of CPU time, {len(rest):,} bytes")
        else:
            assert x.min() <= window[0] + 0.011 and x.max() >= window[1] - 0.011 and x.max() - x.min() < 1.01 * (window[1] - window[0]) + 0.1
    inside, _ = columns(pool.answer({"panels": [pack.panel(panel, pool, MOST_SERIES_SAMPLES, (654.0, 655.0))]}), 0, 0)
    assert len(inside) == pytest.approx(1000, abs=5)  # all samples of a second


def test_one_note_says_that_many_series_are_thinned() -> None:
    x = np.arange(20_000, dtype=float)
    shown = [Series(f"{i}", f"S{i}", "line", x[: 20_000 - i], x[: 20_000 - i] % 7) for i in range(60)]
    one = Panel("latency", "", Axis("", "s"), Axis("", "ms"), (*shown, Series("short", "short", "line", x[:5], x[:5])))
    (note,) = pack.panel(one, pack.Pool(), 1000)["notes"]
    assert re.match(r"60 series: the longest, S0, is drawn with [\d,]+ of its 20,000 samples, .* of each 40 samples", note), note
    (note,) = pack.panel(replace(one, series=one.series[:1]), pack.Pool(), 1000)["notes"]
    assert note.startswith("S0: drawn with") and "of its 20,000 samples" in note


@pytest.mark.slow
def test_the_picture_is_that_of_the_plot_and_of_its_command(answers: Answers, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"runs": [*FIFO, *FQ], "plot": "ping_cdf", "arrange": "by-name", "settings": {"part": ["load"]}}
    head, _ = opened(answers.picture(asked))
    labels = [one["label"] for one in head["panels"][0]["series"]]
    assert labels == [f"{group} (n=3): {one}" for group in ("fifo", "fq") for one in ("UDP BE", "UDP EF", "mean")]
    words = head["command"].split()
    assert words[:2] == ["ktrxer", "plot"]
    assert main([*words[1:-1], str(tmp_path / "x.svg"), "--json"]) == 0
    outline = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in outline["panels"][0]["series"]] == [one["label"] for one in head["panels"][0]["series"]]


def test_one_run_after_the_other_has_the_axes_of_all(answers: Answers, runs: Path) -> None:
    asked = {"runs": [FIFO[0], FQ[0]], "plot": "ping"}
    heads = [opened(answers.picture(asked | {"shown": shown}))[0] for shown in (0, 1)]
    tops = {(head["panels"][0]["y"]["unit"], head["panels"][0]["y"]["most"]) for head in heads}
    assert len(tops) == 1 and next(iter(tops))[1] > 80
    assert [head["title"] for head in heads] == ["fifo", "fq"]
    assert FQ[0] in heads[1]["command"] and FIFO[0] not in heads[1]["command"]
    cdf = [opened(answers.picture(asked | {"plot": "ping_cdf", "shown": shown}))[0]["panels"][0] for shown in (0, 1)]
    assert cdf[0]["x"]["unit"] == cdf[1]["x"]["unit"]


def test_runs_beside_each_other_have_one_scale(runs: Path, answers: Answers) -> None:
    both = [answers.library.run(name).run for name in (FIFO[0], FQ[0])]
    made = model(both, Picture("ping", "beside"))
    assert made.columns == 2 and [panel.title for panel in made.panels] == ["fifo", "fq"]
    assert made.panels[0].y.most == made.panels[1].y.most and made.panels[0].link == made.panels[1].link
    cdf = model(both, Picture("ping_cdf", "beside")).panels
    assert cdf[0].link == cdf[1].link == cdf[0].key.split(": ")[1]  # a common x axis
    empty = answers.library.run("empty.ktrxer").run
    assert [len(one.panels) for one in apart([both[0], empty], Picture("ping"))] == [1, 0]
    with pytest.raises(PlotError, match="no samples"):
        model([empty, empty], Picture("ping", "beside"))


def test_runs_with_scaled_axes_stay_scaled(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "OUTLIERS", 50)
    both = [answers.library.run(name).run for name in (RRUL, FQ[0])]
    most = [one.panels[0].y.most for one in apart(both, Picture("ping_scaled"))]
    alone = plots.model(both[:1], "ping_scaled").panels[0].y.most
    assert alone is not None and most == [alone, alone]


def test_damaged_runs_are_named_and_the_others_drawn(answers: Answers) -> None:
    names = ["hostile.ktrxer", "empty.ktrxer", "damaged.ktrxer", "half.ktrxer", "gone.ktrxer", RRUL]
    head, _ = opened(answers.picture({"runs": names, "plot": "ping"}))
    assert len(head["panels"]) == 1
    problems = "\n".join(head["problems"])
    for part in ("half.ktrxer", "gone.ktrxer: no such run", "latency samples cannot be read"):
        assert part in problems
    assert dict(head["names"]).keys() == {"hostile.ktrxer", "empty.ktrxer", "damaged.ktrxer", RRUL}


@pytest.mark.slow
@pytest.mark.parametrize("log", ["", "x", "y"])
@pytest.mark.parametrize("arrange", ["overlay", "beside", "by-name", "all"])
def test_each_plot_of_hostile_runs_has_an_answer_or_a_reason(answers: Answers, arrange: str, log: str) -> None:
    """Huge values, NaN, one point, all lost: JSON without NaN, or one line."""
    for plot in ("all", "ping", "ping_cdf", "ping_ccdf", "ping_violin", "ping_heat", "box_ping", "ping_histogram", "ping_band", "bar_combine"):
        for names in (["hostile.ktrxer"], ["hostile.ktrxer", "empty.ktrxer", FIFO[0]]):
            asked = {"runs": names, "plot": plot, "arrange": arrange, "settings": {"log": [log] if log else []}}
            try:
                head, _ = opened(answers.picture(asked))
            except Refused as error:
                assert "\n" not in str(error)
            else:
                assert head["panels"]
                assert answers.save(asked | {"kind": "csv"})[0].startswith(b"panel,")
                json.loads(answers.save(asked | {"kind": "json"})[0])


def test_a_picture_without_matplotlib_is_refused_with_the_command_that_installs_it(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Refused, match=r"svg: it needs the Python package matplotlib, .*make \.venv/\.plot"):
        answers.save({"runs": [RRUL], "plot": "ping", "kind": "svg"})


def test_csv_has_each_sample_and_no_formula(answers: Answers) -> None:
    data, kind, name = answers.save({"runs": [RRUL], "plot": "ping", "kind": "csv"})
    lines = data.decode().splitlines()
    assert kind == "text/csv" and name == "ping.csv" and lines[0] == ",".join(numbers.HEADER)
    assert len(lines) == 1 + 4 * 1200  # four kinds of probes, 12 s, 100 a second; a lost one has no y
    data, _, _ = answers.save({"runs": ["hostile.ktrxer"], "plot": "all", "kind": "csv"})
    assert not re.search(rb"(^|,)=", data, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_figure_is_saved(up: server.Server, kind: str) -> None:
    status, headers, body = send(up, "POST", "/api/save", {"runs": [RRUL], "plot": "ping", "kind": kind})
    assert status == 200 and headers["Content-Disposition"] == f'attachment; filename="ping.{kind}"'
    assert body.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[kind])


def test_sixty_series_are_an_answer_in_time(tmp_path: Path) -> None:
    run = panel_runs.run(tmp_path, "many", seconds=9, classes=tuple(f"C{i}" for i in range(60)))
    made = Answers(Library(tmp_path, None))
    begin = time.process_time()
    head, rest = opened(made.picture({"runs": [run.path.name], "plot": "ping"}))
    took = time.process_time() - begin
    print(f"figure: picture of 60 series: {took * 1e3:.0f} ms of CPU time, {len(rest):,} bytes")
    assert sum(len(panel["series"]) for panel in head["panels"]) == 60 and took < 5


# -------------------------------------------------------------------------------------------------- comparison and metadata


def test_two_groups_are_compared_as_by_the_command(answers: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    groups = answers.groups({"runs": [*FIFO, *FQ], "by": "settings/qdisc"})["groups"]
    assert groups == [["pfifo", FIFO], ["fq_codel", FQ]]
    head, _ = opened(answers.compare({"a": FIFO, "b": FQ, "a_name": "pfifo", "b_name": "fq_codel"}))
    assert "lower than pfifo" in head["comparison"]["sentences"][0] and head["panels"][0]["title"] == "fq_codel against pfifo"
    words = head["command"].split()
    assert words[:2] == ["ktrxer", "compare"]
    assert main([*words[1 : words.index("--")], "--json", *words[words.index("--") :]]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert head["comparison"]["sentences"][0] in json.dumps(printed)


def test_the_metadata_of_each_readable_run_are_answered(answers: Answers) -> None:
    """The page finds the values in which they differ (web/test/site.test.ts)."""
    found = answers.metadata({"runs": [FIFO[0], FQ[0], "half.ktrxer"]})
    assert [one["metadata"]["settings"]["qdisc"] for one in found["runs"]] == ["pfifo", "fq_codel"] and len(found["problems"]) == 1
    assert answers.runs({"columns": ["settings/qdisc"]})  # each path is a column, too
    hostile = answers.metadata({"runs": ["hostile.ktrxer", RRUL]})
    json.dumps(hostile, allow_nan=False)


