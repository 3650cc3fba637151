# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of a user: files and entry points. Each of them is a program, and is executed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.catalogue.recipe import PlanError, Test, where_in

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def from_file(path: Path) -> Test:
    if not path.exists():
        raise PlanError(f"{path}: No such file or directory; `ktrxer new test {path.stem}` writes one")
    spec = importlib.util.spec_from_file_location("ktrxer_user_test", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise PlanError(f"{path}: a test is a Python file, NAME.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        text = " ".join((error.text or "").split())[:80]
        line = (f", line {error.lineno}" if error.lineno else "") + (f" ({text})" if text else "")
        raise PlanError(f"{error.filename or path}{line}: SyntaxError: {error.msg}") from error
    except (Exception, SystemExit) as error:  # whatever the user's own program does wrong
        raise PlanError(f"{where_in(error, str(path))}{type(error).__name__}: {error}") from error
    return replace(_test_of(module, str(path)), path=str(path))


def loaded(entry: EntryPoint) -> Test:
    try:
        made = entry.load()
    except (Exception, SystemExit) as error:  # whatever the package does wrong
        raise PlanError(f"test {entry.name} ({entry.value}): {type(error).__name__}: {error}") from error
    test = _test_of(made, f"the entry point {entry.value}")
    return replace(test, path=getattr(sys.modules.get(test.plan.__module__), "__file__", None) or "")


def _test_of(made: object, where: str) -> Test:
    test = made if isinstance(made, Test) else getattr(made, "TEST", None)
    if not isinstance(test, Test):
        raise PlanError(f"{where}: it has no TEST = Test(...); `ktrxer new test NAME` writes a file that has one")
    return test
