# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer query`: SQL over run files and over a data set; and what SQL must not do."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from ktrxer.analyse import dataset
from ktrxer.analyse.collection import in_parallel
from ktrxer.analyse.figures import of_run
from ktrxer.analyse.query import Limits, QueryError, query
from ktrxer.cli import main
from ktrxer.commands.opening import open_any
from ktrxer.store import RunWriter, StoreError, columns, open_run
from ktrxer.store.writer import write_finished
from synthetic import synthetic


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    for i, cc in enumerate(("cubic", "bbr", "cubic")):
        path = synthetic(place, seconds=10, delay=2, seed=i, title=f"t{i}", name=f"r{i}")
        run = open_run(path)
        meta = replace(run.meta, settings=run.meta.settings | {"cc": cc}, metadata={"labels": {"group": f"g{i}"}})
        write_finished(path, meta, {kind: run.table(kind) for kind in run.kinds()}, place / ".edited.tmp")
    return place


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    to = tmp_path_factory.mktemp("set") / "a set's"
    assert dataset.write(sorted(made.glob("*.ktrxer")), open_any, to) == (3, [])
    return to


@pytest.fixture(params=["files", "data set"])
def place(request, made, whole):
    return made if request.param == "files" else whole


def ask(sql: str, place: Path, limits: Limits | None = None) -> list[tuple]:
    answer = query(sql, place, open_any, None, limits or Limits())
    rows = list(answer.rows)
    assert answer.problems == []
    return rows


def say(capsys, *words):
    status = main([str(word) for word in words])
    told = capsys.readouterr()
    return status, told.out, told.err


# ------------------------------------------------------------------------------------------------------------------ tables


@pytest.mark.slow
def test_samples_are_those_of_the_runs(made, place):
    run = open_run(made / "r1.ktrxer")
    for series in run.meta.of_kind("latency"):
        rtt = run.arrays(series)["rtt_ns"]
        (row,) = ask(f"SELECT count(*), count(rtt_ns), sum(rtt_ns), min(class) FROM latency WHERE run = 'r1' AND name = '{series.name}'", place)
        assert row == (len(rtt), int((~np.isnan(rtt)).sum()), int(np.nansum(rtt)), series.klass)


@pytest.mark.slow
def test_every_table_has_the_same_columns_in_files_and_in_a_data_set(made, whole):
    for name in dataset.NAMES:
        described = [sorted(row[:2] for row in ask(f"DESCRIBE {name}", at)) for at in (made, whole)]
        assert described[0] == described[1], name
        assert ask(f"SELECT count(*) FROM {name}", made) == ask(f"SELECT count(*) FROM {name}", whole), name


@pytest.mark.slow
def test_small_tables(made, place):
    assert ask("SELECT run, cc, title, test, length_s, verdict, labels->>'group' FROM runs ORDER BY run", place) == [
        ("r0", "cubic", "t0", "rrul", 10.0, "valid", "g0"), ("r1", "bbr", "t1", "rrul", 10.0, "valid", "g1"),
        ("r2", "cubic", "t2", "rrul", 10.0, "valid", "g2")]  # fmt: skip
    assert ask("SELECT phase, from_ns, to_ns FROM phases WHERE run = 'r0' ORDER BY from_ns", place) == [
        ("idle_before", 0, 2 * 10**9), ("load", 2 * 10**9, 8 * 10**9), ("idle_after", 8 * 10**9, 10**10)]  # fmt: skip
    expected = {(one.key, one.value) for one in of_run(open_run(made / "r0.ktrxer"))}
    assert set(ask("SELECT figure, value FROM figures WHERE run = 'r0'", place)) == expected
    assert ask("SELECT count(*) FROM series WHERE kind = 'bytes'", place) == [(24,)]


@pytest.mark.slow
def test_tables_are_joined_and_names_have_any_case(place):
    rows = ask("WITH l AS (SELECT * FROM Latency WHERE state = 0) SELECT cc, count(*) FROM l JOIN RUNS USING (run) GROUP BY cc ORDER BY cc", place)
    assert [row[0] for row in rows] == ["bbr", "cubic"] and rows[0][1] * 1.9 < rows[1][1] < rows[0][1] * 2.1
    assert ask('SELECT max("end") FROM bytes', place) == [(1,)]


def test_a_copy_of_a_run_is_another_run(made, tmp_path):
    """Both files have the same id in meta.json: a join by it would count each sample twice."""
    for name in ("one", "two"):
        shutil.copy(made / "r0.ktrxer", tmp_path / f"{name}.ktrxer")
    (once,) = ask("SELECT count(*) FROM latency WHERE run = 'r0'", made)
    to = tmp_path / "set"
    dataset.write(sorted(tmp_path.glob("*.ktrxer")), open_any, to)
    for place in (tmp_path, to):
        assert ask("SELECT run, count(*) FROM latency JOIN runs USING (run) GROUP BY run ORDER BY run", place) == [("one", *once), ("two", *once)]


@pytest.mark.slow
def test_a_run_that_was_cut_off_is_left_out_beside_its_repeat(made, tmp_path, capsys):
    whole = open_run(made / "r0.ktrxer")
    tables = {kind: whole.table(kind) for kind in whole.kinds()}
    for name, number, cut in (("a", "1", False), ("b", "2", False), ("b-first", "2", True), ("c", "3", True), ("d", "", True)):
        labels = {"batch": "x", "batch_id": "7", "number": number, "try": "1"} if number else {}
        meta = replace(whole.meta, metadata={"labels": labels}, verdict=None if cut else "valid")
        if cut:
            writer = RunWriter(tmp_path, meta, name)
            writer.append("latency", {"series": [0], "t_ns": [5], "seq": [0], "state": [0], "rtt_ns": [1000]})
            writer.sync()
            writer.abandon()
        else:
            write_finished(tmp_path / f"{name}.ktrxer", meta, tables, tmp_path / ".edited.tmp")
    for _ in range(2):  # the second time from the cache
        status, out, err = say(capsys, "query", "SELECT run FROM runs ORDER BY run", tmp_path, "--csv")
        assert (status, out.split(), err) == (0, ["run", "a", "b", "c", "d"], LEFT_OUT)
    assert [row[0] for row in query("SELECT DISTINCT run FROM latency ORDER BY run", tmp_path, open_any, None, Limits()).rows] == ["a", "b", "c", "d"]
    listed = say(capsys, "runs", tmp_path, "--columns", "state,file")[1].splitlines()[1:]
    assert sorted(tuple(line.rsplit(maxsplit=1)) for line in listed) == [
        ("cut off", "c.ktrxer.part"), ("cut off", "d.ktrxer.part"), ("finished", "a.ktrxer"), ("finished", "b.ktrxer"),
        ("repeated", "b-first.ktrxer.part")]  # fmt: skip
    assert say(capsys, "runs", tmp_path, "--parquet", tmp_path / "set")[0] == 0
    assert ask("SELECT run FROM runs ORDER BY run", tmp_path / "set") == [("a",), ("b",), ("c",), ("d",)]


LEFT_OUT = "ktrxer query: left out: b-first.ktrxer.part: it was cut off, and b.ktrxer repeats it\n"


def test_only_the_files_that_a_condition_needs_are_read(made, monkeypatch):
    from ktrxer.store import members

    read = []
    whole = members.Members._read

    def counted(self, run):
        read.append(run.name)
        return whole(self, run)

    monkeypatch.setattr(members.Members, "_read", counted)
    ask("SELECT avg(rtt_ns) FROM latency WHERE run = 'r2'", made)
    assert set(read) == {"r2.ktrxer"}
    del read[:]
    ask("SELECT count(*) FROM runs", made)
    assert read == []


# ------------------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{to}/x.csv'",
        "COPY runs TO '{to}/x.parquet' (FORMAT parquet)",
        "CREATE TABLE x AS SELECT 1",
        "CREATE OR REPLACE VIEW runs AS SELECT 1",
        "DROP VIEW runs",
        "INSERT INTO runs VALUES (1)",
        "DELETE FROM runs",
        "UPDATE runs SET run = 'x'",
        "ATTACH '{to}/x.db'",
        "EXPORT DATABASE '{to}/x'",
        "IMPORT DATABASE '{to}/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
        "USE memory",
        "CHECKPOINT",
        "VACUUM",
        "BEGIN",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO '{to}/x.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{to}/x.csv'",
        "",
        "SELEC 1",
        "SELECT * FROM nonesuch",
        "SELECT nonesuch FROM runs",
    ],
)
def test_sql_that_does_more_than_read_the_tables_is_refused(place, tmp_path, sql):
    before = sorted(path.name for path in place.rglob("*"))
    with pytest.raises(QueryError) as error:
        ask(sql.format(to=place), place)
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in place.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/etc/passwd')", "glob('/etc/*')", "'/etc/passwd'", "read_parquet('{other}')",
     "sniff_csv('/etc/passwd')", "read_json('/etc/passwd')", "'https://example.net/x.parquet'", "read_text('{up}/../secret.txt')",
     "parquet_metadata('{other}')", "secret_table"],
)  # fmt: skip
def test_sql_reads_no_other_file_and_no_variable(place, tmp_path, source):
    other = tmp_path / "other.parquet"
    secret_table = dataset._table([{"run": "secret"}], {"run": "string"})
    pq.write_table(secret_table, other)
    (place.parent / "secret.txt").write_text("secret")
    with pytest.raises(QueryError) as error:
        ask(f"SELECT * FROM {source.format(other=other, up=place)}", place)
    assert "root:" not in str(error.value)


@pytest.mark.slow
def test_a_query_ends_at_its_time_limit_and_at_its_memory_limit(place):
    with pytest.raises(QueryError, match=r"ended after 0\.3 s: --timeout allows more"):
        ask("SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range + b.range = 7", place, Limits(seconds=0.3))
    with pytest.raises(QueryError, match="--memory allows more"):
        ask("SELECT list(range) FROM range(400000000)", place, Limits(memory_mib=100))


# ------------------------------------------------------------------------------------------------------------------ damaged and vanishing files


def test_damaged_runs_are_named_and_the_others_answer(made, tmp_path, capsys):
    for path in made.glob("*.ktrxer"):
        shutil.copy(path, tmp_path)
    whole = (made / "r0.ktrxer").read_bytes()
    (tmp_path / "cut.ktrxer").write_bytes(whole[:-30])
    damaged = bytearray(whole)
    damaged[damaged.index(b"PAR1") + 200] ^= 0xFF  # in the first table
    (tmp_path / "bit.ktrxer").write_bytes(damaged)
    status, out, err = say(capsys, "query", "SELECT count(DISTINCT run) AS n FROM latency", tmp_path, "--csv")
    assert (status, out) == (1, "n\n3\n")
    assert "left out: " in err and "cut.ktrxer" in err and "bit.ktrxer" in err and err.count("\n") == 2


def test_a_file_that_vanishes_while_it_is_queried_is_named(made, tmp_path):
    for path in made.glob("*.ktrxer"):
        shutil.copy(path, tmp_path)
    answer = query("SELECT count(DISTINCT run) FROM latency", tmp_path, vanishing, None, Limits())
    assert list(answer.rows) == [(2,)]
    assert len(answer.problems) == 1 and "r1.ktrxer" in answer.problems[0] and "No such file" in answer.problems[0]


def vanishing(path: Path):
    run = open_any(path)
    if path.name == "r1.ktrxer":
        path.unlink()
    return run


class Threaded:
    """Stands for an object of a library whose threads do not exist in a forked process: its end kills any other process."""

    def __init__(self):
        self.me, self.pid = self, os.getpid()

    def __del__(self):
        if os.getpid() != self.pid:
            os._exit(9)


def collected(number: int) -> int:
    gc.collect()
    return number


def test_garbage_of_this_process_is_not_collected_in_those_that_read_files():
    gc.disable()
    try:
        Threaded()
        assert list(in_parallel(collected, range(8), 1)) == list(range(8))
    finally:
        gc.enable()


@pytest.mark.slow
def test_hostile_names_and_titles(made, tmp_path, capsys):
    run = open_run(made / "r0.ktrxer")
    names = ["a'b", "two\nlines", "\x1b[31m", "x[1]*", '"; DROP TABLE runs; --']
    for name in names:
        write_finished(tmp_path / f"{name}.ktrxer", replace(run.meta, title="=cmd()\n\x1b[31m'\""), {"latency": run.table("latency")}, tmp_path / ".t")
    to = tmp_path / "set"
    assert dataset.write(sorted(tmp_path.glob("*.ktrxer")), open_any, to)[0] == len(names)
    for place in (tmp_path, to):
        assert sorted(row[0] for row in ask("SELECT run FROM latency GROUP BY run", place)) == sorted(names)
        for form in ([], ["--csv"], ["--json"], ["--jsonl"]):
            status, out, err = say(capsys, "query", "SELECT run, title, count(*) AS n FROM latency JOIN runs USING (run) GROUP BY ALL", place, *form)
            assert (status, err) == (0, "") and "\x1b" not in out
    assert sorted(path.name for path in tmp_path.glob("*.ktrxer")) == sorted(f"{name}.ktrxer" for name in names)


@pytest.mark.slow
def test_an_empty_directory_has_empty_tables(tmp_path):
    for name in dataset.NAMES:
        assert ask(f"SELECT count(*) FROM {name}", tmp_path) == [(0,)]


def test_a_run_without_a_table_has_no_rows_of_it(made, tmp_path):
    run = open_run(made / "r0.ktrxer")
    series = [one for one in run.meta.series if one.kind == "latency"]
    write_finished(tmp_path / "few.ktrxer", replace(run.meta, series=series), {"latency": run.table("latency").slice(0, 10)}, tmp_path / ".t")
    assert ask("SELECT count(*) FROM qdisc", tmp_path) == [(0,)] and ask("SELECT count(*) FROM latency", tmp_path) == [(10,)]


# ------------------------------------------------------------------------------------------------------------------ the command


@pytest.mark.slow
def test_answers_as_table_json_lines_and_csv(place, capsys):
    sql = "SELECT run, length_s, NULL AS none, 'a,b' AS text FROM runs ORDER BY run LIMIT 2"
    out = say(capsys, "query", sql, place)[1].splitlines()
    assert out[0].split() == ["run", "length_s", "none", "text"] and out[1].split() == ["r0", "10", "-", "a,b"]
    assert json.loads(say(capsys, "query", sql, place, "--json")[1]) == {
        "columns": ["run", "length_s", "none", "text"], "rows": [["r0", 10.0, None, "a,b"], ["r1", 10.0, None, "a,b"]]}  # fmt: skip
    lines = say(capsys, "query", sql, place, "--jsonl")[1].splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["r0", "r1"]
    assert list(csv.reader(io.StringIO(say(capsys, "query", sql, place, "--csv")[1])))[1] == ["r0", "10.0", "", "a,b"]


def test_sql_from_standard_input(place, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 40 + 2 AS n"))
    assert say(capsys, "query", "-", place, "--csv") == (0, "n\n42\n", "")


def test_a_long_table_is_cut_and_says_so(place, capsys):
    out = say(capsys, "query", "SELECT * FROM range(1500)", place)[1].splitlines()
    assert len(out) == 1002 and out[-1] == "500 more rows; --csv and --jsonl print all"


@pytest.mark.parametrize(("words", "status", "said"), [
    (["SELECT 1", "/nowhere"], 1, "No such file or directory"), (["SELECT 1", ".", "--timeout", "0"], 2, "positive numbers"),
    (["DROP TABLE x", "."], 1, "DROP is refused; give one SELECT"), (["SELECT runn FROM runs", "."], 1, "runn"),
    (["SELECT * FROM foo", "."], 1, "Table with name foo does not exist!; the tables are runs, series, phases, figures, latency, "),
])  # fmt: skip
def test_wrong_use_is_one_line(words, status, said, capsys):
    found, out, err = say(capsys, "query", *words)
    assert (found, out, err.count("\n")) == (status, "", 1) and said in err


# ------------------------------------------------------------------------------------------------------------------ the data set


def test_a_data_set_replaces_a_data_set_and_nothing_else(made, whole, tmp_path, capsys):
    to = tmp_path / "set"
    shutil.copytree(whole, to)
    assert say(capsys, "runs", made, "--where", "cc=bbr", "--parquet", to)[0] == 0
    assert ask("SELECT DISTINCT run FROM latency", to) == [("r1",)]
    (to / "mine.txt").write_text("mine")
    status, _, err = say(capsys, "runs", made, "--parquet", to)
    assert status == 1 and "holds other files than those of a data set" in err and (to / "mine.txt").exists()
    (tmp_path / "link").symlink_to(to)
    with pytest.raises(StoreError, match="not a directory"):
        dataset.write([made / "r0.ktrxer"], open_any, tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "set"]


def test_a_path_that_duckdb_takes_for_a_pattern_is_refused(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "a[b]*")
    with pytest.raises(QueryError, match=r"with one of \*\?\[ in its path: rename it"):
        ask("SELECT count(*) FROM runs", tmp_path / "a[b]*")


def test_a_data_set_that_fails_leaves_the_older_one(made, whole, tmp_path, monkeypatch):
    to = tmp_path / "set"
    shutil.copytree(whole, to)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        dataset.write(sorted(made.glob("*.ktrxer")), open_any, to)
    assert ask("SELECT count(*) FROM runs", to) == [(3,)] and [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.slow
def test_a_run_that_vanishes_while_the_set_is_written_is_left_out_everywhere(made, tmp_path):
    for path in made.glob("*.ktrxer"):
        shutil.copy(path, tmp_path)
    written, problems = dataset.write(sorted(tmp_path.glob("*.ktrxer")), vanishing, tmp_path / "set")
    assert written == 2 and len(problems) == 1 and "r1.ktrxer" in problems[0]
    for name in ("runs", "series", "phases", "figures", "latency"):
        assert ask(f"SELECT DISTINCT run FROM {name} ORDER BY 1", tmp_path / "set") == [("r0",), ("r2",)]


def test_columns_of_a_data_set_are_those_of_the_store(whole):
    for kind in columns.KINDS:
        if not (whole / kind).is_dir():
            continue
        names = pq.read_schema(whole / kind / "00001.parquet").names
        assert names[: len(columns.TABLES[kind])] == [column.name for column in columns.TABLES[kind]]
