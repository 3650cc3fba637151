# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs in a directory."""

from __future__ import annotations

import os
from pathlib import Path

from ktrxer.store.names import PART, SUFFIX


def find(path: Path) -> list[Path]:
    """[path] if `path` is a run, otherwise the runs in the directory `path`, by name."""
    if path.is_dir() and not path.name.endswith(PART):
        with os.scandir(path) as found:
            names = [one.name for one in found if one.name.endswith((SUFFIX, SUFFIX + PART, ".flent.gz")) and not one.name.startswith(".")]
        return [path / name for name in sorted(names)]
    return [path]
