# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python module of the tables of a stored run, from store.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tables import TableError

FILE = Path(__file__).resolve().parent / "store.toml"
TYPES = ("int32", "int64", "uint8", "float", "double", "string")
HEAD = '''# SPDX-License-Identifier: MIT OR Apache-2.0
"""The columns of each table of a run. Made by contract/generate.py from contract/store.toml."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # the name of the Arrow type
    nullable: bool = False
    values: tuple[str, ...] = ()  # of an enumeration: the names of 0, 1, ...


'''


def _column(where: str, name: str, given: dict[str, Any]) -> str:
    if wrong := given.keys() - {"is", "empty", "values", "as", "text", "since"}:
        raise TableError(f"{where}.{name}: unknown key {', '.join(sorted(wrong))}")
    if given.get("is") not in TYPES or not str(given.get("text", "")).endswith("."):
        raise TableError(f"{where}.{name}: `is` is one of {', '.join(TYPES)}, and `text` is a sentence")
    more = ", True" if given.get("empty") else ""
    more += f", values={given['as']}" if "values" in given else ""
    return f'        Column("{name}", "{given["is"]}"{more}),\n'


def _quoted(value: str) -> str:
    return f'"{value}"'


def module(file: Path = FILE) -> str:
    tables = tomllib.loads(file.read_text())
    text = HEAD
    for name, values in {one["as"]: one["values"] for given in tables.values() for one in given.values() if "values" in one}.items():
        text += f"{name} = ({', '.join(map(_quoted, values))})\n{', '.join(values).upper()} = range({len(values)})\n"
    text += "\nTABLES: dict[str, tuple[Column, ...]] = {\n"
    for kind, given in tables.items():
        rows = "".join(_column(f"{file.name}: {kind}", name, value) for name, value in given.items() if name != "_text")
        text += f'    "{kind}": (\n{rows}    ),\n'
    return text + "}\n"
