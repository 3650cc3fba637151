# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs of one directory and of those below it. A request names a run by its path below the directory, which is looked up in the list of
all runs and never opened as it is, so no request reaches another file."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ktrxer.analyse import cache as caches
from ktrxer.analyse import listing
from ktrxer.analyse.listing import Entry
from ktrxer.commands.opening import open_any
from ktrxer.store import StoreError
from ktrxer.store.listing import is_run
from ktrxer.store.names import PART
from ktrxer.store.run import being_written
from ktrxer.view.report import Readable, readable

MOST_FOLDERS = 1000  # of the directory and below it; they are looked through up to twice a second
MOST_OPEN = 64  # runs that stay open
MOST_OPEN_BYTES = 512 << 20  # of their files
OUTSIDE = "is a link to a file outside the directory, which the explorer does not open"
WATCH_SHARE = 8


class _File(NamedTuple):
    name: str  # below the directory
    identity: str | None  # caches.identity()
    link: bool


class Unknown(Exception):
    """The directory has no run of that name, or the run cannot be read. The text is one line."""


class Library:
    def __init__(self, directory: Path, cache: Path | None) -> None:
        self.directory = directory
        self.cache = cache
        self.left_out = False  # there are more than MOST_FOLDERS directories
        self._known: dict[str, Path] = {}  # the runs by name, as they were found the last time
        self._root = directory.resolve()
        self._before = "" if str(directory) == "." else str(directory).rstrip("/") + "/"  # the name of each run, in its path
        self._version = ("", -math.inf, 0.0)  # the last one, the time when it was made, and its processor time
        self._watching = threading.Lock()
        self._open: OrderedDict[str, tuple[str, int, Readable]] = OrderedDict()
        self._lock = threading.RLock()

    def entries(self, keys: Sequence[str] = ()) -> list[Entry]:
        """The table. Unknown: the directory cannot be read. listing.UnknownColumn: no run has one of the keys."""
        return self._entries(self._files(), keys)

    def look(self) -> tuple[Callable[[Sequence[str]], list[Entry]], str]:
        """The table, as above, and the version that it has; both from one look at the directory. Unknown: it cannot be read."""
        files = self._files()
        return partial(self._entries, files), self._version_of(files)

    def _entries(self, files: Sequence[_File], keys: Sequence[str]) -> list[Entry]:
        with self._lock:
            paths = {one.name: self._known.get(one.name) or self.directory / one.name for one in files}
            made = listing.entries_of([*paths.values()], open_any, self.cache, keys, [one.identity for one in files])
        outside = {paths[one.name] for one in files if one.link and not self._inside(paths[one.name])}
        if not outside:
            return made
        return [entry._replace(head=None, state="damaged", problem=OUTSIDE) if entry.path in outside else entry for entry in made]

    def name(self, path: Path) -> str:
        """How a request names a run."""
        return str(path).removeprefix(self._before)

    def version(self) -> str:
        """Another text when a run was added, removed or changed, or has ended."""
        return self._version_of(self._files())

    def watched(self, age_s: float) -> str:
        """A version that is at most so old, or older in a directory so large that a look costs an eighth of that time. All pages that wait
        for changes share one look at the directory."""
        with self._watching:
            version, made, cost = self._version
            if time.monotonic() - made > max(age_s, WATCH_SHARE * cost):
                began = time.thread_time()  # on a busy machine a look lasts longer, and costs the same
                version = self.version()
                self._version = version, time.monotonic(), time.thread_time() - began
            return version

    def _version_of(self, files: Sequence[_File]) -> str:
        text = "\n".join(f"{one.name}\0{one.identity or self._signature(self.directory / one.name)}" for one in files)
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def path(self, name: str) -> Path:
        """NAME.ktrxer.part is found as NAME.ktrxer when it is finished. Unknown: the directory has no such run."""
        found = self._known.get(name)
        if found is None or not os.path.lexists(found):  # a run that is new, gone or finished
            self._files()
            found = self._known.get(name) or self._known.get(name.removesuffix(PART))
        if found is None:
            raise Unknown(f"{name[:200]}: no such run in {self.directory}")
        if not self._inside(found):
            raise Unknown(f"{found}: {OUTSIDE}")
        return found

    def run(self, name: str) -> Readable:
        """Unknown: there is no such run, or it cannot be read at all. Its unreadable parts are named in `damage`."""
        path = self.path(name)
        signature = self._signature(path)
        with self._lock:
            known = self._open.get(name)
            if known is None or known[0] != signature:
                known = (signature, _bytes_of(path), _read(path))
                self._open[name] = known
            self._open.move_to_end(name)
            while len(self._open) > 1 and (len(self._open) > MOST_OPEN or sum(one[1] for one in self._open.values()) > MOST_OPEN_BYTES):
                self._open.popitem(last=False)
            return known[2]

    def signatures(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._signature(self.path(name)) for name in names)

    def _files(self) -> list[_File]:
        """The runs of a directory before those of the directories in it. A link to a directory is not followed: it may be a circle."""
        made: list[_File] = []
        left_out = False
        folders = [""]
        for folder in folders:
            try:
                with os.scandir(self.directory / folder) as found:
                    there = sorted(found, key=lambda one: one.name)
            except OSError as error:
                if not folder:  # it has vanished
                    raise Unknown(f"{self.directory}: {error.strerror or error}") from None
                continue
            made += [_file(folder, one) for one in there if is_run(one.name)]
            inner = [one.name for one in there if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]
            folders += [f"{folder}{name}/" for name in inner if not name.endswith(PART)]
            left_out = left_out or len(folders) > MOST_FOLDERS
            del folders[MOST_FOLDERS:]
        self.left_out = left_out
        before = self._known  # a path object costs as much as the look at its file
        self._known = {one.name: before.get(one.name) or self.directory / one.name for one in made}
        return made

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):  # a circle of links
            return False

    @staticmethod
    def _signature(path: Path) -> str:
        if not path.is_dir():
            return caches.identity(path) or "gone"
        try:
            with os.scandir(path) as found:
                stats = [(one.name, one.stat(follow_symlinks=False)) for one in found]
                parts = sorted((name, one.st_size, one.st_mtime_ns) for name, one in stats)
        except OSError:
            return "gone"
        return f"{parts} {being_written(path)}"


def _file(folder: str, one: os.DirEntry[str]) -> _File:
    try:
        identity = caches.identity_of(one.stat())
    except OSError:
        identity = None
    return _File(folder + one.name, identity, one.is_symlink())


def _read(path: Path) -> Readable:
    try:
        return readable(open_any(path))
    except StoreError as error:
        raise Unknown(str(error)) from None
    except OSError as error:
        raise Unknown(f"{path}: {error.strerror or error}") from None
    except MemoryError:
        raise Unknown(f"{path}: it does not fit into this machine's memory") from None


def _bytes_of(path: Path) -> int:
    try:
        return sum(one.stat().st_size for one in (path.iterdir() if path.is_dir() else [path]))
    except OSError:
        return 0
