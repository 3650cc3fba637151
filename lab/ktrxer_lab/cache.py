# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cache of downloads and builds of the lab: names by content, locks, atomic writing of files."""

from __future__ import annotations

import ast
import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from ktrxer_lab import places
from ktrxer_lab.errors import LabError

Show = Callable[[str], None]
WAIT_FIRST_S = 1.0  # until the first line about a lock of another process
WAIT_LINE_S = 60.0
WAIT_POLL_S = 0.2
CODE = ("cpio", "elf", "image", "modules", "packages")  # the modules whose code affects images


def digest(*inputs: Any) -> str:
    """A name for the result of a build, from its inputs and the code that builds it."""
    total = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode())
    for module in CODE:
        total.update(syntax(Path(__file__).with_name(f"{module}.py")).encode())
    return total.hexdigest()[:16]


@functools.cache
def syntax(path: Path) -> str:
    """The syntax tree of a Python file without comments and docstrings, so that rewording them rebuilds nothing."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


class Lock:
    """A lock that this process holds. Its file says which process holds it, since when, and what for."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.since = file, time.time()

    def note(self, what: str) -> None:
        with contextlib.suppress(OSError):
            self.file.seek(0)
            self.file.truncate()
            self.file.write(json.dumps({"pid": os.getpid(), "since": int(self.since), "what": what}))
            self.file.flush()


@contextlib.contextmanager
def locked(name: str, *, wait: bool = True, show: Show | None = None, what: str = "") -> Iterator[Lock]:
    """Allow one builder at a time. The others wait, and then find the result in the cache. Without `wait`: BlockingIOError.
    With `say`, those that wait print a line a minute about the holder, which has said what it does (`what`, Lock.note())."""
    folder = places.cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a+") as file:
        if not wait or show is None:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _wait(file, show)
        lock = Lock(file)
        lock.note(what)
        yield lock


def _wait(file: TextIO, show: Show, clock: Callable[[], float] = time.monotonic, pause: Callable[[float], None] = time.sleep) -> None:
    due = clock() + WAIT_FIRST_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock() >= due:
                due = clock() + WAIT_LINE_S
                show(f"waiting for {_holder(file)}")
            pause(WAIT_POLL_S)
        else:
            return


def _holder(file: TextIO) -> str:
    try:
        file.seek(0)
        found = json.loads(file.read(4096))
        pid, since, what = int(found["pid"]), float(found["since"]), str(found["what"])
        begun = time.strftime("%H:%M", time.localtime(since))
    except (ValueError, TypeError, KeyError, OverflowError, OSError):  # an older ktrxer writes nothing there
        return f"another process, which holds {file.name}"
    return f"process {pid}, since {begun}: {what or f'it holds {file.name}'}"


@contextlib.contextmanager
def fresh_file(path: Path) -> Iterator[Path]:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def fresh_folder(path: Path) -> Iterator[Path]:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        shutil.rmtree(path, ignore_errors=True)
        new.replace(path)
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextlib.contextmanager
def no_space(where: Path) -> Iterator[None]:
    """Report a full or unwritable disk in one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LabError(f"the disk of {where} is full; free some space or set KTRXER_LAB_CACHE and TMPDIR to another disk") from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise LabError(f"{error.filename or where}: {error.strerror}; set KTRXER_LAB_CACHE to a folder that you may write") from None
        raise
