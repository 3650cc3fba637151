# SPDX-License-Identifier: MIT OR Apache-2.0
"""The index of a directory: a row for each run, with any property or figure as a column. Only figures need numpy and pyarrow; a list whose
rows are all in the cache needs no module that reads runs either, because importing these takes longer than the list itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ktrxer.analyse import cache as caches
from ktrxer.store.listing import find
from ktrxer.store.names import PART
from ktrxer.store.reasons import read_all, sentences

if TYPE_CHECKING:
    from ktrxer.analyse.collection import Opened

Head = dict[str, Any]  # the fields of store/head.py, as the cache has them

# Columns that need no more than the head of a run's meta.json.
OF_HEAD: dict[str, Callable[[Head], str]] = {
    "when": lambda one: str(one["created"][:19].replace("T", " ")),
    "test": lambda one: str(one["test"]),
    "title": lambda one: str(one["title"]),
    "target": lambda one: ",".join(one["targets"]),
    "length": lambda one: f"{one['length_ns'] / 1e9:g} s",
    "id": lambda one: str(one["id"]),
    "version": lambda one: str(one["version"]),
    "reasons": lambda one: "; ".join(sentences(read_all(one["reasons"]))),
}
FLENT = ".flent.gz"
FEW = 100  # files that are not worth further processes
OF_FILE = ("verdict", "state", "file")
USUAL = ("when", "test", "title", "target", "length", "verdict", "file")


class Entry(NamedTuple):
    path: Path
    head: Head | None  # None: the run cannot be read
    state: str  # finished, running, cut off, repeated (cut off, and made again by its batch), damaged
    problem: str = ""
    more: Mapping[str, str | float] = {}  # properties and figures that were asked for
    within: str = ""  # the path in the directory that is listed, where its folders are, too

    def value(self, key: str) -> str | float | None:
        """None: the run has none."""
        if key == "file":
            name = self.within or self.path.name
            return name if self.head is not None else f"{name}: {self.problem}"
        if key == "state" or (key == "verdict" and self.state != "finished"):
            return self.state
        if self.head is None:
            return None
        if key == "verdict":
            return self.head["verdict"] or self.state
        return OF_HEAD[key](self.head) if key in OF_HEAD else self.more.get(key)

    def as_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {"file": str(self.path), "state": self.state}
        if self.head is None:
            return made | {"problem": self.problem}
        h = self.head
        made |= {key: h[key] for key in ("id", "test", "title", "created", "targets")} | {"length_s": h["length_ns"] / 1e9}
        columns = {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in self.more.items()}
        return made | {"verdict": h["verdict"], "reasons": h["reasons"]} | ({"columns": columns} if columns else {})


def column(entries: Sequence[Entry], key: str) -> list[str | float | None]:
    """Entry.value() of each."""
    read = OF_HEAD.get(key)
    if read is None:
        return [entry.value(key) for entry in entries]
    return [read(entry.head) if entry.head is not None else None for entry in entries]


class UnknownColumn(Exception):
    def __init__(self, text: str, keys: list[str]) -> None:
        super().__init__(text)
        self.keys = keys


def entries(directory: Path, opened: Opened, cache: Path | None, keys: Sequence[str] = (), deep: bool = False) -> list[Entry]:
    """The runs of a directory by time, with the further columns `keys`. A run that vanished in the meantime is left out. `deep`: those of
    its folders, too. OSError: the directory cannot be read. UnknownColumn: no run has one of the keys."""
    if deep:
        paths = [path for path in find(directory, deep) if not path.name.endswith(FLENT)]
        return [entry._replace(within=str(entry.path.relative_to(directory))) for entry in entries_of(paths, opened, cache, keys)]
    named = {path.name: path for path in find(directory)}
    shallow = {name: path for name, path in named.items() if not name.endswith(FLENT)}
    base = str(directory.parent if directory.name.endswith(PART) else directory)
    identities = [caches.identity(f"{base}/{name}") for name in shallow]  # a Path makes its text anew
    return entries_of(list(shallow.values()), opened, cache, keys, identities)


def entries_of(
    paths: Sequence[Path], opened: Opened, cache: Path | None, keys: Sequence[str] = (), identities: Sequence[str | None] | None = None
) -> list[Entry]:
    """The runs in these files by time. Files of Flent may be among them if `opened` reads them. `identities`: caches.identity() of each
    path, if it is known."""
    made = _heads(paths, [caches.identity(path) for path in paths] if identities is None else identities, caches.Cache(cache), opened)
    if any(entry.state == "cut off" for entry in made):
        from ktrxer.analyse.repeats import repeated

        again = repeated(paths, opened, cache)
        made = [entry._replace(state="repeated") if entry.path in again else entry for entry in made]
    further = [key for key in dict.fromkeys(keys) if key not in OF_HEAD and key not in OF_FILE]
    if further and any(entry.head is not None for entry in made):
        made = _with_columns(made, further, opened, cache)
    return sorted(made, key=lambda entry: (entry.head["created"] if entry.head is not None else "", entry.path.name))


def _heads(paths: Sequence[Path], identities: Sequence[str | None], cache: caches.Cache, opened: Opened) -> list[Entry]:
    rows = cache.get("head", [key for key in identities if key is not None])
    heads: dict[str | None, Head] = dict(zip(rows, json.loads(f"[{','.join(rows.values())}]"), strict=True))
    made, fresh = [], {}
    read = _read([path for path, key in zip(paths, identities, strict=True) if key not in heads], opened)
    for path, key in zip(paths, identities, strict=True):
        if key in heads:
            made.append(Entry(path, heads[key], "finished"))
            continue
        entry = read[path] or Entry(path, None, "damaged", "not read: the process that reads it was killed")
        if entry.head is not None and key is not None:
            fresh[key] = json.dumps(entry.head)
        if entry.state != "damaged" or path.exists() or path.is_symlink():
            made.append(entry)
    cache.keep("head", fresh)
    return made


def _read(paths: Sequence[Path], opened: Opened) -> dict[Path, Entry | None]:
    if not paths:
        return {}
    from ktrxer.analyse.collection import in_parallel

    return dict(zip(paths, in_parallel(partial(_entry, opened=opened), paths, FEW), strict=True))


def _entry(path: Path, opened: Opened) -> Entry:
    from dataclasses import asdict

    from ktrxer.store import StoreError, head, one_line, open_run
    from ktrxer.store.run import being_written

    try:
        if path.name.endswith(FLENT):
            return Entry(path, asdict(head.of_meta(opened(path).meta)), "finished")
        if path.is_dir():
            return Entry(path, asdict(head.of_meta(open_run(path).meta)), "running" if being_written(path) else "cut off")
        return Entry(path, asdict(head.read(path)), "finished")
    except StoreError as error:
        return Entry(path, None, "damaged", one_line(str(error).removeprefix(f"{path}: ")))
    except OSError as error:
        return Entry(path, None, "damaged", one_line(error.strerror or str(error)))


def _with_columns(made: list[Entry], keys: Sequence[str], opened: Opened, cache: Path | None) -> list[Entry]:
    """Each key is a property or a figure. Keys of most figures have a dot, so these are looked up as figures first."""
    from ktrxer.analyse.collection import Failure, gather

    paths = [entry.path for entry in made if entry.head is not None]
    values: dict[Path, dict[str, str | float]] = {path: {} for path in paths}
    failed: dict[Path, str] = {}
    left = list(keys)
    for part, likely in (("figures", True), ("facts", False), ("figures", False)):
        wanted = [key for key in left if not likely or ("." in key and "/" not in key)]
        if not wanted:
            continue
        readable = [path for path in paths if path not in failed]
        for path, found in gather(readable, opened, (part,), cache, wanted if part == "facts" else ()).items():
            if isinstance(found, Failure):
                failed[path] = found.text
            else:
                values[path] |= _of_part(part, found[part], wanted)
        known = {key for some in values.values() for key in some}
        left = [key for key in left if key not in known]
    if left and len(failed) < len(paths):
        from ktrxer.analyse.grouping import PROPERTIES, unknown

        of_file = ", ".join(sorted({*OF_HEAD, *OF_FILE} - PROPERTIES.keys()))
        raise UnknownColumn(f"{unknown(left)}; further columns: {of_file}; nor is it a figure of a run", left)
    return [_completed(entry, values.get(entry.path, {}), failed.get(entry.path)) for entry in made]


def _of_part(part: str, found: Any, wanted: Sequence[str]) -> dict[str, str | float]:
    if part == "facts":
        return {key: value for key in wanted if (value := found["properties"].get(key)) is not None}
    return {one["key"]: one["value"] for one in found if one["key"] in wanted}


def _completed(entry: Entry, values: dict[str, str | float], failure: str | None) -> Entry:
    if failure is not None:
        from ktrxer.store import one_line

        return Entry(entry.path, None, "damaged", one_line(failure.removeprefix(f"{entry.path}: ")))
    return Entry(entry.path, entry.head, entry.state, entry.problem, values)


def sort_key(value: str | float | None) -> tuple[int, float, str]:
    """Numbers by their value, also with a unit, before text; runs without a value last."""
    if value is None:
        return (2, 0.0, "")
    from ktrxer.analyse.where import quantity

    found = quantity(str(value))
    return (0, found[0], "") if found is not None else (1, 0.0, str(value))
