# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of many files. What has been computed is kept in a cache by the file's identity, size and time of change."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from ktrxer import __version__
from ktrxer.analyse.figures import Figure, of_summary
from ktrxer.analyse.grouping import Member
from ktrxer.store import Run, StoreError
from ktrxer.store import meta as meta_file
from ktrxer.summary.figures import summarise

FORMAT = 2  # of the cache's rows; a change of an estimator is a change of this number
FEW = 4  # files that are not worth further processes
BATCH = 500  # of SQLite's parameters

Opened = Callable[[Path], Run]


@dataclass(frozen=True)
class Failure:
    path: Path
    text: str


@dataclass(frozen=True)
class Collection:
    members: list[Member]
    known: dict[str, Figure]  # a description of each figure, in the order of the first run that has it
    failures: list[Failure]


def cache_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base else Path.home() / ".cache") / "ktrxer" / "figures.sqlite"


def collect(paths: Sequence[Path], opened: Opened, cache: Path | None = None) -> Collection:
    """`opened` reads a run from a path (StoreError where there is none). Files in a cache are not read again."""
    keys = {path: key for path in paths if (key := _identity(path)) is not None}
    rows = _cached(cache, list(keys.values())) if cache is not None else {}
    missing = [path for path in paths if keys.get(path) not in rows]
    made = dict(zip(missing, _computed(missing, opened), strict=True))
    if cache is not None:
        _keep(cache, {keys[path]: text for path, text in made.items() if path in keys and isinstance(text, str)})
    members: list[Member] = []
    known: dict[str, Figure] = {}
    failures: list[Failure] = []
    for path in paths:
        found = made[path] if path in made else rows[keys[path]]
        if isinstance(found, Failure):
            failures.append(found)
            continue
        row = json.loads(found)
        figures = [Figure(**one) for one in row["figures"]]
        meta = meta_file.read(row["meta"].encode(), str(path))
        members.append(Member(str(path), meta, {one.key: one.value for one in figures}))
        known |= {one.key: one for one in figures if one.key not in known}
    return Collection(members, known, failures)


def _identity(path: Path) -> str | None:
    """None for a directory: a run that is being written changes without a new time of its own."""
    try:
        found = path.stat()
    except OSError:
        return None
    if path.is_dir():
        return None
    return f"{FORMAT} {__version__} {path.name} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _computed(paths: Sequence[Path], opened: Opened) -> Iterable[str | Failure]:
    processors = len(os.sched_getaffinity(0))
    if len(paths) <= FEW or processors < 2:
        return [_compute(path, opened) for path in paths]
    with ProcessPoolExecutor(min(processors, 8)) as pool:
        return list(pool.map(_compute, paths, [opened] * len(paths), chunksize=max(1, len(paths) // (4 * processors))))


def _compute(path: Path, opened: Opened) -> str | Failure:
    try:
        run = opened(path)
        figures = of_summary(summarise(run))
        return json.dumps({"meta": meta_file.write(run.meta).decode(), "figures": [asdict(one) for one in figures]})
    except StoreError as error:
        return Failure(path, str(error))
    except OSError as error:
        return Failure(path, f"{path}: {error.strerror or error}")
    except MemoryError:
        return Failure(path, f"{path}: it does not fit into this machine's memory")
    except Exception as error:
        defect = f"{type(error).__name__}: {error}; this is a defect of ktrxer, please report it with the file"
        return Failure(path, f"{path}: cannot be read: {defect}")


def _connect(cache: Path) -> sqlite3.Connection:
    cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = sqlite3.connect(cache, timeout=2)
    made.execute("CREATE TABLE IF NOT EXISTS figures (key TEXT PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID")
    return made


def _cached(cache: Path, keys: Sequence[str]) -> dict[str, str]:
    """A cache that cannot be read is no cache."""
    found: dict[str, str] = {}
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(_connect(cache)) as db:
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            marks = ",".join("?" * len(part))
            found |= dict(db.execute(f"SELECT key, row FROM figures WHERE key IN ({marks})", part).fetchall())
    return found


def _keep(cache: Path, rows: dict[str, str]) -> None:
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(_connect(cache)) as db, db:
        db.executemany("INSERT OR REPLACE INTO figures VALUES (?, ?)", list(rows.items()))
