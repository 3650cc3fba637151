# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs in a directory."""

from __future__ import annotations

from pathlib import Path

from ktrxer.store.names import PART, SUFFIX

ENDS = (SUFFIX, SUFFIX + PART, ".flent.gz")


def find(path: Path) -> list[Path]:
    """[path] if `path` is a run, otherwise the runs in the directory `path`, by name."""
    if path.is_dir() and not path.name.endswith(PART):
        named = {one.name: one for one in path.iterdir()}
        return [named[name] for name in sorted(named) if is_run(name)]
    return [path]


def is_run(name: str) -> bool:
    return name.endswith(ENDS) and not name.startswith(".")
