# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs of one directory and of those below it. A request names a run by its path below the directory, which is looked up in the list of
all runs and never opened as it is, so no request reaches another file."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from ktrxer.analyse import cache as caches
from ktrxer.analyse import listing
from ktrxer.analyse.listing import Entry
from ktrxer.commands.opening import open_any
from ktrxer.store import StoreError
from ktrxer.store.listing import find
from ktrxer.store.names import PART
from ktrxer.store.run import being_written
from ktrxer.view.report import Readable, readable

MOST_FOLDERS = 1000  # of the directory and below it; they are looked through twice a second
MOST_OPEN = 64  # runs that stay open
MOST_OPEN_BYTES = 512 << 20  # of their files
OUTSIDE = "is a link to a file outside the directory, which the explorer does not open"


class Unknown(Exception):
    """The directory has no run of that name, or the run cannot be read. The text is one line."""


class Library:
    def __init__(self, directory: Path, cache: Path | None) -> None:
        self.directory = directory
        self.cache = cache
        self.left_out = False  # there are more than MOST_FOLDERS directories
        self._known: dict[str, Path] = {}  # the runs by name, as they were found the last time
        self._root = directory.resolve()
        self._open: OrderedDict[str, tuple[str, int, Readable]] = OrderedDict()
        self._lock = threading.RLock()

    def entries(self, keys: Sequence[str] = ()) -> list[Entry]:
        """The table. Unknown: the directory cannot be read. listing.UnknownColumn: no run has one of the keys."""
        with self._lock:
            made = listing.entries_of(self._paths(), open_any, self.cache, keys)
        return [entry if self._inside(entry.path) else entry._replace(head=None, state="damaged", problem=OUTSIDE) for entry in made]

    def name(self, path: Path) -> str:
        """How a request names a run."""
        return path.relative_to(self.directory).as_posix()

    def version(self) -> str:
        """Another text when a run was added, removed or changed, or has ended."""
        digest = sha256()
        for path in self._paths():
            digest.update(f"{self.name(path)}\0{self._signature(path)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def path(self, name: str) -> Path:
        """NAME.ktrxer.part is found as NAME.ktrxer when it is finished. Unknown: the directory has no such run."""
        found = self._known.get(name)
        if found is None or not os.path.lexists(found):  # a run that is new, gone or finished
            self._paths()
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

    def _paths(self) -> list[Path]:
        """Those of a directory before those of the directories in it. A link to a directory is not followed: it may be a circle."""
        made: list[Path] = []
        left_out = False
        folders = [self.directory]
        for folder in folders:
            try:
                with os.scandir(folder) as found:
                    inner = sorted(one.name for one in found if one.is_dir(follow_symlinks=False) and not one.name.startswith("."))
                made += find(folder)
            except OSError as error:
                if folder is self.directory:  # it has vanished
                    raise Unknown(f"{self.directory}: {error.strerror or error}") from None
                continue
            folders += [folder / name for name in inner if not name.endswith(PART)]
            left_out = left_out or len(folders) > MOST_FOLDERS
            del folders[MOST_FOLDERS:]
        self.left_out = left_out
        self._known = {self.name(path): path for path in made}
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
                parts = sorted((one.name, one.stat(follow_symlinks=False).st_size) for one in found)
        except OSError:
            return "gone"
        return f"{parts} {being_written(path)}"


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
