# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs in a directory."""

from __future__ import annotations

import os
from pathlib import Path

from ktrxer.store.names import PART, SUFFIX

ENDS = (SUFFIX, SUFFIX + PART, ".flent.gz")


def find(path: Path, deep: bool = False) -> list[Path]:
    """[path] if `path` is a run, otherwise the runs in the directory `path`, by name. `deep`: in its folders, too; links to folders are not
    followed, and folders whose names begin with a dot are left out."""
    if deep and path.is_dir() and not path.name.endswith(PART):
        found = list[Path]()
        for folder, folders, files in os.walk(path):
            found += [Path(folder, name) for name in sorted([*files, *folders]) if is_run(name)]
            folders[:] = sorted(name for name in folders if not name.startswith(".") and not is_run(name))
        return found
    if path.is_dir() and not path.name.endswith(PART):
        named = {one.name: one for one in path.iterdir()}
        return [named[name] for name in sorted(named) if is_run(name)]
    return [path]


def is_run(name: str) -> bool:
    return name.endswith(ENDS) and not name.startswith(".")
