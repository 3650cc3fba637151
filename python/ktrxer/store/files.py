# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files and directories of unknown origin: only regular files are opened, and nothing in a directory of a run is reached through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ktrxer.store.errors import StoreError

# O_NONBLOCK: the open of a FIFO without a writer would wait.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def open_regular(path: Path) -> BinaryIO:
    """The file for reading; a link is followed. StoreError for a FIFO, a device, a directory. OSError as open(2)."""
    return _regular(os.open(path, _READ), path)


def open_inside(directory: Path, name: str) -> BinaryIO:
    """The file `name` of the directory of a run, for reading. StoreError for what is not a regular file; neither the directory nor the file
    may be a symbolic link. OSError as open(2)."""
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
            raise StoreError(f"{directory / name}: a symbolic link; a run has none") from None
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
    """A new file for writing. What stands at `path` is removed first; a link is removed and not followed."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb")
