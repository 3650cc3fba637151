# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests, one file each. `ktrxer tests` lists them."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ktrxer.catalogue.parity import RECIPES
from ktrxer.catalogue.recipe import PlanError, Test

NAMES = ("ping", "rrul", "rrul_be", "tcp_bidirectional", "tcp_download", "tcp_ndown", "tcp_nup", "tcp_upload")


def find(name: str) -> Test:
    """A test by its name, or a user's own by the path of its file, which is a program and is executed: the path comes from the command
    line."""
    if "/" in name or name.endswith(".py"):
        return _from_file(Path(name))
    if name in RECIPES:
        recipe, given = RECIPES[name]
        words = ", ".join(f"{key}={value}" for key, value in given.items())
        summary = f"{recipe} with {words}" if words else f"{recipe}, by another name of Flent"
        return replace(find(recipe), name=name, summary=summary, given=given)
    if name not in NAMES:
        near = get_close_matches(name, (*NAMES, *RECIPES), 1)
        meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(NAMES)}"
        raise PlanError(f"no test is called {name[:60]!r}{meant} (a test of your own is named by its path, ./{name[:60]}.py)")
    return _test_of(import_module(f"ktrxer.catalogue.{name}"), name)


def _from_file(path: Path) -> Test:
    if not path.is_file():
        raise PlanError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location("ktrxer_user_test", path)
    if spec is None or spec.loader is None:
        raise PlanError(f"{path}: a test is a Python file, NAME.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's own program does wrong
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        line = f", line {at.tb_lineno}" if at is not None else ""
        raise PlanError(f"{path}{line}: {type(error).__name__}: {error}") from error
    return _test_of(module, str(path))


def _test_of(module: ModuleType, name: str) -> Test:
    test = getattr(module, "TEST", None)
    if not isinstance(test, Test):
        raise PlanError(f"{name}: it has no TEST = Test(...); docs/howto/add-recipe.md shows one")
    return test


def everything() -> list[Test]:
    return [find(name) for name in (*NAMES, *RECIPES)]
