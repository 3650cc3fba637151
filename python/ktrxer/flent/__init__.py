# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flent's data files: reads versions 1 to 4, writes version 4 (docs/reference/flent-files.md).

    container   a file's bytes: codec, limits, JSON
    document    its content, checked field by field
    upgrade     conversion of versions 1 to 3 to 4
    reading     conversion of a document to a run: meta data and tables
    writing     conversion of a stored run to a document

No content of a file is executed, used as a path, or used without a check.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.flent.errors import FlentError

if TYPE_CHECKING:
    from ktrxer.store import Run

__all__ = ["FlentError", "open_run"]


def open_run(path: Path) -> Run:
    """Read a Flent file as a run in memory."""
    from ktrxer.flent import reading

    return reading.open_run(path)
