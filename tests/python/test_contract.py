# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of the fields (contract/) and their use by the C code. tests/system/recorded.py compares the objects that commands print with them."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import generate
import jsonschema
import pytest
import schemas
import tables
from ktrxer.exchange import openmetrics
from ktrxer.exchange import tables as exchange
from ktrxer.store import open_run
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
RAW = re.compile(r'\bjson_(?:u64|i64|fixed|rounded|double|bool|null|string|object|array|hist_us)(?:_or_null)?\(\s*[^,()]+,\s*"')

def test_generated_files_match_the_tables():
    assert not generate.stale(tables.load()), "run contract/generate.py write"


def test_commands_write_fields_of_the_tables_only():
    """A key in a call is a field without a table. json.c and bench/ are below and beside the contract."""
    found = {path.name for path in (ROOT / "cli").rglob("*.c") if RAW.search(path.read_text())}
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
    values = {"bool": True, "string": "x", "i64": 1, "u64": 1, "double": 1.0}

    def one(field):
        if field.type in ("object", "histogram"):
            return example(known, (field.of or "histogram",))
        if field.type == "array":
            return [values[field.of] if field.of in values else example(known, (field.of,))] * max(1, field.least)
        texts = {"version": "0.1.0", "boot_id": "0" * 36}
        return field.values[0] if field.values else texts.get(field.name, values.get(field.type, 1.0)) if field.min is None else field.min

    return {field.name: [one(field)] if group.columns else one(field) for group in known.parts(groups) for field in group.fields}


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
            assert list(check.iter_errors(whole | {"invented": 1}))
            required = [one.name for one in known.members(known.around(made)) if one.required]
            own = next((one.name for one in known.members(made.has) if one.required), None)
            # A failed command has an end object without a field of its own: the first one shows that it did not fail.
            assert not [name for name in required if (made.line != "end" or name != own) and check.is_valid({k: v for k, v in whole.items() if k != name})]


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
        assert set(open_objects(made["$defs"], command)) <= {"verdict_reason", "check_reason"}, "the values of a sentence"
        assert made.get("additionalProperties") is False or made["allOf"]


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
