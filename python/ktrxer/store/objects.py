# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reader of the objects that commands print (contract/fields/, docs/reference/output.md), also of those of another version.

A field of the result is in the table and has its type, or it is not there. So `made.get("lost_up")` is a whole number or None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ktrxer.store.errors import printable
from ktrxer.store.object_table import GROUPS, LINES

NAMES_MOST = 20  # of unknown fields that are kept
_KINDS = {"i": (int,), "n": (int, float), "b": (bool,), "s": (str,)}
_OPEN = "{verdict_reason}"  # its further fields are the words and numbers of a sentence; strings of older versions have none
_COMMANDS = {"ppt": "ppt measure", "hop": "ping"}  # of runners that do not have the name of their command


class Unknown:
    """The fields, kinds and events of one process that the tables of this version do not have."""

    def __init__(self, names: dict[str, None]) -> None:
        self.command: str | None = None
        self.names = names

    def see(self, made: Mapping[str, Any]) -> None:
        """A line. The first object `start` names the command."""
        line = str(made.get("type"))
        if self.command is None and line == "start":
            self.command = str(made.get("command"))
        command = str(made.get("of", self.command))
        name = str(made.get("kind" if line == "sample" else "name", "")) if line in ("sample", "event") else ""
        known = _of_line(command, line, name)
        if line == "end":
            for one in sort_out(command, made)[1]:
                self.add(one)
        elif known is None:
            if command in _commands():
                self.add(f"{line} {name}".strip())
        elif not made.keys() <= known.keys():
            for one in sorted(made.keys() - known.keys()):
                self.add(f"{name} {one}".strip())

    def add(self, name: str) -> None:
        if len(self.names) < NAMES_MOST:
            self.names[printable(name)[:60]] = None


def result_of(runner: str, end: Any) -> dict[str, Any]:
    """The end object of a process, by the name of its runner."""
    return sort_out(_COMMANDS.get(runner, runner), end)[0]


def unknown_of(runner: str, end: Any) -> list[str]:
    """The fields of the end object that the table does not have."""
    return sort_out(_COMMANDS.get(runner, runner), end)[1]


def sort_out(command: str, end: Any) -> tuple[dict[str, Any], list[str]]:
    """The fields of an end object that the table has, of the right type, and the names of the others. Of a program without a table:
    those that it has in common with `ping`."""
    others: list[str] = []
    if not isinstance(end, dict):
        return {}, others
    if (own := _of_line(command, "end", "")) is not None:
        return _typed(own, end, "", others), others
    return _typed(_of_line("ping", "end", "") or {}, end, "", []), others


def _typed(fields: Mapping[str, str], given: Mapping[str, Any], path: str, others: list[str]) -> dict[str, Any]:
    made = {}
    for name, value in given.items():
        if value is None:
            continue
        kind = fields.get(name)
        if kind is None or (found := _value(kind, value, f"{path}{name}", others)) is None:
            if len(others) < NAMES_MOST:
                others.append(printable(f"{path}{name}")[:100])
        else:
            made[name] = found
    return made


def _value(kind: str, value: Any, path: str, others: list[str]) -> Any:
    """None: it has another type."""
    if kind == _OPEN:
        return value
    if kind[0] == "{":
        return _typed(_group(kind[1:-1]), value, f"{path}.", others) if isinstance(value, dict) else None
    if kind[0] == "[":
        if not isinstance(value, list):
            return None
        items = [_value(kind[1:-1], one, f"{path}[]", others) for one in value]
        if kind[1] == "{":  # the others keep their places
            return [{} if one is None else one for one in items]
        return None if None in items else items
    if isinstance(value, bool) or not isinstance(value, _KINDS[kind]):
        return value if kind == "b" and isinstance(value, bool) else None
    # Sums and differences of whole numbers fit 64 bits.
    return value if isinstance(value, str) or (math.isfinite(value) and abs(value) < 2**62) else None


@cache
def _commands() -> frozenset[str]:
    return frozenset(command for command, _, _ in LINES)


@cache
def _of_line(command: str, line: str, name: str) -> Mapping[str, str] | None:
    groups = LINES.get((command, line, name))
    return None if groups is None else _fields(groups.split())


@cache
def _group(name: str) -> Mapping[str, str]:
    return _fields([name])


def _fields(groups: Iterable[str]) -> dict[str, str]:
    return dict(one.split(":", 1) for group in groups for one in GROUPS[group].split())
