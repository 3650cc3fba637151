# SPDX-License-Identifier: MIT OR Apache-2.0
"""The index of a directory: `ktrxer runs` with its cache, columns and conditions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from ktrxer.analyse import cache as caches
from ktrxer.analyse import listing, where
from ktrxer.cli import main
from ktrxer.commands.opening import open_any
from ktrxer.store import StoreError, head, open_run
from ktrxer.store.writer import write_finished
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]


def edit(path: Path, **fields: object) -> None:
    run = open_run(path)
    write_finished(path, replace(run.meta, **fields), {kind: run.table(kind) for kind in run.kinds()}, path.parent / ".edited.tmp")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    for i, (title, cc) in enumerate((("fifo", "cubic"), ("fifo", "bbr"), ("codel", "cubic"))):
        path = synthetic(place, seconds=10, delay=2, seed=i, title=title, name=f"r{i}", depth_ms=40 + 40 * i)
        settings = open_run(path).meta.settings | {"cc": cc}
        created = f"2026-11-21T15:3{2 - i}:00.000000Z"
        edit(path, settings=settings, created=created, metadata={"labels": {"group": f"g{i}"}, "before": {"cpu": {"model": "M 1"}}})
    edit(place / "r1.ktrxer", verdict="degraded", reasons=["late"])
    return place


@pytest.fixture
def runs(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "runs"))


def say(capsys, *words):
    status = main([str(word) for word in words])
    told = capsys.readouterr()
    return status, told.out, told.err


def files_of(out: str) -> list[str]:
    return [line.split()[-1] for line in out.splitlines()[1:]]


# ------------------------------------------------------------------------------------------------------------------ the command


def test_runs_are_listed_by_time_and_by_any_column(runs, capsys):
    assert files_of(say(capsys, "runs", runs)[1]) == ["r2.ktrxer", "r1.ktrxer", "r0.ktrxer"]
    assert files_of(say(capsys, "runs", runs, "--reverse")[1]) == ["r0.ktrxer", "r1.ktrxer", "r2.ktrxer"]
    assert files_of(say(capsys, "runs", runs, "--sort", "cc", "--columns", "cc,file")[1]) == ["r1.ktrxer", "r2.ktrxer", "r0.ktrxer"]
    assert files_of(say(capsys, "runs", runs, "--sort", "udp.rtt.load.p95")[1]) == ["r0.ktrxer", "r1.ktrxer", "r2.ktrxer"]


@pytest.mark.parametrize("again", [False, True])
def test_columns_are_properties_labels_paths_and_figures(runs, capsys, again):
    keys = "file,cc,group,metadata/before/cpu/model,udp.rtt.load.p95"
    for _ in range(1 + again):  # the second time from the cache
        status, out, err = say(capsys, "runs", runs, "--columns", keys, "--where", "cc=bbr")
    assert (status, err) == (0, "")
    head_line, row = out.splitlines()
    assert head_line.split() == keys.split(",")
    cells = row.split("  ")
    assert [cell.strip() for cell in cells if cell][:4] == ["r1.ktrxer", "bbr", "g1", "M 1"]
    assert 10 < float(row.split()[-1]) < 200


def test_conditions_choose_runs(runs, capsys):
    def chosen(condition: str) -> list[str]:
        status, out, err = say(capsys, "runs", runs, "--where", condition, "--sort", "file")
        assert (status, err) == (0, "")
        return files_of(out)

    assert chosen("title=fifo and verdict=valid") == ["r0.ktrxer"]
    assert chosen("verdict!=valid or cc=cubic and title=codel") == ["r1.ktrxer", "r2.ktrxer"]
    assert chosen("(verdict!=valid or cc=cubic) and title=codel") == ["r2.ktrxer"]
    assert chosen("not group~'g[01]'") == ["r2.ktrxer"]
    assert chosen("length>=10 s and length<11") == ["r0.ktrxer", "r1.ktrxer", "r2.ktrxer"]
    assert chosen("when>='2026-11-21 15:31'") == ["r0.ktrxer", "r1.ktrxer"]
    assert say(capsys, "runs", runs, "--where", "title=none")[1].startswith("no run meets the condition in ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--where", "title"], "expected =, !=, <, <=, >, >= or ~ behind 'title'"),
        (["--where", "title="], "expected a value for 'title'"),
        (["--where", "(title=a"], "expected `)`"),
        (["--where", "title=a title='b'"], "at '=': expected `and` or `or`"),
        (["--where", "=a"], "expected the name of a column"),
        (["--where", "title='a"], "a quotation mark without its end"),
        (["--where", "not " * 99 + "title=a"], "nested more than 50 deep"),
        (["--where", "nonesuch=1"], "no property, setting or path of that name: 'nonesuch'"),
        (["--columns", "nonesuch"], "topology, version; further columns: file, id, reasons, state, verdict, when; nor is it a figure of a run"),
        (["--columns", ","], "no column is named"),
        (["--sort", "nonesuch"], "no property, setting or path of that name: 'nonesuch'"),
    ],
)
def test_wrong_use_is_one_line(runs, capsys, words, said):
    status, out, err = say(capsys, "runs", runs, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_json_has_the_columns_that_were_asked_for(runs, capsys):
    made = json.loads(say(capsys, "runs", runs, "--json", "--columns", "cc,rate.tcp_upload", "--where", "group=g2")[1])
    (one,) = made["runs"]
    assert one["columns"]["cc"] == "cubic" and one["columns"]["group"] == "g2" and one["columns"]["rate.tcp_upload"] > 1
    assert one["length_s"] == 10 and one["targets"] == ["far.example"]


# ------------------------------------------------------------------------------------------------------------------ the cache


def test_a_list_reads_a_file_once_and_a_changed_one_again(runs, capsys, monkeypatch):
    read: list[str] = []
    whole = head.read

    def counted(path: Path) -> head.Head:
        read.append(path.name)
        return whole(path)

    monkeypatch.setattr(head, "read", counted)
    first = say(capsys, "runs", runs)
    assert sorted(read) == ["r0.ktrxer", "r1.ktrxer", "r2.ktrxer"]
    assert say(capsys, "runs", runs) == first and len(read) == 3
    edit(runs / "r1.ktrxer", title="changed")
    assert "changed" in say(capsys, "runs", runs)[1] and read[3:] == ["r1.ktrxer"]
    say(capsys, "runs", runs, "--no-cache")
    assert len(read) == 7


def test_a_list_and_a_comparison_have_one_cache(runs, capsys, monkeypatch):
    say(capsys, "compare", "--by", "title", "--all", "--mix", "cc", runs)
    monkeypatch.setattr("ktrxer.store.open_run", lambda *_: pytest.fail("a run was opened again"))
    monkeypatch.setattr("ktrxer.analyse.collection._compute", lambda *_: pytest.fail("a run was read again"))
    assert say(capsys, "runs", runs, "--columns", "cc,udp.rtt.load.p95,file")[0] == 0


def test_a_damaged_cache_is_no_cache(runs, capsys):
    first = say(capsys, "runs", runs)
    caches.file().write_bytes(os.urandom(3000))
    assert say(capsys, "runs", runs) == first
    shutil.rmtree(caches.file().parent)
    caches.file().parent.write_text("a file in place of the folder")
    assert say(capsys, "runs", runs) == first


def test_the_cache_keeps_its_newest_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "ROWS", 10)
    one = caches.Cache(tmp_path / "c.sqlite")
    for start in (0, 10):
        one.keep("head", {f"k{i}": str(i) for i in range(start, start + 10)})
    assert set(one.get("head", [f"k{i}" for i in range(20)])) == {f"k{i}" for i in range(10, 20)}


def test_a_list_of_run_files_loads_neither_numpy_nor_pyarrow(runs):
    code = f"import sys; from ktrxer.cli import main; main(['runs', {str(runs)!r}]); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "XDG_CACHE_HOME": str(runs / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.count("\n") == 4
    assert not {"numpy", "pyarrow", "multiprocessing"} & set(done.stderr.split())
    assert (runs / "cache" / "ktrxer" / "runs.sqlite").exists()


# ------------------------------------------------------------------------------------------------------------------ part of meta.json


def test_parsing_ends_behind_the_last_wanted_member():
    text = b' {"a": [1, {"b": 2}], "verdict": "x", "rest": !!!}'
    assert head.members(text, frozenset({"a", "verdict"}), "here") == {"a": [1, {"b": 2}], "verdict": "x"}
    with pytest.raises(StoreError, match="here: invalid JSON"):
        head.members(text, frozenset({"a", "rest"}), "here")
    assert head.members(b'{"a":1}', frozenset({"a", "z"}), "here") == {"a": 1}
    assert head.members(b"{}", frozenset({"a"}), "here") == {}


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,}', b'{"a":1 "b":2}', b"{1:2}", b'{"b":1,"b":2,"a":1}', b'{"b":NaN}',
     b'{"a":' + b"[" * 100_000, b"\xff\xfe", b'{"b":' + b"9" * 5000 + b"}", b'{"b":1' + b"," * 500_001],
)  # fmt: skip
def test_json_that_is_none_is_one_sentence(text):
    with pytest.raises(StoreError, match="here: ") as error:
        head.members(text, frozenset({"a", "b"}), "here")
    assert "\n" not in str(error.value)


def test_the_head_is_that_of_the_whole(runs):
    for path in runs.glob("*.ktrxer"):
        assert head.read(path) == head.of_meta(open_run(path).meta)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"test": 5}, {"verdict": "fine"}, {"targets": "x"}, {"schema": "ktrxer-run/9"}, {"length_ns": 2**70}, {"created": None}])
def test_a_head_of_wrong_types_is_damaged(runs, capsys, change):
    path = runs / "r0.ktrxer"
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    contents["meta.json"] = json.dumps(json.loads(contents["meta.json"]) | change).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    status, out, err = say(capsys, "runs", runs)
    assert (status, err) == (0, "")
    (line,) = [line for line in out.splitlines() if "damaged" in line]
    assert f"meta.json.{next(iter(change))}" in line or "schema 'ktrxer-run/9'" in line


# ------------------------------------------------------------------------------------------------------------------ bad directories


@pytest.mark.slow
def test_ten_thousand_files_some_of_them_damaged(runs, capsys, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    whole = (runs / "r0.ktrxer").read_bytes()
    short = runs / "short.ktrxer"
    short.write_bytes(whole[:-40])
    for i in range(9990):
        os.link(runs / f"r{i % 3}.ktrxer", many / f"n{i:05}.ktrxer")
    for i in range(5):
        (many / f"cut{i}.ktrxer").write_bytes(whole[: len(whole) * i // 6])
        damaged = bytearray(whole)
        damaged[damaged.index(b"meta.json") + 200 + i] ^= 0x20
        (many / f"bit{i}.ktrxer").write_bytes(damaged)
    for words in ([], ["--columns", "cc,file,verdict"]):
        status, out, err = say(capsys, "runs", many, *words)
        assert (status, err, len(out.splitlines())) == (0, "", 10_001)
        assert out.count("damaged") >= 10
    assert len(json.loads(say(capsys, "runs", many, "--json", "--where", "state=damaged")[1])["runs"]) == 10


def test_hostile_names_of_files(runs, capsys):
    names = ["\x1b[31mred.ktrxer", "two\nlines.ktrxer", "-rf.ktrxer", "a'b\"c;.ktrxer", "[x]*?.ktrxer", os.fsdecode(b"\xff\xfe.ktrxer"), "n" * 240 + ".ktrxer"]
    for name in names:
        shutil.copy(runs / "r0.ktrxer", runs / name)
    (runs / "loop.ktrxer").symlink_to("loop.ktrxer")
    (runs / "gone.ktrxer").symlink_to("nowhere")
    os.mkfifo(runs / "fifo.ktrxer")
    for words in ([], ["--columns", "file,cc"], ["--json"], ["--columns", "file,cc", "--json"]):
        status, out, err = say(capsys, "runs", runs, *words)
        assert (status, err) == (0, "")
        assert "\x1b" not in out
        out.encode()  # a terminal can show it
    assert say(capsys, "runs", runs)[1].count("\n") == 1 + 3 + len(names) + 3


def test_a_run_that_vanishes_while_it_is_listed_is_left_out(runs, capsys, monkeypatch):
    whole = head.read

    def vanishing(path: Path) -> head.Head:
        if path.name == "r1.ktrxer":
            path.unlink()
        return whole(path)

    monkeypatch.setattr(head, "read", vanishing)
    assert files_of(say(capsys, "runs", runs)[1]) == ["r2.ktrxer", "r0.ktrxer"]


def test_a_run_that_vanishes_before_its_figures_are_computed_is_named(runs):
    def vanishing(path: Path):
        if path.name == "r1.ktrxer":
            path.unlink()
        return open_any(path)

    found = {entry.path.name: entry for entry in listing.entries(runs, vanishing, None, ["cc"])}
    assert found["r1.ktrxer"].state == "damaged" and "No such file" in found["r1.ktrxer"].problem
    assert found["r0.ktrxer"].value("cc") == "cubic"


def test_a_directory_that_cannot_be_read_is_one_line(runs, capsys, monkeypatch):
    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    assert say(capsys, "runs", runs) == (1, "", f"ktrxer runs: {runs}: Permission denied\n")


def test_numbers_are_compared_by_value_and_unit():
    def holds(condition: str, value: where.Value) -> bool:
        return where.parse(condition).holds(lambda _: value)

    assert holds("x=70", "70 s") and holds("x=70.0 s", "70 s") and not holds("x=70 ms", "70 s")
    assert holds("x<100", "70 s") and not holds("x<100 ms", "70 s") and holds("x>9", 10.5) and not holds("x>b", "9")
    assert holds("x!=1", None) and not holds("x=1", None) and not holds("x<1", None) and not holds("x~*", None)
    assert holds("x='a and b'", "a and b") and holds("x=a b and x!=c", "a b")
