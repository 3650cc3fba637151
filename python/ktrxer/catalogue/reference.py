# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/reference/catalogue.md, from the table and the recipes: python -m ktrxer.catalogue.reference > docs/reference/catalogue.md"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ktrxer import catalogue, runners
from ktrxer.catalogue.recipe import Test, example
from ktrxer.catalogue.table import EXPLAINED, TABLE, Entry
from ktrxer.places import LOCAL
from ktrxer.runners.marks import DSCP
from ktrxer.runners.runner import Options

HEAD = """\
# The catalogue of tests

You find here each test of `ktrxer run`, the recipe that makes its plan, and the recipe's parameters.

`ktrxer tests` lists the names, and `ktrxer tests NAME` prints the processes of a test with their times. A name that Flent has is the same
test, with the same names of series. *Recipe* is a file of `python/ktrxer/catalogue`; *set* are the values that the name gives to its
parameters. `--set NAME=VALUE` changes them. `ktrxer run` refuses a test whose runner or tool is missing, and names it.
[Add a recipe](../howto/add-recipe.md) shows how to write your own.
"""
NEEDS = """\
## What a test needs

`ktrxer serve` at the far end is enough for each test that is not in this table. *Congestion control* is a part of the kernel of each host
that sends. A user other than root may use those that `sysctl net.ipv4.tcp_allowed_congestion_control` lists. Linux has no `ledbat` and no
`prague`: name another one with the recipe's parameter (`cc_algos`, `torrent_cc`, `l4s_cc`).

| tests | programs on this host (Debian package) | at the far end | congestion control |
|---|---|---|---|
"""
SERVE = "`ktrxer serve`"
EVERYWHERE = ("reno", "cubic")  # congestion control that each kernel has
GUARDED = DSCP["CS6"]  # `ktrxer serve` has flows with this DSCP and higher ones only where its owner allows them
PARAMETERS = """\
## Parameters of the recipes

A list is given with commas: `--set markings=BE,CS1`. The values of a list for flows are assigned in turn. A bit rate may have a unit:
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
    lines += [NEEDS + "\n".join(_needs()), "", EXPLANATION, *(f"- `{name}`: {why}." for name, why in EXPLAINED.items()), "", PARAMETERS]
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


def _needs() -> Iterator[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in TABLE:
        needs = _needs_of(catalogue.find(name))
        if needs != ("", SERVE, ""):
            groups.setdefault(needs, []).append(f"`{name}`")
    for cells, names in groups.items():
        yield f"| {', '.join(names)} | {' | '.join(cell or 'none' for cell in cells)} |"


def _needs_of(test: Test) -> tuple[str, str, str]:
    """Programs here, servers at the far end, and congestion controls."""
    here, far, ccs, marks = [], [], [], []
    options = Options(host="HOST")
    for one in test.make(example(test), {}).runs:
        runner, p = runners.find(one.runner), one.parameters
        if runner.program is not None:
            here.append(f"`{runner.program(p)}`")
        elif runner.tool is not None and (runner.here is None or one.place != LOCAL):
            here.append(f"`{runner.tool.program}` ({runner.tool.package})")
        if runner.trial is not None and runner.trial(p, options, False).server:
            far.append(SERVE)
            marks += [mark for mark in getattr(p, "marks", ()) if DSCP.get(mark or "", 0)]
        far += [server if server.startswith("a ") else f"`{server}`" for _, _, server in runner.listeners(p, options)]
        ccs += [f"`{cc}`" for cc in getattr(p, "cc", ()) if cc and cc not in EVERYWHERE]
    if any(DSCP[mark] >= GUARDED for mark in marks):
        marked = f"`ktrxer serve --dscp-allow {','.join(dict.fromkeys(marks))}`"
        far = [marked if one == SERVE else one for one in far]
    made = [list(dict.fromkeys(needs)) for needs in (here, far, ccs)]
    return ", ".join(made[0]), ", ".join(made[1]), ", ".join(made[2])


def _parameters(test: Test) -> Iterator[str]:
    for name, kind, default, about in parameters(test):
        yield f"| `{name}` | {kind} | {default} | {about} |"


def parameters(test: Test) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each parameter of a test."""
    hints = typing.get_type_hints(test.parameters)
    for one in dataclasses.fields(test.parameters):
        default = test.given.get(one.name, one.default)
        yield one.name, _type(hints[one.name], one.metadata), _text(default), one.metadata.get("help", "")


def _type(kind: Any, limits: typing.Mapping[str, Any]) -> str:
    if typing.get_origin(kind) is tuple:
        return f"list: {_type(typing.get_args(kind)[0], limits)}"
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    if kind in (int, float):
        low, high = limits.get("low"), limits.get("high")
        between = f"{low:,} to {high:,}" if low is not None and high is not None else "number"
        return between + "".join(f", or `{word}`" for word in limits.get("words", ()))
    return "yes or no" if kind is bool else "text"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`" if value else "none"
    return f"`{value}`" if value != "" else "empty"


if __name__ == "__main__":
    sys.stdout.write(page())
