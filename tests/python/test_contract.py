# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of the fields (contract/) and their use by the C code. tests/system/recorded.py compares the objects that commands print with them."""

import dataclasses
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import types
import typing
from pathlib import Path

import generate
import jsonschema
import metrics
import printed_check
import pytest
import schemas
import tables
from ktrxer.analyse.compare import Check, Trend
from ktrxer.analyse.grouping import LeftOut
from ktrxer.cli import SUBCOMMANDS, main
from ktrxer.exchange import openmetrics
from ktrxer.exchange import tables as exchange
from ktrxer.run.egress import OwnDrops
from ktrxer.run.own_load import OwnLoad
from ktrxer.store import open_run
from ktrxer.store.reasons import Reason
from ktrxer.summary import model
from ktrxer.summary.changes import Change
from ktrxer.summary.outages import Outage
from ktrxer.summary.policer import Policed
from ktrxer.summary.voice import Voice
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {"query rows"}  # the user names the fields
RAW = re.compile(r'\bjson_(?:u64|i64|fixed|rounded|double|bool|null|string|object|array|hist_us)(?:_or_null)?\(\s*[^,()]+,\s*"')

def test_generated_files_match_the_tables():
    assert not generate.stale(tables.load()), "run contract/generate.py write"


def test_metrics_are_written_by_the_functions_of_their_table():
    """cli/commands/*/metrics.toml. test_serve_report.py compares the names that are printed."""
    written = [name for path in (ROOT / "cli/commands").glob("*/*.c") for name in re.findall(r"\bmetric_(\w+)\(", path.read_text())]
    assert sorted(written) == sorted(one.key for one in metrics.load())
    assert not [path for path in (ROOT / "cli").rglob("*.c") if re.search(r"\bmetrics_(value|family|seconds)\(", path.read_text())]


def test_commands_write_fields_of_the_tables_only():
    """A key in a call is a field without a table. json.c is below the contract."""
    found = {path.name for folder in ("cli", "bench") for path in (ROOT / folder).rglob("*.c") if RAW.search(path.read_text())}
    assert not found


def test_a_field_that_no_table_has_does_not_compile(tmp_path):
    for family in generate.families(known := tables.load()):
        (tmp_path / f"fields_{family}.h").write_text(generate.headers.header(known, family))
    start = '#include "fields_stamp.h"\nvoid f(struct json *json);\nvoid f(struct json *json)\n{\n'

    def compiles(line):
        source = tmp_path / "one.c"
        source.write_text(f"{start}\t{line}\n}}\n")
        command = ["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{tmp_path}", f"-I{ROOT / 'cli/runtime'}", str(source)]
        return subprocess.run(command, capture_output=True, text=True).returncode == 0

    assert compiles("stamp_end_engine(json, (const char *)0);")
    assert not compiles("stamp_end_invented(json, 1);")
    assert not compiles("stamp_end_engine(json, 1);")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('x = { is = "u32", text = "A number." }', "unknown type u32"),
        ('x = { is = "u64" }', "lacks text"),
        ('x = { is = "u64", text = "a fragment" }', "is a sentence"),
        ('x = { is = "u64", text = "A number.", nul = "never" }', "unknown key nul"),
        ('x = { is = "enum", text = "A choice." }', "`values`"),
        ('x = { is = "object", of = "nothing", text = "An object." }', "no group nothing"),
        ('x-y = { is = "u64", text = "A number." }', "letters"),
        ("x = {", "bad.toml"),
    ],
)
def test_a_wrong_table_is_named(tmp_path, line, why):
    (tmp_path / "contract/fields").mkdir(parents=True)
    shutil.copy(ROOT / "contract/fields/common.toml", tmp_path / "contract/fields")
    (tmp_path / "contract/fields/bad.toml").write_text(f'[bad]\n_text = "A group."\n{line}\n')
    with pytest.raises(tables.TableError, match=re.escape(why)):
        tables.load(tmp_path)


def example(known, groups):
    """An object with each of its fields."""
    values = {"bool": True, "string": "x", "i64": 1, "u64": 1, "double": 1.0, "any": [None]}

    def one(field):
        if field.type in ("object", "histogram"):
            return example(known, (field.of or "histogram",))
        if field.type in ("array", "map"):
            item = values[field.of] if field.of in values else example(known, (field.of,))
            return {"x": item} if field.type == "map" else [item] * max(1, field.least)
        texts = {"version": "0.1.0", "boot_id": "0" * 36}
        return field.values[0] if field.values else texts.get(field.name, values.get(field.type, 1.0)) if field.min is None else field.min

    return {field.name: [one(field)] if group.columns else one(field) for group in known.parts(groups) for field in group.fields}


@pytest.mark.slow
@pytest.mark.parametrize("command", tables.load().commands)
def test_an_object_with_a_field_less_or_more_is_refused(command):
    """By the schema that the system tests use for each object that they read (tests/system/recorded.py)."""
    known = tables.load()
    check = jsonschema.Draft202012Validator(schemas.schema_of(known, command))
    for made in known.objects:
        if made.command == command:
            whole = example(known, known.around(made)) | ({"type": made.line} if made.line != "object" else {})
            whole |= {"kind" if made.line == "sample" else "name": made.names[0]} if made.names else {}
            assert not list(check.iter_errors(whole))
            assert bool(list(check.iter_errors(whole | {"invented": 1}))) is (command not in COLUMNS)
            required = [one.name for one in known.members(known.around(made)) if one.required]
            own = next((one.name for one in known.members(made.has) if one.required), None)
            # A failed command has an end object without a field of its own: the first one shows that it did not fail.
            assert not [name for name in required if (made.line != "end" or name != own) and check.is_valid({k: v for k, v in whole.items() if k != name})]


# The data classes that asdict() prints, each with its group. An infinite number is null.
PRINTED = {
    model.Summary: "summary", Check: "compare_margin", LeftOut: "compare_left_out", Trend: "compare_drift",
}  # fmt: skip
TYPES = {int: ("u64", "i64"), float: ("double",), str: ("string", "enum"), bool: ("bool",)}


def differences(known, made, group):
    """Where the group is not the data class: names and their order, types, and what can be null."""
    hints = typing.get_type_hints(made, vars(sys.modules[made.__module__]) | names_of_types())
    if list(hints) != (names := [one.name for one in known.groups[group].fields]):
        yield f"{group}: {list(hints)} and {names}"
        return
    for one in known.groups[group].fields:
        hint = hints[one.name]
        given = [part for part in typing.get_args(hint) if part is not type(None)] if isinstance(hint, types.UnionType) else [hint]
        if isinstance(hint, types.UnionType) and not one.null:
            yield f"{group}.{one.name}: it can be null"
        yield from different_type(known, one, given[0], group)


def different_type(known, one, hint, group):
    where, origin, inner = f"{group}.{one.name}", typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        hint = str
    if origin in (list, dict):
        if one.type != {list: "array", dict: "map"}[origin]:
            yield f"{where}: {hint} is {one.type}"
        elif dataclasses.is_dataclass(inner[-1]):
            yield from differences(known, inner[-1], one.of) if inner[-1] is not Reason else ()
        elif one.of not in TYPES[inner[-1]]:
            yield f"{where}: {hint} is of {one.of}"
    elif dataclasses.is_dataclass(hint):
        yield from differences(known, hint, one.of)
    elif one.type not in TYPES[hint]:
        yield f"{where}: {hint} is {one.type}"


def names_of_types():
    return {one.__name__: one for one in (OwnDrops, OwnLoad, Change, Outage, Policed, Voice)}


def test_the_groups_of_data_classes_have_their_fields():
    known = tables.load()
    assert not [text for made, group in PRINTED.items() for text in differences(known, made, group)]
    less = dataclasses.replace(known.groups["summary_level"], fields=known.groups["summary_level"].fields[1:])
    assert list(differences(tables.Tables(known.groups | {"summary_level": less}), model.Summary, "summary"))


def test_an_object_of_a_python_command_with_another_field_is_found(tmp_path, capsys):
    """By the fixture that checks each object that a test in this process prints (conftest.py)."""
    assert main(["summary", str(synthetic(tmp_path)), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert not printed_check.wrong("summary", made)
    assert printed_check.wrong("summary", made | {"invented": 1})
    assert printed_check.wrong("summary", {name: value for name, value in made.items() if name != "grade"})
    assert printed_check.wrong("summary", made | {"phases": [made["phases"][0] | {"invented": 1}]})


def test_each_python_command_with_json_has_a_table():
    """`bench` prints the objects of its parts."""
    known, without = set(tables.load().commands), set()
    for name, one in SUBCOMMANDS.items():
        parser = getattr(importlib.import_module(one.module), "parser", None)
        if parser is not None and any("--json" in action.option_strings for action in parser()._actions) and name not in known:
            without.add(name)
    assert without <= {"bench"}, without


def test_schemas_are_closed_at_every_level():
    def open_objects(schema, path):
        if isinstance(schema, dict):
            if schema.get("type") == "object" and "required" in schema and "$defs" not in schema and schema.get("additionalProperties") is not False:
                yield path.rpartition(".")[2]
            for key, part in schema.items():
                yield from open_objects(part, f"{path}.{key}")
        elif isinstance(schema, list):
            for part in schema:
                yield from open_objects(part, path)

    known = tables.load()
    for command in known.commands:
        made = schemas.schema_of(known, command)
        assert set(open_objects(made["$defs"], command)) <= {"verdict_reason", "run_reason", "bench_row", "bench_change"}, "the values of a sentence, and columns"
        assert made.get("additionalProperties") is (command in COLUMNS) or made["allOf"]


def test_names_of_csv_and_units_of_openmetrics_are_those_of_the_tables(tmp_path):
    """A CSV file has the columns of the table, and the names of the run and the series beside them."""
    columns = tomllib.loads((ROOT / "contract" / "store.toml").read_text())
    run = open_run(synthetic(tmp_path))
    for one in exchange.write(run, "a", "csv", tmp_path):
        header = one.path.read_text().splitlines()[0].replace('"', "").split(",")
        own = [name for name in columns[one.kind] if name not in ("_text", "series")]
        assert [name for name in header if name in own] == own
        assert set(header) - set(own) <= {"run", "name", "series", "class", "direction", "flow", "group", "unit"}
    units = {field.unit for group in tables.load().groups.values() for field in group.fields}
    assert set(openmetrics.UNITS) - {"Mbit/s"} <= units
