# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer view DIR --export`, and what the explorer finds below its directory: directories and files of Flent."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import flent_files
import panel_runs
import pytest
from explore_server import FIFO, RRUL, SIZES, make_runs, opened
from ktrxer.cli import main
from ktrxer.explore import library, site
from ktrxer.explore.answers import Answers, Refused
from ktrxer.explore.library import Library, Unknown
from ktrxer.view import page


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("explore"), tmp_path_factory.mktemp("outside"))


@pytest.fixture(scope="module")
def answers(runs: Path) -> Answers:
    return Answers(Library(runs, None))


@pytest.fixture(scope="module")
def made(answers: Answers) -> tuple[str, list[str]]:
    return site.build(answers, "plot=ping&column=settings/qdisc")


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="site">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def column_of(text: str, element: str) -> tuple[dict[str, Any], bytes]:
    found = re.search(rf'<script type="application/octet-stream" id="{element}">(.*?)</script>', text)
    assert found is not None
    return opened(base64.b64decode(found[1], validate=True))


# -------------------------------------------------------------------------------------------------------------------- site


@pytest.mark.slow
def test_the_page_has_the_table_and_the_plots_of_each_run(made: tuple[str, list[str]], answers: Answers) -> None:
    text, problems = made
    data = data_of(text)
    assert data["view"] == "plot=ping&column=settings/qdisc" and data["table"]["columns"][-1] == "settings/qdisc"
    stored = {one["name"]: one for one in data["stored"]}
    assert stored.keys() == {row[0] for row in data["table"]["rows"]} and len(stored) == 13
    head, columns = column_of(text, stored[FIFO[0]]["element"])
    assert {"all", "totals", "ping", "ping_cdf", "ping_band"} <= head["plots"].keys()
    served, rest = opened(answers.picture({"runs": [FIFO[0]], "plot": "ping"}))
    ours = head["plots"]["ping"]
    assert ours["title"] == served["title"] and len(ours["panels"]) == len(served["panels"])
    for mine, theirs in zip(ours["panels"][0]["series"], served["panels"][0]["series"], strict=True):
        for key in ("x", "y"):
            one, other = head["arrays"][mine[key]], served["arrays"][theirs[key]]
            size = one["count"] * SIZES[one["type"]]
            assert columns[one["at"] : one["at"] + size] == rest[other["at"] : other["at"] + size]
    assert stored[FIFO[0]]["metadata"]["metadata"]["settings"]["qdisc"] == "pfifo"
    assert ours["command"] == f"ktrxer plot {FIFO[0]} --plot ping -o ping.svg"
    assert {line.split(":")[0] for line in problems} == {"half.ktrxer", "link.ktrxer", "circle.ktrxer", "empty.ktrxer"}
    assert stored["half.ktrxer"]["metadata"] is None and stored["empty.ktrxer"]["metadata"]["verdict"] == "invalid"


@pytest.mark.slow
def test_the_page_connects_to_nothing_and_names_no_place_of_this_machine(made: tuple[str, list[str]], runs: Path) -> None:
    text, _ = made
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None and "connect-src" not in policy[1] and "default-src 'none'" in policy[1]
    assert str(runs) not in text and str(runs.resolve()) not in text
    assert data_of(text)["about"]["directory"] == runs.name


@pytest.mark.slow
def test_names_of_hostile_runs_are_no_markup(made: tuple[str, list[str]]) -> None:
    text, _ = made
    assert len(re.findall(r"<script", text)) == 2 + 13  # the page's own, the table, each run
    for name in ("window.pwned=1</script", "<svg onload", "<iframe", "<img src=x"):
        assert name not in text


@pytest.mark.slow
def test_the_size_is_bounded(answers: Answers) -> None:
    page_itself = len(page.explorer())
    left_out = []
    for room in (2_000_000, 500_000, 150_000):
        text, problems = site.build(answers, "", page_itself + room)
        assert len(text) <= page_itself + room and len(data_of(text)["stored"]) == 13
        left_out.append(sum("too large" in line for line in problems))
    assert left_out[0] == 0 and left_out[-1] > 0
    with pytest.raises(Refused, match="13 runs do not fit into a page of"):
        site.build(answers, "", page_itself + 10_000)
    with pytest.raises(Refused, match="nonsense"):
        site.build(answers, "column=nonsense")


def test_a_column_that_no_run_has_is_left_out_of_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    panel_runs.run(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    words = ["view", "runs", "--export", "site.html", "--view", "column=settings/cc&plot=ping&column=settings%2Fhost&column=kernel", "--no-cache", "--json"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["without_columns"] == ["settings/cc", "settings/host"]
    assert "exported without the columns settings/cc, settings/host: no run has them\n" in told.err
    data = data_of((tmp_path / "site.html").read_text())
    assert data["view"] == "plot=ping&column=kernel" and data["table"]["columns"][-1] == "kernel"


@pytest.mark.slow
def test_the_command_writes_one_file(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", str(runs), "--export", "site.html", "--no-cache", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["bytes"] == (tmp_path / "site.html").stat().st_size
    assert "exported without plots: half.ktrxer" in told.err
    assert main(["view", str(runs), "--export", "site.html"]) == 1
    assert "site.html: exists already; --force replaces it" in capsys.readouterr().err
    for words, message in ((["--export", "x.html", "-p", "80"], "--port is for the server"), (["--export", "x.pdf"], "must be called NAME.html")):
        assert main(["view", str(runs), *words]) == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["site.html"]


# ------------------------------------------------------------------------------------------------------------------- below


@pytest.fixture
def tree(runs: Path, tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for place in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / ".hidden"):
        shutil.copy(runs / RRUL, place / RRUL)
    (tmp_path / "circle").symlink_to(tmp_path)
    return tmp_path


def test_runs_of_directories_below_are_found_by_their_paths(tree: Path) -> None:
    answers = Answers(Library(tree, None))
    rows = {row[0]: row for row in answers.runs({})["rows"]}
    assert rows.keys() == {RRUL, f"a/{RRUL}", f"a/b/{RRUL}"}
    assert rows[f"a/{RRUL}"][2] == f"a/{RRUL}"
    head, _ = opened(answers.picture({"runs": [f"a/b/{RRUL}"], "plot": "ping"}))
    assert head["problems"] == [] and head["names"][0][0] == f"a/b/{RRUL}" and str(tree / "a" / "b" / RRUL) in head["command"]
    groups = answers.groups({"runs": [RRUL, f"a/{RRUL}"], "by": "title"})["groups"]
    assert groups[0][1] == [RRUL, f"a/{RRUL}"]
    for name in (f"a/../{RRUL}", f"./{RRUL}", f".hidden/{RRUL}", f"circle/{RRUL}", f"a//{RRUL}", str(tree / RRUL)):
        with pytest.raises(Unknown, match="no such run"):
            answers.library.path(name)


def test_a_run_that_is_gone_is_unknown(tree: Path) -> None:
    there = Library(tree, None)
    assert there.path(f"a/{RRUL}") == tree / "a" / RRUL
    (tree / "a" / RRUL).unlink()
    with pytest.raises(Unknown, match="no such run"):
        there.path(f"a/{RRUL}")
    (tree / "a" / RRUL).symlink_to("/etc/passwd")
    there.version()
    with pytest.raises(Unknown, match="outside the directory"):
        there.path(f"a/{RRUL}")


def test_a_change_below_is_a_change(tree: Path) -> None:
    there = Library(tree, None)
    before = there.version()
    (tree / "a" / "b" / RRUL).unlink()
    assert there.version() != before


def test_too_many_directories_are_cut_with_a_note(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(Library(tree, None))
    assert answers.runs({})["note"] == ""
    monkeypatch.setattr(library, "MOST_FOLDERS", 2)
    found = answers.runs({})
    assert {row[0] for row in found["rows"]} == {RRUL, f"a/{RRUL}"} and found["note"].startswith("Only ")


def test_files_of_flent_are_runs_too(tmp_path: Path) -> None:
    document = flent_files.four()
    (tmp_path / "old.flent.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    (tmp_path / "broken.flent.gz").write_bytes(b"no file of Flent")
    panel_runs.run(tmp_path, "new", seconds=9)
    answers = Answers(Library(tmp_path, tmp_path / "cache" / "runs.sqlite"))
    for _ in range(2):  # the second time from the cache
        rows = {row[0]: row[1] for row in answers.runs({})["rows"]}
        assert rows == {"old.flent.gz": "finished", "broken.flent.gz": "damaged", "new.ktrxer": "finished"}
    head, _ = opened(answers.picture({"runs": ["old.flent.gz", "new.ktrxer"], "plot": "ping"}))
    assert head["problems"] == [] and len(head["panels"]) == 1
    assert answers.metadata({"runs": ["old.flent.gz"]})["runs"][0]["metadata"]
