# SPDX-License-Identifier: MIT OR Apache-2.0
"""NAME.ktrxer: a zip file whose members are stored without compression, so that each member is a plain byte range of the file.

Any zip tool opens it. This module has its own reader, which accepts only this kind of zip file. It never unpacks a member and never uses a
member's name as a path.
Format: PKWARE APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14-16 (its ends).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import struct
import zlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ktrxer.store import files, limits
from ktrxer.store.errors import StoreError
from ktrxer.store.names import META

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.(json|parquet)")
_END = struct.Struct("<4s4H2LH")
_END64_AT = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


def is_container(path: Path) -> bool:
    """Whether the file begins with the magic number of a zip file. False for a file that cannot be read."""
    try:
        with files.open_regular(path) as file:
            return file.read(4) == b"PK\3\4"
    except (OSError, StoreError):
        return False


class Member(NamedTuple):
    name: str
    offset: int
    size: int
    crc: int


class Container:
    """The members of one file as memory views. The garbage collector closes the file, because views may outlive this object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with files.open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
                if size < _END.size:
                    raise self._wrong("it is not a zip file" if size else "it is empty")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise StoreError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        self.view = memoryview(self._map)
        self.members = {member.name: member for member in self._directory()}
        self._checked: set[str] = set()
        if META not in self.members:
            raise self._wrong(f"{META} is missing")

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def read(self, name: str) -> memoryview:
        """The bytes of a member, without a copy. The first call checks them against the checksum."""
        member = self.members[name]
        data = self.view[member.offset : member.offset + member.size]
        if name not in self._checked:
            if zlib.crc32(data) != member.crc:
                raise self._wrong(f"{name} is damaged (its checksum is wrong)")
            self._checked.add(name)
        return data

    def _wrong(self, what: str) -> StoreError:
        if not is_container(self.path):
            return StoreError(f"{self.path}: not a run: `ktrxer run` stores NAME.ktrxer; a data file of Flent is called NAME.flent.gz")
        return StoreError(f"{self.path}: not a run, or a damaged one: {what}")

    def _end(self) -> tuple[int, int, int]:
        """Entries, size and offset of the central directory."""
        # `write` adds no comment, so the end record is the last 22 bytes. Another tool may have added a comment.
        at = self._map.rfind(b"PK\5\6", max(0, len(self._map) - _END.size - _FULL16))
        if at < 0 or at + _END.size > len(self._map):
            raise self._wrong("its end is missing: copy the whole file again")
        _, disk, first, here, entries, size, offset, _ = _END.unpack_from(self._map, at)
        if here == _FULL16 or size == _FULL32 or offset == _FULL32:
            if at < _END64_AT.size:
                raise self._wrong("its end record is truncated")
            magic, _, at64, _ = _END64_AT.unpack_from(self._map, at - _END64_AT.size)
            if magic != b"PK\6\7" or at64 + _END64.size > len(self._map):
                raise self._wrong("its end record is truncated")
            magic, _, _, _, disk, first, here, entries, size, offset = _END64.unpack_from(self._map, at64)
            if magic != b"PK\6\6":
                raise self._wrong("its end record is truncated")
        if disk or first or here != entries:
            raise self._wrong("it is one part of a split zip")
        if entries > limits.MEMBERS or size > limits.DIRECTORY_BYTES or offset + size > at:
            raise self._wrong(f"its directory claims {entries} members in {size} bytes")
        return entries, size, offset

    def _directory(self) -> Iterable[Member]:
        entries, size, at = self._end()
        end = at + size
        found: list[Member] = []
        for _ in range(entries):
            if at + _ENTRY.size > end:
                raise self._wrong("its directory is truncated")
            fields = _ENTRY.unpack_from(self._map, at)
            magic, flags, method, crc, packed, length = fields[0], fields[3], fields[4], fields[7], fields[8], fields[9]
            name_size, extra_size, comment_size, offset = fields[10], fields[11], fields[12], fields[16]
            name_at = at + _ENTRY.size
            at = name_at + name_size + extra_size + comment_size
            if magic != b"PK\1\2" or at > end:
                raise self._wrong("its directory is truncated")
            raw = self._map[name_at : name_at + name_size]
            name = raw.decode("ascii", "replace")
            if not _NAME.fullmatch(name):
                raise self._wrong(f"a member has the forbidden name {name[:60]!r}")
            packed, length, offset = self._wide(self._map[name_at + name_size : name_at + name_size + extra_size], packed, length, offset)
            if method != 0 or packed != length or flags & 0x2041:
                raise self._wrong(f"{name} is compressed or encrypted; members of a run are stored as they are")
            found.append(Member(name, self._data_at(name, raw, offset), length, crc))
        if len({member.name for member in found}) != len(found):
            raise self._wrong("a member occurs twice")
        found.sort(key=lambda member: member.offset)
        for one, after in pairwise(found):
            if one.offset + one.size > after.offset:
                raise self._wrong(f"{one.name} and {after.name} overlap")
        if found and found[-1].offset + found[-1].size > end - size:
            raise self._wrong(f"{found[-1].name} ends behind the start of the directory")
        return found

    @staticmethod
    def _wide(extra: bytes, packed: int, length: int, offset: int) -> tuple[int, int, int]:
        """Sizes and offset from the Zip64 extra field (4.5.3). It holds a value only for each plain field that has its largest value, in
        this order."""
        at = 0
        while at + 4 <= len(extra):
            kind, size = struct.unpack_from("<HH", extra, at)
            if kind == 1:
                words = [struct.unpack_from("<Q", extra, at + 4 + 8 * i)[0] for i in range(min(size, len(extra) - at - 4) // 8)]
                if length == _FULL32 and words:
                    length = words.pop(0)
                if packed == _FULL32 and words:
                    packed = words.pop(0)
                if offset == _FULL32 and words:
                    offset = words.pop(0)
            at += 4 + size
        return packed, length, offset

    def _data_at(self, name: str, raw: bytes, offset: int) -> int:
        if offset + _LOCAL.size > len(self._map):
            raise self._wrong(f"{name} begins behind the end of the file")
        fields = _LOCAL.unpack_from(self._map, offset)
        at = offset + _LOCAL.size
        if fields[0] != b"PK\3\4" or self._map[at : at + fields[9]] != raw:
            raise self._wrong(f"{name} is not at the offset that the directory has")
        return at + int(fields[9]) + int(fields[10])


def write(path: Path, members: Iterable[tuple[str, bytes | Path]], beside: Path) -> None:
    """Replace `path` atomically: write and sync the file `beside`, which is on the same file system, then rename it."""
    import zipfile  # here, because a reader does not need it

    try:
        with files.create(beside) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zip_file:
                for name, content in members:
                    # A constant date, so that two files of the same run are identical.
                    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                    info.external_attr = 0o644 << 16
                    if isinstance(content, Path):
                        info.file_size = content.stat().st_size
                        with content.open("rb") as source, zip_file.open(info, "w") as target:
                            while block := source.read(1 << 20):
                                target.write(block)
                    else:
                        zip_file.writestr(info, content)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        sync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def sync_directory(path: Path) -> None:
    """Sync a directory, so that a rename in it survives a power failure. Some file systems do not support this."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
