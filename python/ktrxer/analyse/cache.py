# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results computed from files, kept between commands: one SQLite file for lists, comparisons and queries. A row belongs to a file's
identity, size and time of change, so a changed file has no row."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from ktrxer import __version__

FORMAT = 7  # of the rows; a change of an estimator is a change of this number
BATCH = 30_000  # of SQLite's parameters: 32,766 since 3.32
ROWS = 300_000  # the newest ones stay: about 100,000 runs


def file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base else Path.home() / ".cache") / "ktrxer" / "runs.sqlite"


def identity(path: Path | str) -> str | None:
    """None for a directory: a run that is being written changes without a new time of its own. None for a file that is gone."""
    try:
        return identity_of(os.stat(path))  # noqa: PTH116  (a Path is made in more time than the list of its run takes)
    except OSError:
        return None


def identity_of(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return None
    return f"{FORMAT} {__version__} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


class Cache:
    """`part` is the name of a computed part: head, facts, figures... A cache that cannot be read or written is ignored."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def get(self, part: str, keys: Sequence[str]) -> dict[str, str]:
        made: dict[str, str] = {}
        if self.path is None or not keys:
            return made
        with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(self._connect(self.path)) as db:
            for start in range(0, len(keys), BATCH):
                some = keys[start : start + BATCH]
                marks = ",".join("?" * len(some))
                made |= dict(db.execute(f"SELECT file, text FROM parts WHERE part = ? AND file IN ({marks})", (part, *some)).fetchall())
        return made

    def keep(self, part: str, rows: Mapping[str, str]) -> None:
        if self.path is None or not rows:
            return
        with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(self._connect(self.path)) as db, db:
            found = [(key, part, text) for key, text in rows.items()]
            db.executemany("INSERT OR REPLACE INTO parts (file, part, text) VALUES (?, ?, ?)", found)
            db.execute("DELETE FROM parts WHERE number <= (SELECT max(number) FROM parts) - ?", (ROWS,))

    @staticmethod
    def _connect(path: Path) -> sqlite3.Connection:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        db = sqlite3.connect(path, timeout=2)
        columns = "number INTEGER PRIMARY KEY, file TEXT NOT NULL, part TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (file, part)"
        db.execute(f"CREATE TABLE IF NOT EXISTS parts ({columns})")
        return db
