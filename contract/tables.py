# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of fields: each field of each object that a command prints. They are in the folders of the commands, in `contract/fields/`
and, of Python commands, in `contract/experiments/` and `contract/lab/`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REASONS = ROOT / "contract" / "reasons.toml"  # `values` of an enum may name one of its tables
SCALARS = ("u64", "i64", "double", "bool", "string", "enum")
HOLDERS = ("object", "array", "map")
INSIDE = {"array": "[]", "map": ".*"}  # in the path of a field
LINES = ("start", "sample", "event", "end")
# The unit of a name that ends so, unless the field has one of its own.
UNITS = {"_ns": "ns", "_us": "us", "_ms": "ms", "_s": "s", "_bytes": "bytes", "_percent": "%", "_ppm": "ppm", "_pps": "1/s"}
UNITS |= dict.fromkeys(("_bit_s", "_bps"), "bit/s")


class TableError(Exception):
    """A table is wrong; the text names the file, the group and the field."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """`is` of the table is `type` here. A field that is neither null nor absent in any object is required."""

    name: str
    type: str  # u64, i64, fixedN, roundedN, double, bool, string, enum, object, array, histogram; of Python commands also map, any
    text: str
    of: str = ""  # of an object: its group; of an array or a map (an object with free names): the type or the group of its items
    unit: str = ""
    min: int | None = None
    max: int | None = None
    least: int = 0  # members of an array
    values: tuple[str, ...] = ()
    pattern: str = ""
    null: str = ""  # when it is null; empty: never
    absent: str = ""  # when it is absent; empty: never
    small: bool = True  # the small program prints it
    since: str = "0.1"

    @property
    def decimals(self) -> int | None:
        """The N of fixedN, an integer that is printed with N decimals, and of roundedN, a floating-point number."""
        found = re.fullmatch(r"(?:fixed|rounded)([0-9])", self.type)
        return int(found[1]) if found else None

    @property
    def required(self) -> bool:
        return not self.absent and self.small

    @property
    def meaning(self) -> str:
        parts = [self.text]
        parts += [f"Null: {self.null}."] if self.null else []
        parts += [f"Absent: {self.absent}."] if self.absent else []
        parts += [] if self.small else ["The small program does not print it."]
        parts += [f"Since {self.since}."] if self.since != "0.1" else []
        return " ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Fields that one part of the program writes. Objects are made of groups."""

    name: str
    family: str  # the file
    text: str
    fields: tuple[Field, ...]
    has: tuple[str, ...] = ()  # further groups, whose fields stand beside these
    columns: bool = False  # each field is an array with a member for each of several samples
    open: bool = False  # an object of it has further fields, of numbers and words, which the text names
    any: bool = False  # its fields are those of the user, and have any values
    c: bool = True  # C code writes it


@dataclass(frozen=True, kw_only=True)
class Object:
    """A line of `--jsonl`, or the one object of a command that has no such lines (`line` is "object"). `names` are the kinds of a sample or
    the names of an event."""

    command: str
    line: str
    text: str
    has: tuple[str, ...]
    names: tuple[str, ...] = ()
    measures: bool = True
    c: bool = True


@dataclass(frozen=True)
class Tables:
    groups: dict[str, Group] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)

    def parts(self, names: tuple[str, ...]) -> Iterator[Group]:
        """The groups of these names, and the groups that these have."""
        for name in names:
            yield self.groups[name]
            yield from self.parts(self.groups[name].has)

    def members(self, names: tuple[str, ...]) -> Iterator[Field]:
        return (one for group in self.parts(names) for one in group.fields)

    def rows(self, names: tuple[str, ...], before: str = "") -> Iterator[tuple[str, Field, bool]]:
        """Each field with its path, `classes[].dscp`, and whether it is a column; the fields of an object follow it."""
        for group in self.parts(names):
            for one in group.fields:
                yield f"{before}{one.name}", one, group.columns
                if one.of in self.groups:
                    yield from self.rows((one.of,), f"{before}{one.name}{INSIDE.get(one.type, '')}.")

    def around(self, one: Object) -> tuple[str, ...]:
        """The groups of an object with those of every line of its type."""
        if one.line not in LINES:
            return one.has
        before = {"start": (), "sample": ("sample",), "event": ("event",), "end": ("start_of_end",)}[one.line]
        after = {"end": ("ended", *(("measured", "verdict") if one.measures else ()))}.get(one.line, ())
        return ("line", *before, *one.has, *after)

    @property
    def commands(self) -> list[str]:
        return sorted({one.command for one in self.objects})


def _field(where: str, name: str, given: dict[str, Any]) -> Field:
    known = {one.name for one in fields(Field)} - {"name", "type"} | {"is"}
    if wrong := given.keys() - known:
        raise TableError(f"{where}.{name}: unknown key {', '.join(sorted(wrong))}; known are {', '.join(sorted(known))}")
    if missing := {"is", "text"} - given.keys():
        raise TableError(f"{where}.{name}: lacks {', '.join(sorted(missing))}")
    rest: dict[str, Any] = {key: value for key, value in given.items() if key != "is"}
    if (values := given.get("values")) is not None:
        rest["values"] = tuple(values if isinstance(values, list) else tomllib.loads(REASONS.read_text())[values])
    made = Field(name=name, type=given["is"], **rest)
    if made.type not in (*SCALARS, *HOLDERS, "histogram", "any") and made.decimals is None:
        raise TableError(f"{where}.{name}: unknown type {made.type}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise TableError(f"{where}.{name}: a name is letters, digits and _")
    if (made.type == "enum") != bool(made.values) or (made.type in HOLDERS) != bool(made.of):
        raise TableError(f"{where}.{name}: an enum has `values`, an object, array or map has `of`, and no other type has them")
    if not made.text.endswith(".") or made.text[:1].islower():
        raise TableError(f"{where}.{name}: the text is a sentence: it begins with a capital letter and ends with a full stop")
    numbers = made.type in ("u64", "i64", "double", "histogram") or made.decimals is not None
    ends = [end for end in UNITS if name.endswith(end)] if numbers else []
    return replace(made, unit=UNITS[max(ends, key=len)]) if ends and not made.unit else made


def _check(tables: Tables) -> None:
    for group in tables.groups.values():
        for one in group.fields:
            known = one.of in tables.groups or (one.type in ("array", "map") and one.of in (*SCALARS, "any")) or not one.of
            if not known:
                raise TableError(f"{group.family}: {group.name}.{one.name}: there is no group {one.of}")
    for where, names in [(one.name, one.has) for one in tables.groups.values()] + [(one.command, one.has) for one in tables.objects]:
        if missing := [name for name in names if name not in tables.groups]:
            raise TableError(f"{where}: there is no group {', '.join(missing)}")
    for made in tables.objects:
        written = [one.name for one in tables.members(tables.around(made))]
        if twice := {name for name in written if written.count(name) > 1}:
            raise TableError(f"the {made.line} object of {made.command}: {', '.join(sorted(twice))} twice")


def files(root: Path = ROOT) -> dict[str, Path]:
    """Each family and its file: the command that alone has it, or the name of a file of contract/fields/, which several commands share, or
    of one of its folders for Python commands."""
    own = [(path.parent.name, path) for path in root.glob("cli/commands/*/fields.toml")]
    found = sorted([*own, *((path.stem, path) for path in root.glob("contract/*/*.toml"))])
    names = [name for name, _ in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"{', '.join(sorted(twice))}: two tables have this name")
    return dict(found)


def load(root: Path = ROOT) -> Tables:
    tables = Tables()
    joins: list[tuple[str, str]] = []
    for family, path in files(root).items():
        c = path.parent.name not in ("experiments", "lab")
        try:
            read = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise TableError(f"{path}: {error}") from None
        for given in read.pop("object", []):
            names = tuple(given.pop("kinds", given.pop("names", ())))
            has = tuple(given.pop("has"))
            for command in [given["command"]] if isinstance(given["command"], str) else given["command"]:
                tables.objects.append(Object(**{**given, "command": command}, has=has, names=names, c=c))
        for name, given in read.items():
            if name in tables.groups:
                raise TableError(f"{path}: the group {name} is in the table of {tables.groups[name].family} too")
            made = tuple(_field(f"{path.relative_to(root)}: {name}", key, value) for key, value in given.items() if isinstance(value, dict))
            joins += [(name, given["_joins"])] if "_joins" in given else []
            tables.groups[name] = Group(
                name=name,
                family=family,
                text=given.get("_text", ""),
                fields=made,
                has=tuple(given.get("_has", ())),
                columns=given.get("_columns", False),
                open=given.get("_open", False),
                any=given.get("_any", False),
                c=c,
            )
    for name, whole in joins:  # the fields of a part that the table of the whole does not name
        if whole not in tables.groups:
            raise TableError(f"{tables.groups[name].family}: {name}: there is no group {whole} to join")
        tables.groups[whole] = replace(tables.groups[whole], has=(*tables.groups[whole].has, name))
    _check(tables)
    return tables
