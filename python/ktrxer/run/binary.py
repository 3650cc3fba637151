# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds the `ktrxer` that is started for the processes that measure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class NotFound(Exception):
    """The message says what to do."""


def find() -> str:
    """The one that started this program ($KTRXER_BIN), else that of this source tree or installation, else the one on $PATH."""
    named = os.environ.get("KTRXER_BIN", "")
    if named.startswith("/") and os.access(named, os.X_OK):
        return named
    package = Path(__file__).resolve().parents[1]
    # SOURCE/python/ktrxer, or PREFIX/share/ktrxer/python/ktrxer.
    for candidate in (package.parents[1] / "build" / "cli" / "ktrxer", package.parents[3] / "bin" / "ktrxer"):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    if on_path := shutil.which("ktrxer"):
        return on_path
    raise NotFound("the `ktrxer` command itself is not found: put it on the PATH, or name it in KTRXER_BIN")
