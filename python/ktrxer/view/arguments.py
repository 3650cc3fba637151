# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by `ktrxer plot` and `ktrxer report`: reading runs, atomic writing of the output file, error messages."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.commands.common import exists

if TYPE_CHECKING:
    from ktrxer.store import Run

MOST_RUNS = 64
MOST_POINTS = 50_000  # of one series in a page: more than eight minutes of samples at 10 ms


class ViewError(Exception):
    """The text is one line for the user."""


def read(paths: Sequence[Path]) -> list[Run]:
    from ktrxer.commands.opening import open_any

    if len(paths) > MOST_RUNS:
        raise ViewError(f"{len(paths)} runs; at most {MOST_RUNS} can be shown together")
    return [open_any(path) for path in paths]


def write(path: Path, inputs: Sequence[Path], force: bool, make: Callable[[Path], None]) -> None:
    """Write `path` atomically: `make` writes a temporary file beside it, which is then renamed. If the disk is full, the old file stays."""
    if any(path.resolve() == one.resolve() for one in inputs):
        raise ViewError(f"{path}: this run would be overwritten; choose another name for -o")
    if path.is_dir():
        raise ViewError(f"{path}: is a directory; -o names a file")
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        make(path)
        return
    if path.exists() and not force:
        raise ViewError(exists(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        raise ViewError(f"{path.parent}: cannot be written to: {error.strerror}") from None
    os.close(handle)
    part = Path(name)
    try:
        make(part)
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        raise ViewError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
