# SPDX-License-Identifier: MIT OR Apache-2.0
"""The paths of the lab's data, of this build's binaries, and of the cache."""

from __future__ import annotations

import os
from pathlib import Path

from ktrxer_lab.errors import LabError


def root() -> Path:
    """The source tree of this package."""
    return Path(__file__).resolve().parents[2]


def data() -> Path:
    """The folder with devices, topologies and the guest's init."""
    path = Path(os.environ.get("KTRXER_LAB_DATA") or Path(__file__).with_name("data"))
    if not (path / "images.toml").is_file():
        raise LabError(f"no lab data in {path}; set KTRXER_LAB_DATA to the folder with images.toml")
    return path


def cache() -> Path:
    """The folder of images, packages and kernels. All its contents may be deleted."""
    named = os.environ.get("KTRXER_LAB_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ktrxer" / "lab"


def build_tree(build: str) -> Path:
    """The folder with this source tree's static binaries for one architecture. It may not exist."""
    if build == "x86_64":
        return root() / "build-static"
    return root() / "build-cross" / build


def program(build: str) -> Path | None:
    """The `ktrxer` for devices of an architecture: from this source tree, or installed beside the lab's data."""
    for path in (build_tree(build) / "cli" / "ktrxer", data() / "programs" / build / "ktrxer"):
        if path.is_file():
            return path
    return None


def program_remedy() -> str:
    """Advice on how to get missing programs."""
    if (root() / "meson.build").is_file():
        return "`make lab-builds` builds it"
    return "`make lab-builds install` in the source tree builds and installs it"
