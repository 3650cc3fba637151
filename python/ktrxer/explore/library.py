# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs of one directory. A request names a run by its file name, which is looked up in the list of the directory and is never a part
of a path, so no request reaches another file."""

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
from ktrxer.store import StoreError, open_run
from ktrxer.store.container import PART
from ktrxer.store.listing import find
from ktrxer.store.run import being_written
from ktrxer.view.report import Readable, readable

MOST_OPEN = 64  # runs that stay open
MOST_OPEN_BYTES = 512 << 20  # of their files
OUTSIDE = "is a link to a file outside the directory, which the explorer does not open"


class Unknown(Exception):
    """The directory has no run of that name, or the run cannot be read. The text is one line."""


class Library:
    def __init__(self, directory: Path, cache: Path | None) -> None:
        self.directory = directory
        self.cache = cache
        self._root = directory.resolve()
        self._open: OrderedDict[str, tuple[str, int, Readable]] = OrderedDict()
        self._lock = threading.RLock()

    def entries(self, keys: Sequence[str] = ()) -> list[Entry]:
        """The table. OSError: the directory cannot be read. listing.UnknownColumn: no run has one of the keys."""
        with self._lock:
            made = listing.entries(self.directory, open_run, self.cache, keys)
        return [entry if self._inside(entry.path) else entry._replace(head=None, state="damaged", problem=OUTSIDE) for entry in made]

    def version(self) -> str:
        """Another text when a run was added, removed or changed, or has ended."""
        digest = sha256()
        for path in self._paths():
            digest.update(f"{path.name}\0{self._signature(path)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def path(self, name: str) -> Path:
        """NAME.ktrxer.part is found as NAME.ktrxer when it is finished. Unknown: the directory has no such run."""
        there = {path.name: path for path in self._paths()}
        found = there.get(name) or there.get(name.removesuffix(PART))
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
        try:
            with os.scandir(self.directory):  # OSError where the directory has vanished
                return [path for path in find(self.directory) if not path.name.endswith(".flent.gz")]
        except OSError as error:
            raise Unknown(f"{self.directory}: {error.strerror or error}") from None

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
        return readable(open_run(path))
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
