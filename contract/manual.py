# SPDX-License-Identifier: MIT OR Apache-2.0
"""Section OUTPUT of the manual pages, in mdoc. The build adds it to the finished pages, so that no program carries these texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import metrics
from pages import COMMON
from tables import Field, Tables

KINDS = {"u64": "integer", "i64": "integer", "bool": "true or false", "histogram": "distribution", "any": "any value"}
ITEMS = {"string": "texts", "u64": "integers", "i64": "integers", "double": "numbers", "any": "values"}
NEXT = ".Sh EXIT STATUS"
# A script; a part of the page of `truth`; the lines of --jsonl, which have the columns of the query.
WITHOUT_PAGE = ("bench figures", "truth chance", "query rows")
POINTER = "With --jsonl, each line is an object; with --json, the end object alone is printed. ktrxer(1) has the fields of all commands."


def _text(words: str) -> str:
    """Words as text without markup. A name in `` is bold, and each sentence begins a line, as mdoc wants it."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    escaped = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", escaped).replace("ktrxer(1)", "\n.Xr ktrxer 1\n")
    lines = re.split(r"(?<=\.) +(?=[A-Z\\])|\n", escaped)
    return "\n".join(f"\\&{line}" if line.startswith("'") else line.strip() for line in lines if line)


def _kind(one: Field, columns: bool) -> str:
    kind = "number" if one.decimals is not None or one.type == "double" else KINDS.get(one.type, one.type)
    if one.type in ("array", "map"):
        items = ITEMS.get(one.of, "objects")
        kind = f"array of {items}" if one.type == "array" else f"object of {items} with free names"
    kind = "text" if kind in ("string", "enum") else kind
    kind = f"array of {kind}s" if columns else kind
    return f"{kind}, {one.unit}" if one.unit and not one.name.endswith(f"_{one.unit}") else kind


def _fields(tables: Tables, groups: tuple[str, ...]) -> Iterator[str]:
    yield ".Bl -tag -width Ds"
    for name, one, columns in tables.rows(groups):
        values = [f"One of {', '.join(f'`{value}`' for value in one.values)}."] if one.values else []
        yield f'.It Cm "\\&{name}" Pq {_kind(one, columns)}'
        yield _text(" ".join([one.meaning, *values]))
    yield ".El"


def _part(tables: Tables, title: str, text: str, groups: tuple[str, ...]) -> Iterator[str]:
    yield f".Ss {_text(title)}"
    yield _text(text)
    if any(tables.members(groups)):
        yield from _fields(tables, groups)


def sections(tables: Tables) -> dict[str, str]:
    """The sections by the name of the page."""
    common = [line for title, groups in COMMON for line in _part(tables, title, tables.groups[groups[0]].text, groups)]
    found = {"ktrxer": [".Sh OUTPUT", _text("The fields of the objects that --jsonl and --json print, of all commands."), *common]}
    for command in (name for name in tables.commands if name not in WITHOUT_PAGE):
        lines = found[f"ktrxer-{command.replace(' ', '-')}"] = [".Sh OUTPUT", _text(POINTER)]
        for one in tables.objects:
            if one.command == command and one.line == "object":
                lines[1:] = [_text(one.text), *_fields(tables, one.has)]
            elif one.command == command:
                lines += _part(tables, " ".join((one.line, ", ".join(one.names))).strip(), one.text, one.has)
    found["ktrxer-serve"] += [f".Ss {metrics.TITLE}", ".Bl -tag -width Ds"]
    found["ktrxer-serve"] += [line for one in metrics.load() for line in (f'.It Cm "\\&{one.sample}" Pq {one.type}', _text(one.text))]
    found["ktrxer-serve"].append(".El")
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def add(tables: Tables, folder: Path) -> None:
    """To the pages of this folder, before the exit status."""
    for name, text in sections(tables).items():
        path = folder / f"{name}.1"
        if path.exists():
            before, mark, after = path.read_text().partition(f"{NEXT}\n")
            path.write_text(before + text + mark + after)
