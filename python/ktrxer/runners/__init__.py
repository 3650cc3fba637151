# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners: one file for each tool that measures, ours and those of others (runner.py has the contract).

A runner of a user is a file NAME.py in $XDG_CONFIG_HOME/ktrxer/runners (~/.config/ktrxer/runners), or an entry point of the group
`ktrxer.runners` of an installed package. Both are programs that the user has installed, and are executed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.runners.runner import Options, Parameters, Runner, RunnerError, Times
from ktrxer.store import one_line
from ktrxer.units import near

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NAMES = (
    "abw", "capacity", "ditg", "flow", "fping", "handshake", "hop", "http", "http_load", "http_rpm", "interface", "iperf", "iperf3",
    "iputils", "irtt", "netperf", "netperf_rr", "netstat", "number", "pair", "ping", "ppt", "processor", "qdisc", "sockets", "stamp",
    "tcp", "trace", "video", "wifi",
)  # fmt: skip
GROUP = "ktrxer.runners"


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ktrxer" / "runners"


@functools.cache
def find(name: str) -> Runner:
    """A runner by its name. One of ours cannot be replaced."""
    if name in NAMES:
        return _runner_of(import_module(f"ktrxer.runners.{name}"), name)
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name):
        path = folder() / f"{name}.py"
        if path.is_file():
            return _from_file(path)
        for entry in _entry_points():
            if entry.name == name:
                return _loaded(entry)
    known = sorted({*NAMES, *_others()})
    hint = near(name, known, f"there are {', '.join(known)}")
    raise RunnerError(f"no runner is called {name[:60]!r}; {hint} (docs/howto/add-runner.md adds one)")


def _others() -> Iterator[str]:
    yield from (path.stem for path in sorted(folder().glob("*.py")) if path.is_file())
    yield from (entry.name for entry in _entry_points())


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points

    yield from entry_points(group=GROUP)


def _loaded(entry: EntryPoint) -> Runner:
    try:
        return _runner_of(entry.load(), f"the entry point {entry.value}")
    except (Exception, SystemExit) as error:  # whatever the package does wrong
        raise RunnerError(f"runner {entry.name} ({entry.value}): {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> Runner:
    spec = importlib.util.spec_from_file_location(f"ktrxer_runner_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's own program does wrong
        raise RunnerError(f"{_line_of(error, str(path)) or path}: {type(error).__name__}: {error}") from error
    return _runner_of(module, str(path))


def _line_of(error: BaseException, path: str) -> str:
    """`FILE, line N`: the last line of a file that an exception went through; empty when it went through none."""
    at, line = error.__traceback__, ""
    while at is not None:
        if at.tb_frame.f_code.co_filename == path:
            line = f"{path}, line {at.tb_lineno}"
        at = at.tb_next
    return line


def defect(runner: Runner, error: BaseException) -> str:
    """An exception that a function of a runner let through, and where."""
    where = _line_of(error, getattr(getattr(runner.validate, "__code__", None), "co_filename", ""))
    return one_line(f"the runner {runner.name} has a defect{f' ({where})' if where else ''}: {type(error).__name__}: {error}")


@contextlib.contextmanager
def refusals(runner: Runner) -> Iterator[None]:
    """Each refusal before the run is a RunnerError, and so is each other exception of a runner of the user."""
    try:
        yield
    except RunnerError:
        raise
    except (Exception, SystemExit) as error:
        raise RunnerError(defect(runner, error)) from error


def _runner_of(made: object, where: str) -> Runner:
    runner = made if isinstance(made, Runner) else getattr(made, "RUNNER", None)
    if not isinstance(runner, Runner):
        raise RunnerError(f"{where}: it has no RUNNER = Runner(...); docs/howto/add-runner.md shows one")
    return runner


__all__ = ["NAMES", "Options", "Parameters", "Runner", "RunnerError", "Times", "defect", "find", "folder", "refusals"]
