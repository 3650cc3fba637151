# SPDX-License-Identifier: MIT OR Apache-2.0
"""Open files and directories of unknown origin: only regular files, and no symbolic link inside the directory of a run. Replace files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ktrxer.store.errors import StoreError

# O_NONBLOCK: without it, opening a FIFO that has no writer would block.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading and follow links. StoreError for a FIFO, a device or a directory. OSError as from open(2)."""
    return _regular(os.open(path, _READ), path)


def open_inside(directory: Path, name: str) -> BinaryIO:
    """Open the file `name` in the directory of a run for reading. StoreError if it is not a regular file, or if the directory or the file
    is a symbolic link. OSError as from open(2)."""
    try:
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        if directory.is_symlink():
            raise StoreError(f"{directory}: a symbolic link; give the directory that it points to") from None
        raise
    try:
        return _regular(os.open(name, _READ | os.O_NOFOLLOW, dir_fd=at), directory / name)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{directory / name}: a symbolic link; a run contains no links") from None
        raise
    finally:
        os.close(at)


def _regular(handle: int, path: Path) -> BinaryIO:
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise StoreError(f"{path}: {'this is a folder' if stat.S_ISDIR(mode) else 'not a regular file'}")
    return os.fdopen(handle, "rb")


def create(path: Path) -> BinaryIO:
    """Create a file for writing. Remove an existing `path` first; a link is removed and not followed."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb")


def append(path: Path) -> int:
    """A descriptor that writes at the end of a file, which is made if it does not exist. OSError for a link, which is not followed, and for
    anything else than a regular file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "a symbolic link, which is not followed; remove it", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file; remove it", str(path))
    return handle


def replace(target: Path, write_to: Callable[[Path], object]) -> None:
    """Write a file beside `target` and rename it, so that `target` is whole at all times. StoreError if that fails."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
        os.close(handle)
        beside = Path(name)
        try:
            write_to(beside)
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o666 & ~mask)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror or error}") from None
