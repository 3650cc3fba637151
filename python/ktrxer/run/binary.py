# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which `ktrxer` is started for the processes that measure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find() -> Path | None:
    """The one that handed over to us ($KTRXER_BIN), else that of the tree that we are in, else the one on the path."""
    named = os.environ.get("KTRXER_BIN", "")
    if named.startswith("/") and os.access(named, os.X_OK):
        return Path(named)
    package = Path(__file__).resolve().parents[1]
    # SOURCE/python/ktrxer, or PREFIX/share/ktrxer/python/ktrxer.
    for candidate in (package.parents[1] / "build" / "cli" / "ktrxer", package.parents[3] / "bin" / "ktrxer"):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which("ktrxer")
    return Path(on_path) if on_path else None
