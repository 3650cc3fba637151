# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer export`: CSV, Parquet, OpenMetrics, and descriptions of published data sets."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ktrxer.analyse.figures import of_run
from ktrxer.commands import export
from ktrxer.exchange import openmetrics
from ktrxer.store import columns, open_run
from ktrxer.store.writer import write_finished
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from synthetic import synthetic

HOSTILE = 'a"b\\c\nd=1 # EOF,x\x1b[31m'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = synthetic(tmp_path_factory.mktemp("made"), seconds=8, delay=2, title="plain", name="one")
    opened = open_run(path)
    write_finished(path.with_name("odd.ktrxer"), replace(opened.meta, title=HOSTILE), {k: opened.table(k) for k in opened.kinds()}, path.parent / ".t")
    return path


def test_csv_has_every_sample(run, tmp_path, capsys):
    assert export.main(["--format", "csv", str(run), "-D", str(tmp_path)]) == 0
    opened = open_run(run)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"one.{kind}.csv" for kind in opened.kinds() if len(opened.table(kind)))
    with (tmp_path / "one.latency.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = opened.table("latency")
    assert [int(row["t_ns"]) for row in rows] == table.column("t_ns").to_pylist()
    assert [int(row["rtt_ns"]) if row["rtt_ns"] else None for row in rows] == table.column("rtt_ns").to_pylist()
    assert {row["run"] for row in rows} == {"one"} and {row["class"] for row in rows} == {"", "BE", "BK", "EF"}
    assert next(iter(rows[0])) == "run" and "one.latency.csv: " in capsys.readouterr().out


def test_parquet_has_the_types_of_the_store(run, tmp_path):
    assert export.main(["--format", "parquet", str(run), "-D", str(tmp_path)]) == 0
    made = pq.read_table(tmp_path / "one.bytes.parquet")
    stored = open_run(run).table("bytes")
    for column in columns.TABLES["bytes"]:
        assert made.column(column.name).cast(stored.column(column.name).type).equals(stored.column(column.name)), column.name


def test_files_are_replaced_only_by_force(run, tmp_path, capsys):
    words = ["--format", "csv", str(run), "-D", str(tmp_path)]
    (tmp_path / "one.qdisc.csv").write_text("mine")
    assert export.main(words) == 1
    assert "one.qdisc.csv: exists already; --force replaces it" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["one.qdisc.csv"]
    assert export.main([*words, "--force"]) == 0 and (tmp_path / "one.qdisc.csv").read_text() != "mine"


def test_runs_of_one_name_have_files_of_two_names(run, tmp_path):
    (tmp_path / "b").mkdir()
    shutil.copy(run, tmp_path / "b" / "one.ktrxer")
    (tmp_path / "out").mkdir()
    assert export.main(["--format", "csv", str(run), str(tmp_path / "b" / "one.ktrxer"), "-D", str(tmp_path / "out")]) == 0
    assert {"one.latency.csv", "one-2.latency.csv"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_openmetrics_is_read_by_the_reference_parser(run, capsys):
    assert export.main(["--format", "openmetrics", str(run), str(run.with_name("odd.ktrxer"))]) == 0
    text = capsys.readouterr().out
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["ktrxer_run_figure_seconds"].unit == "seconds"
    found = {(sample.labels["run"], sample.labels["figure"]): sample for family in families.values() for sample in family.samples}
    figures = of_run(open_run(run))
    assert len(found) == 2 * len(figures)
    for one in figures:
        sample = found["one", one.key]
        assert sample.value == pytest.approx(one.value * openmetrics.UNITS[one.unit][1])
        assert sample.timestamp is not None and sample.labels["test"] == "rrul"
    assert "\x1b" not in text and found["odd", figures[0].key].labels["title"].startswith('a"b\\c\nd=1')


def test_openmetrics_of_quantiles_among_lost_probes():
    text = openmetrics.text([({"run": "a"}, "x", "ms", float("inf"), None), ({"run": "a"}, "y", "oranges", 2.0, 1.5)])
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["ktrxer_run_figure_seconds"].samples[0].value == float("inf")
    assert families["ktrxer_run_figure"].samples[0].labels == {"run": "a", "figure": "y", "unit": "oranges"}
    assert openmetrics.text([]) == "# EOF\n"


def test_openmetrics_to_a_file(run, tmp_path):
    words = ["--format", "openmetrics", str(run), "-o", str(tmp_path / "f.txt")]
    assert export.main(words) == 0 and (tmp_path / "f.txt").read_text().endswith("# EOF\n")
    assert export.main(words) == 1
    assert export.main([*words, "-f"]) == 0
    assert export.main([*words[:-1], str(tmp_path / "none" / "f.txt")]) == 1


@pytest.mark.parametrize(("form", "name"), [("frictionless", "datapackage.json"), ("croissant", "croissant.json")])
def test_a_description_names_each_file_with_its_sum(run, tmp_path, form, name):
    words = ["--format", form, str(run), "-D", str(tmp_path), "--license", "CC-BY-4.0", "--title", "Queues <b>"]
    assert export.main(words) == 0
    made = json.loads((tmp_path / name).read_text())
    if form == "frictionless":
        described = {one["path"]: (one["bytes"], one["hash"].removeprefix("sha256:")) for one in made["resources"]}
    else:
        files = [one for one in made["distribution"] if one["@type"] == "cr:FileObject"]
        described = {one["contentUrl"]: (int(one["contentSize"].split()[0]), one["sha256"]) for one in files}
    there = {path.name: (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()) for path in tmp_path.iterdir() if path.name != name}
    assert described == there and len(there) == 6
    assert "CC-BY-4.0" in json.dumps(made) and "near" not in json.dumps(made), "the name of the measuring host is not published"
    assert export.main(words) == 1, "a description is not replaced without --force"


def test_fields_of_a_data_package_are_the_columns_of_its_files(run, tmp_path):
    assert export.main(["--format", "frictionless", str(run), "-D", str(tmp_path)]) == 0
    made = json.loads((tmp_path / "datapackage.json").read_text())
    assert made["name"] and made["name"] == made["name"].lower() and "licenses" not in made
    for resource in made["resources"]:
        with (tmp_path / resource["path"]).open(newline="") as file:
            reader = csv.reader(file)
            fields = resource["schema"]["fields"]
            assert next(reader) == [field["name"] for field in fields]
            for row in reader:
                for value, field in zip(row, fields, strict=True):
                    if value:
                        {"integer": int, "number": float, "string": str}[field["type"]](value)


def test_record_sets_of_croissant_name_columns_that_exist(run, tmp_path):
    assert export.main(["--format", "croissant", str(run), "-D", str(tmp_path)]) == 0
    made = json.loads((tmp_path / "croissant.json").read_text())
    sets = {one["@id"]: one for one in made["distribution"] if one["@type"] == "cr:FileSet"}
    for record in made["recordSet"]:
        pattern = sets[record["field"][0]["source"]["fileSet"]["@id"]]["includes"]
        (path,) = tmp_path.glob(pattern)
        assert pq.read_schema(path).names == [field["source"]["extract"]["column"] for field in record["field"]]


def test_damaged_runs_are_named_and_the_others_are_exported(run, tmp_path, capsys):
    (tmp_path / "bad.ktrxer").write_bytes(run.read_bytes()[:-30])
    out = tmp_path / "out"
    out.mkdir()
    for form in ("csv", "parquet", "frictionless", "croissant", "openmetrics"):
        words = ["--format", form, str(tmp_path / "bad.ktrxer"), str(run), str(tmp_path / "absent.ktrxer"), "--force"]
        assert export.main([*words, *(["-o", str(out / "m.txt")] if form == "openmetrics" else ["-D", str(out)])]) == 1
        err = capsys.readouterr().err
        assert "bad.ktrxer" in err and "absent.ktrxer" in err and err.count("\n") == 2
    assert {"one.latency.csv", "one.latency.parquet", "datapackage.json", "croissant.json", "m.txt"} <= {path.name for path in out.iterdir()}


@pytest.mark.slow
def test_hostile_names(run, tmp_path, capsys):
    names = ["a'b\"c", "two\nlines", "\x1b[31m", "-rf"]
    for name in names:
        shutil.copy(run, tmp_path / f"{name}.ktrxer")
    out = tmp_path / "out"
    out.mkdir()
    paths = [str(tmp_path / f"{name}.ktrxer") for name in names]
    for form in ("csv", "frictionless", "croissant"):
        assert export.main(["--format", form, *paths, "-D", str(out), "--force"]) == 0
    assert export.main(["--format", "openmetrics", *paths]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert all(path.parent == out for path in Path(out).rglob("*"))


@pytest.mark.parametrize(("words", "said"), [
    (["--format", "csv", "-o", "x.csv"], "-o is for one file"), (["--format", "nonesuch"], "'nonesuch' is not known; it is one of: flent"),
    (["--format", "croissant", "--license", "no license"], "expected an SPDX identifier"),
])  # fmt: skip
def test_wrong_use(run, words, said, capsys):
    with pytest.raises(SystemExit) as error:
        export.main([str(run), *words])
    assert error.value.code == 2 and said in capsys.readouterr().err
