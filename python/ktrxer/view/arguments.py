# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by `ktrxer plot` and `ktrxer report`: reading runs, atomic writing of the output file, error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.commands.common import exists
from ktrxer.imports import without_pandas

if TYPE_CHECKING:
    from ktrxer.store import Run

FORMATS = ("svg", "pdf", "png", "csv")  # of the files of `ktrxer plot`, the usual one first
STYLES = ("screen", "column", "page")  # figure.LOOKS
MOST_RUNS = 64
MOST_POINTS = 50_000  # of one series in a page: more than eight minutes of samples at 10 ms


class ViewError(Exception):
    """The text is one line for the user."""


def read(paths: Sequence[Path]) -> list[Run]:
    from ktrxer.commands.opening import open_any

    if len(paths) > MOST_RUNS:
        raise ViewError(f"{len(paths)} runs; at most {MOST_RUNS} can be shown together")
    without_pandas()
    return [open_any(path) for path in paths]


def write(path: Path, inputs: Sequence[Path], force: bool, make: Callable[[Path], object]) -> None:
    """Write `path` atomically: `make` writes a temporary file beside it, which is then renamed. If the disk is full, the old file stays."""
    from ktrxer.store import files

    if any(path.resolve() == one.resolve() for one in inputs):
        raise ViewError(f"{path}: this run would be overwritten; choose another name for -o")
    if path.is_dir():
        raise ViewError(f"{path}: is a directory; -o names a file")
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        make(path)
        return
    if path.exists() and not force:
        raise ViewError(exists(path))
    files.replace(path, make)
