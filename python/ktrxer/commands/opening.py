# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run from a file that the command line names: one of the store's, or one of Flent's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrxer.store import Run


def open_any(path: Path) -> Run:
    """StoreError or FlentError when the file is neither."""
    from ktrxer import flent, store

    return flent.open_run(path) if is_flent(path) else store.open_run(path)


def is_flent(path: Path) -> bool:
    """Whether the name is that of a file of Flent. Files of version 1 are called NAME.json.gz."""
    return ".flent" in path.name or path.name.endswith((".flnt", ".json", ".json.gz", ".json.bz2"))
