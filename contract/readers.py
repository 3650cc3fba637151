# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python module of the fields that the Python half reads, those of C commands: the types of each group, and the groups of each line."""

from __future__ import annotations

from tables import LINES, SCALARS, Field, Tables

HEAD = '''# SPDX-License-Identifier: MIT OR Apache-2.0
# ruff: noqa: E501
"""The objects that commands print. Made by contract/generate.py from contract/fields/. `name:type`; a type is a letter (i: a whole number,
n: a number, b: true or false, s: text), {group} or [type]."""

'''
LETTERS = {"u64": "i", "i64": "i", "bool": "b", "string": "s", "enum": "s"}


def _type(one: Field, columns: bool) -> str:
    if one.type in ("object", "histogram"):
        kind = f"{{{one.of or 'histogram'}}}"
    elif one.type == "array":
        kind = f"[{LETTERS.get(one.of, 'n') if one.of in SCALARS else f'{{{one.of}}}'}]"
    else:
        kind = LETTERS.get(one.type, "n")
    return f"[{kind}]" if columns else kind


def module(tables: Tables) -> str:
    text = HEAD + "GROUPS = {\n"
    for group in (one for one in tables.groups.values() if one.c):
        fields = " ".join(f"{one.name}:{_type(one, group.columns)}" for part in tables.parts((group.name,)) for one in part.fields)
        text += f'    "{group.name}": "{fields}",\n'
    text += "}\n# Command, type of the line, and its kind or name.\nLINES = {\n"
    objects = [one for one in tables.objects if one.c]
    for command in sorted({one.command for one in objects if one.line in LINES}):
        text += f'    ("{command}", "start", ""): "line start",\n    ("{command}", "event", "clock_step"): "line event clock_step",\n'
    for made in objects:
        for name in made.names or ("",):
            text += f'    ("{made.command}", "{made.line}", "{name}"): "{" ".join(tables.around(made))}",\n'
    return text + "}\n"
