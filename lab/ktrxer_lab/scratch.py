# SPDX-License-Identifier: MIT OR Apache-2.0
"""Temporary folders for builds and runs. They are removed by the process that made them or, if it was killed, by the next process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ktrxer_lab import cache

PREFIX = "ktrxer-lab-"
OLD_S = 86400.0  # age above which a folder without a lock is removed


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    place = Path(tempfile.gettempdir())
    sweep(place)
    with cache.no_space(place):
        made = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (made / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (made / ".lock").rename(made / "lock")  # so the lock never exists without being held
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sweep(place: Path) -> None:
    """Remove the folders of processes that have ended. A held lock shows a running process. A folder without a lock is removed when it is
    old."""
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
