# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/catalogue.md, from the table and the recipes: python -m ktrxer.catalogue.reference > docs/reference/catalogue.md"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ktrxer.catalogue.recipe import Test
from ktrxer.catalogue.table import EXPLAINED, TABLE, Entry

HEAD = """\
# The catalogue of tests

You find here each test of `ktrxer run`, the recipe that makes its plan, and the recipe's parameters.

`ktrxer tests` lists the names, and `ktrxer tests NAME` prints the processes of a test with their times. A name that Flent has is the same
test, with the same names of series. *Recipe* is a file of `python/ktrxer/catalogue`; *set* are the values that the name gives to its
parameters. `--set NAME=VALUE` changes them. `ktrxer run` refuses a test whose runner or tool is missing, and names it.
[Add a recipe](../howto/add-recipe.md) shows how to write your own.
"""
PARAMETERS = """\
## Parameters of the recipes

A list is given with commas: `--set markings=BE,CS1`. The values of a list for flows are dealt out in turn. A bit rate may have a unit:
`6M`, `64k`. A DSCP is a name (`BE`, `CS1`, `AF41`, `EF`) or 0 to 63. Names of Flent with a dash may be written with it (`command-host`).
Flent's parameter `tcp_cong_control` is `--cc` of every test, by either name.
"""
EXPLANATION = """\
## Tests of Flent that have no recipe
"""


def page() -> str:
    lines = [HEAD]
    families = list(dict.fromkeys(entry.family for entry in TABLE.values()))
    for family in families:
        lines += [f"## {family[:1].upper()}{family[1:]}", "", "| name | test | recipe | set | far ends |", "|---|---|---|---|---|"]
        lines += [_row(name, entry) for name, entry in TABLE.items() if entry.family == family]
        lines.append("")
    lines += [EXPLANATION, *(f"- `{name}`: {why}." for name, why in EXPLAINED.items()), "", PARAMETERS]
    for recipe in dict.fromkeys(entry.recipe for entry in TABLE.values()):
        test: Test = import_module(f"ktrxer.catalogue.{recipe}").TEST
        rows = list(_parameters(test))
        if rows:
            lines += [f"### {recipe}", "", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, entry: Entry) -> str:
    given = ", ".join(f"`{key}={value}`" for key, value in entry.given.items())
    hosts = str(entry.hosts[0]) if len(set(entry.hosts)) == 1 else f"{entry.hosts[0]} to {entry.hosts[1]}"
    differs = f". Other than in Flent: {entry.differs}" if entry.differs else ""
    return f"| `{name}` | {entry.summary}{differs} | {entry.recipe} | {given} | {hosts} |"


def _parameters(test: Test) -> Iterator[str]:
    hints = typing.get_type_hints(test.parameters)
    for one in dataclasses.fields(test.parameters):
        yield f"| `{one.name}` | {_type(hints[one.name], one.metadata)} | {_text(one.default)} | {one.metadata.get('help', '')} |"


def _type(kind: Any, limits: typing.Mapping[str, Any]) -> str:
    if typing.get_origin(kind) is tuple:
        return f"list: {_type(typing.get_args(kind)[0], limits)}"
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    if kind in (int, float):
        return f"{limits['low']:,} to {limits['high']:,}" + "".join(f", or `{word}`" for word in limits["words"])
    return "yes or no" if kind is bool else "text"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`" if value else "none"
    return f"`{value}`" if value != "" else "empty"


if __name__ == "__main__":
    sys.stdout.write(page())
