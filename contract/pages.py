# SPDX-License-Identifier: MIT OR Apache-2.0
"""The reference page of the site: each object of each command, a row for each field."""

from __future__ import annotations

from collections.abc import Iterator

from tables import Field, Object, Tables

HEAD = """# The objects that commands print

You find here each field of the objects, from the tables in `contract/fields/`. [How to read the output](output.md) says when each object is
printed. `docs/schema/` has the same as JSON schemas.
"""
TABLE = "| field | type | unit | meaning |\n|---|---|---|---|"


def _type(one: Field, columns: bool) -> str:
    kind = "number" if one.decimals is not None else one.type
    kind = ", ".join(f"`{value}`" for value in one.values) if one.values else kind
    kind = f"array of {one.of}" if one.type == "array" and one.of in ("string", "u64", "i64") else kind
    return f"array of {kind}" if columns else kind


def _meaning(one: Field) -> str:
    parts = [one.text]
    parts += [f"Null: {one.null}."] if one.null else []
    parts += [f"Absent: {one.absent}."] if one.absent else []
    parts += [] if one.small else ["Not of the small program."]
    parts += [f"Since {one.since}."] if one.since != "0.1" else []
    return " ".join(parts).replace("|", "\\|").replace("<", "&lt;")


def _rows(tables: Tables, groups: tuple[str, ...], before: str = "") -> Iterator[str]:
    for group in tables.parts(groups):
        for one in group.fields:
            yield f"| `{before}{one.name}` | {_type(one, group.columns)} | {one.unit} | {_meaning(one)} |"
            if one.of in tables.groups:
                yield from _rows(tables, (one.of,), f"{before}{one.name}{'[]' if one.type == 'array' else ''}.")


def _table(tables: Tables, groups: tuple[str, ...]) -> str:
    return "\n".join([TABLE, *_rows(tables, groups)]) + "\n"


def _section(tables: Tables, one: Object) -> str:
    names = ", ".join(f"`{name}`" for name in one.names)
    title = f"### {one.command}: {one.line}{f' {names}' if names else ''}\n"
    return "\n".join([title, one.text + "\n", *([_table(tables, one.has)] if one.has else [])])


def page(tables: Tables) -> str:
    parts = [HEAD, "## Of all commands\n"]
    for title, groups in (
        ("Each line of --jsonl", ("line",)),
        ("start", ("start",)),
        ("Each sample", ("sample",)),
        ("Each event", ("event",)),
        ("The event clock_step of commands that measure", ("clock_step",)),
        ("Each end", ("start_of_end", "ended")),
        ("The end of commands that measure", ("measured", "verdict")),
        ("A histogram", ("histogram",)),
    ):
        parts += [f"### {title}\n", _table(tables, groups)]
    for command in tables.commands:
        parts.append(f"## {command}\n")
        parts += [_section(tables, one) for one in tables.objects if one.command == command]
    return "\n".join(parts)
