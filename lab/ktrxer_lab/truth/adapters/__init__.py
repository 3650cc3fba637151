# SPDX-License-Identifier: MIT OR Apache-2.0
"""One module for each tool, which converts the tool's output to figures. How to write one: docs/howto/truth.md.

    PROGRAM     the name of the program; with a subcommand after a space, as in "ktrxer stamp"
    BESIDE      a shell command that runs in the server meanwhile; "" if none is needed
    read        (Output) -> list[Figure]; raises Unreadable
"""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ktrxer_lab.errors import LabError
from ktrxer_lab.truth.figure import Figure, Output


@dataclass(frozen=True)
class Adapter:
    name: str
    program: str
    beside: str
    read: Callable[[Output], list[Figure]]


def _made(module: ModuleType, name: str) -> Adapter:
    try:
        return Adapter(name, str(module.PROGRAM), str(module.BESIDE), module.read)
    except AttributeError as error:
        raise LabError(f"{name}: this adapter has no {error.name}; docs/howto/truth.md shows what an adapter must contain") from None


def names() -> list[str]:
    return sorted(one.name for one in pkgutil.iter_modules(__path__))


def load(name: str) -> Adapter:
    """Load an adapter by its name, or from its Python file."""
    if name.endswith(".py"):
        spec = importlib.util.spec_from_file_location("ktrxer_truth_adapter", name)
        if spec is None or spec.loader is None or not Path(name).is_file():
            raise LabError(f"{name}: No such file or directory")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _made(module, name)
    if name not in names():
        raise LabError(f"no adapter {name[:64]!r}; choose one of: {', '.join(names())}, or a Python file")
    return _made(import_module(f"{__name__}.{name}"), name)


def of_command(command: Sequence[str]) -> Adapter:
    """The adapter for a command, by its program."""
    program = Path(command[0]).name
    for adapter in map(load, names()):
        words = adapter.program.split()
        if words[0] == program and (len(words) == 1 or words[1:] == list(command[1 : len(words)])):
            return adapter
    known = ", ".join(names())
    raise LabError(f"no adapter reads the output of {program}; choose one of: {known} (--adapter), or write one (docs/howto/truth.md)")
