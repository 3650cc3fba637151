# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests: names with a recipe each (table.py). `ktrxer tests` lists them.

A test of a user is a file NAME.py in $XDG_CONFIG_HOME/ktrxer/tests (~/.config/ktrxer/tests), a file that is named by its path, or an
entry point of the group `ktrxer.tests` of an installed package. All three are programs that the user has installed, and are executed.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.catalogue.table import EXPLAINED, TABLE
from ktrxer.units import near

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ktrxer.catalogue.recipe import Test

GROUP = "ktrxer.tests"
UNREAD = "cannot be read: "  # begins the summary of a file with an error of syntax
OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}")


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ktrxer" / "tests"


def find(name: str) -> Test:
    """A test by its name, or by the path of its file. A user's own test cannot replace one of the table."""
    from ktrxer.catalogue import own
    from ktrxer.catalogue.recipe import PlanError

    if "/" in name or name.endswith(".py"):
        return own.from_file(Path(name))
    if name in TABLE:
        return _of_table(name)
    if OWN_NAME.fullmatch(name):
        path = folder() / f"{name}.py"
        if path.is_file():
            return own.from_file(path)
        for entry in entry_points():
            if entry.name == name:
                return own.loaded(entry)
    if name in EXPLAINED:
        raise PlanError(f"{name} has no recipe: {EXPLAINED[name]}")
    known = [*TABLE, *(path.stem for path in own_files()), *(entry.name for entry in entry_points())]
    hint = near(name, known, "`ktrxer tests` lists all")
    raise PlanError(f"no test is called {name[:60]!r}; {hint} (a test of your own is named by its path, ./{name[:60]}.py)")


def _of_table(name: str) -> Test:
    from dataclasses import replace

    entry = TABLE[name]
    test: Test = import_module(f"ktrxer.catalogue.{entry.recipe}").TEST
    return replace(test, name=name, summary=entry.summary, given=entry.given, hosts=entry.hosts)


def entry_points() -> Iterator[EntryPoint]:
    """importlib.metadata takes a quarter of the time of `ktrxer tests`, so it is imported only where a package names the group."""
    files = (file for place in sys.path for file in Path(place or ".").glob("*-info/entry_points.txt"))
    if any(GROUP in file.read_text(errors="replace") for file in files):
        from importlib.metadata import entry_points

        yield from entry_points(group=GROUP)


def own_files() -> list[Path]:
    return sorted(path for path in folder().glob("*.py") if path.is_file() and OWN_NAME.fullmatch(path.stem))


def summaries() -> dict[str, str]:
    """The summaries of all names, without executing or importing a recipe: a file has the first line of its docstring."""
    made = {name: entry.summary for name, entry in TABLE.items()}
    for path in own_files():
        made.setdefault(path.stem, f"{_docstring(path)} ({path})".strip())
    for entry in entry_points():
        made.setdefault(entry.name, f"({entry.value})")
    return made


def _docstring(path: Path) -> str:
    try:
        text = ast.get_docstring(ast.parse(path.read_bytes(), str(path))) or ""
    except (OSError, SyntaxError, ValueError) as error:
        return f"{UNREAD}{type(error).__name__}: {error}"
    return text.splitlines()[0] if text else ""
