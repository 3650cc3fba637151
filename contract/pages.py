# SPDX-License-Identifier: MIT OR Apache-2.0
"""The reference page of the site: each object of each command, a row for each field."""

from __future__ import annotations

from collections.abc import Iterator

from tables import SCALARS, Field, Object, Tables

HEAD = """# The objects that commands print

You find here each field of the objects, from the tables of fields. [How to read the output](output.md) says when each object is
printed. `docs/schema/` has the same as JSON schemas.
"""
TABLE = "| field | type | unit | meaning |\n|---|---|---|---|"
COMMON = (
    ("Each line of --jsonl", ("line",)),
    ("start", ("start",)),
    ("Each sample", ("sample",)),
    ("Each event", ("event",)),
    ("The event clock_step of commands that measure", ("clock_step",)),
    ("Each end", ("start_of_end", "ended")),
    ("The end of commands that measure", ("measured", "verdict")),
    ("A distribution", ("histogram",)),
)


def _type(one: Field, columns: bool) -> str:
    kind = "number" if one.decimals is not None else one.type
    kind = ", ".join(f"`{value}`" for value in one.values) if one.values else kind
    kind = f"{one.type} of {one.of}" if one.type in ("array", "map") and one.of in (*SCALARS, "any") else kind
    return f"array of {kind}" if columns else kind


def _rows(tables: Tables, groups: tuple[str, ...]) -> Iterator[str]:
    for name, one, columns in tables.rows(groups):
        meaning = one.meaning.replace("|", "\\|").replace("<", "&lt;")
        yield f"| `{name}` | {_type(one, columns)} | {one.unit} | {meaning} |"


def _table(tables: Tables, groups: tuple[str, ...]) -> str:
    return "\n".join([TABLE, *_rows(tables, groups)]) + "\n"


def _section(tables: Tables, one: Object) -> str:
    names = ", ".join(f"`{name}`" for name in one.names)
    title = f"### {one.command}: {one.line}{f' {names}' if names else ''}\n"
    return "\n".join([title, one.text + "\n", *([_table(tables, one.has)] if one.has else [])])


def page(tables: Tables) -> str:
    parts = [HEAD, "## Of all commands\n"]
    for title, groups in COMMON:
        parts += [f"### {title}\n", _table(tables, groups)]
    for command in tables.commands:
        parts.append(f"## {command}\n")
        parts += [_section(tables, one) for one in tables.objects if one.command == command]
    return "\n".join(parts)
