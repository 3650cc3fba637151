# SPDX-License-Identifier: MIT OR Apache-2.0
"""Folders for what is built and run: gone with their maker, and when that one was killed (kill -9, no power), by the hand of the next."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ktrxer.lab import cache

PREFIX = "ktrxer-lab-"
OLD_S = 86400.0  # of what says nothing of its maker


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    place = Path(tempfile.gettempdir())
    sweep(place)
    with cache.no_space(place):
        made = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (made / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (made / ".lock").rename(made / "lock")  # nobody finds it unlocked
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sweep(place: Path) -> None:
    """Takes away what the dead have left. Whose lock is held lives; what has none is taken when it is old."""
    for path in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and not path.is_symlink() and _dead(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _dead(path: Path) -> bool:
    try:
        with (path / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except (FileNotFoundError, NotADirectoryError):
        return time.time() - path.lstat().st_mtime > OLD_S
    except BlockingIOError:
        return False
