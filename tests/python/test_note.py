# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer note`, and `ktrxer runs -r`: folders of runs, their titles and notes."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from ktrxer.cli import main
from ktrxer.store import open_run
from synthetic import synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run, one in a folder, one in a folder that is hidden, and a link to a folder above."""
    made = synthetic(tmp_path, seconds=3, delay=0.5).rename(tmp_path / "one.ktrxer")
    for place in (tmp_path / "a" / "b", tmp_path / ".hidden"):
        place.mkdir(parents=True)
        shutil.copy(made, place / "one.ktrxer")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    return tmp_path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_title_and_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "one.ktrxer"
    path.chmod(0o640)
    before = members(path)
    assert main(["note", str(path), "rain, 3 °C", "--title", "the second try"]) == 0
    assert capsys.readouterr().out == "title: the second try\nnote: rain, 3 °C\n"
    after, run = members(path), open_run(path)
    assert run.meta.title == "the second try" and run.meta.metadata["labels"]["note"] == "rain, 3 °C"
    assert {name: data for name, data in after.items() if name != "meta.json"} == {
        name: data for name, data in before.items() if name != "meta.json"
    }
    was, now = (json.loads(one["meta.json"]) for one in (before, after))
    assert list(was) == list(now) and all(was[name] == now[name] for name in was if name not in ("title", "metadata"))
    assert path.stat().st_mode & 0o777 == 0o640 and sorted(os.listdir(folder)) == [".hidden", "a", "one.ktrxer"]
    assert main(["note", str(path)]) == 0 and capsys.readouterr().out == "title: the second try\nnote: rain, 3 °C\n"
    assert main(["note", str(path), "--remove"]) == 0 and capsys.readouterr().out == "title: the second try\nno note\n"
    assert json.loads(members(path)["meta.json"])["metadata"] == was["metadata"]


def test_a_note_that_is_given_and_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["note", str(folder / "one.ktrxer"), "x", "--remove"]) == 2 and "a note is given, too" in capsys.readouterr().err


def test_fields_of_a_newer_version_stay(folder: Path) -> None:
    path = folder / "one.ktrxer"
    parts = members(path)
    parts["meta.json"] = json.dumps(json.loads(parts["meta.json"]) | {"version": "9.0", "later": {"a": [1]}}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert main(["note", str(path), "x"]) == 0
    assert json.loads(members(path)["meta.json"])["later"] == {"a": [1]}


def test_a_link_to_a_run_stays_a_link(folder: Path) -> None:
    link = folder / "link.ktrxer"
    link.symlink_to(folder / "a" / "b" / "one.ktrxer")
    assert main(["note", str(link), "x"]) == 0
    assert link.is_symlink() and open_run(folder / "a" / "b" / "one.ktrxer").meta.metadata["labels"]["note"] == "x"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.ktrxer", None, "No such file"),
        ("bad.ktrxer", b"no run", "not a run"),
        ("old.flent.gz", b"", "a data file of Flent is not changed"),
        ("cut.ktrxer.part", None, "the run is not finished"),
    ],
)
def test_files_that_are_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["note", str(tmp_path / name), "x"]) == 1
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1 and os.listdir(tmp_path) == ([name] if content is not None else [])


def test_hostile_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "one.ktrxer"
    assert main(["note", str(path), "a\x1b[31mb\udcff", "--title", "c\x00d"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x00" not in out
    assert "\x1b" not in open_run(path).meta.metadata["labels"]["note"]


def test_runs_of_folders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(folder), "--columns", "file", "--no-cache"]) == 0 and capsys.readouterr().out.split() == ["file", "one.ktrxer"]
    main(["note", str(folder / "a" / "b" / "one.ktrxer"), "deep"])
    capsys.readouterr()
    assert main(["runs", "-r", str(folder), "--columns", "note,file", "--sort", "file", "--no-cache"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["note", "file"], ["deep", "a/b/one.ktrxer"], ["one.ktrxer"]]
    assert main(["runs", "-r", str(folder), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
