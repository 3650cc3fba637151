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
    most: int | None = None  # the largest value of a small enumeration


'''


def _column(where: str, name: str, given: dict[str, Any]) -> str:
    if wrong := given.keys() - {"is", "empty", "values", "text", "since"}:
        raise TableError(f"{where}.{name}: unknown key {', '.join(sorted(wrong))}")
    if given.get("is") not in TYPES or not str(given.get("text", "")).endswith("."):
        raise TableError(f"{where}.{name}: `is` is one of {', '.join(TYPES)}, and `text` is a sentence")
    more = ", True" if given.get("empty") else ""
    more += f", most={len(given['values']) - 1}" if "values" in given else ""
    return f'        Column("{name}", "{given["is"]}"{more}),\n'


def module(file: Path = FILE) -> str:
    text = HEAD + "TABLES: dict[str, tuple[Column, ...]] = {\n"
    for kind, given in tomllib.loads(file.read_text()).items():
        rows = "".join(_column(f"{file.name}: {kind}", name, value) for name, value in given.items() if name != "_text")
        text += f'    "{kind}": (\n{rows}    ),\n'
    return text + "}\n"
