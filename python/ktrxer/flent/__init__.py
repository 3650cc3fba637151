# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flent's data files: versions 1 to 4 read, version 4 written (docs/reference/flent-files.md).

    container   a file's bytes: codec, limits, JSON
    document    what is in it, checked field by field
    upgrade     versions 1 to 3 into 4
    reading     a document into a run: meta and tables
    writing     a stored run into a document

A file is data: nothing in it is executed, used as a path, or trusted to be what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.flent.errors import FlentError

if TYPE_CHECKING:
    from ktrxer.store import Run

__all__ = ["FlentError", "open_run"]


def open_run(path: Path) -> Run:
    """A Flent file as a run, in memory."""
    from ktrxer.flent import reading

    return reading.open_run(path)
