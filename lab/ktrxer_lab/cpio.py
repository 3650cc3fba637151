# SPDX-License-Identifier: MIT OR Apache-2.0
"""Initramfs archives (cpio, format newc), written without root. The same input gives the same bytes."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO


@dataclass
class Entry:
    mode: int
    data: bytes = b""


@dataclass
class Tree:
    """Files of an archive by path (no leading slash). A later file replaces an earlier one."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def directory(self, path: str, mode: int = 0o755) -> None:
        self._parents(path)
        self.entries.setdefault(path.strip("/"), Entry(stat.S_IFDIR | mode))

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._parents(path)
        self.entries[path.strip("/")] = Entry(stat.S_IFREG | mode, data)

    def link(self, path: str, target: str) -> None:
        self._parents(path)
        self.entries[path.strip("/")] = Entry(stat.S_IFLNK | 0o777, target.encode())

    def copy(self, source: Path, path: str) -> None:
        """Copy a file, or a folder with its contents."""
        if source.is_dir():
            self.directory(path)
            for child in sorted(source.iterdir()):
                if child.name != "__pycache__":
                    self.copy(child, f"{path}/{child.name}")
        else:
            self.file(path, source.read_bytes(), source.stat().st_mode & 0o777)

    def _parents(self, path: str) -> None:
        parts = path.strip("/").split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            self.entries.setdefault("/".join(parts[:depth]), Entry(stat.S_IFDIR | 0o755))

    def write(self, out: BinaryIO) -> None:
        for number, path in enumerate(sorted(self.entries), start=1):
            entry = self.entries[path]
            _write_one(out, number, path, entry.mode, entry.data)
        _write_one(out, 0, "TRAILER!!!", 0, b"")
        # The kernel requires that the next archive of an initramfs begins at a multiple of 4; cpio pads to 512.
        out.write(b"\0" * (-out.tell() % 512))


def _write_one(out: BinaryIO, number: int, path: str, mode: int, data: bytes) -> None:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % value for value in fields)
    out.write(header + name + b"\0" * (-(len(header) + len(name)) % 4))
    out.write(data + b"\0" * (-len(data) % 4))
