# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the lab's data, this build's binaries and the cache are."""

from __future__ import annotations

import os
from pathlib import Path

from ktrxer.lab.errors import LabError


def root() -> Path:
    """The tree that this package is part of."""
    return Path(__file__).resolve().parents[3]


def data() -> Path:
    """The folder with devices, topologies and the guest's init."""
    named = os.environ.get("KTRXER_LAB_DATA")
    candidates = [Path(named)] if named else [root() / "lab", root() / "share" / "ktrxer" / "lab"]
    for path in candidates:
        if (path / "images.toml").is_file():
            return path
    raise LabError(f"no lab data in {' or '.join(map(str, candidates))}; set KTRXER_LAB_DATA to the folder with images.toml")


def cache() -> Path:
    """The folder of images, packages and kernels: everything in it can be deleted."""
    named = os.environ.get("KTRXER_LAB_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ktrxer" / "lab"


def build_tree(build: str) -> Path:
    """The folder with this source tree's binaries for one architecture (they must be static); it need not exist."""
    if build == "x86_64":
        return root() / "build-static"
    return root() / "build-cross" / build


def program(build: str) -> Path | None:
    """The `ktrxer` that goes into devices of an architecture: of this source tree, or installed beside the lab's data."""
    for path in (build_tree(build) / "cli" / "ktrxer", data() / "programs" / build / "ktrxer"):
        if path.is_file():
            return path
    return None


def program_remedy() -> str:
    """How to get the programs that are not there."""
    if (root() / "meson.build").is_file():
        return "`make lab-builds` builds it"
    return "`make lab-builds install` in the source tree builds and installs it"
