# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sizes of the compressed parts of a file after decompression, read from their headers.

These checks come first, because pyarrow allocates the size that a header claims: up to 2 GiB for a page of a Parquet file, without limit
for a buffer of an Arrow message.
Formats: Parquet's thrift (parquet-format, FileMetaData and PageHeader; thrift compact protocol), Arrow's flatbuffers (Message.fbs).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ktrxer.store import limits
from ktrxer.store.errors import StoreError

_BATCH = 3  # MessageHeader.RecordBatch

# Thrift compact protocol: types of fields.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


# ------------------------------------------------------------------------------------------------------------------ Parquet


class _Thrift:
    """A reader of one structure that begins at `at`. IndexError or ValueError for damaged data."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        if byte < 128:
            return byte
        value, shift = byte & 127, 7
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        if depth > limits.DEPTH:
            raise ValueError("nested too deeply")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind == _STRUCT:
            while field := self.field(0)[1]:
                self.skip(field, depth + 1)
        elif kind in (_LIST, _SET):
            inner = self.data[self.at] & 15
            for _ in self.elements(inner):
                self.skip(_BYTE if inner in (_TRUE, _FALSE) else inner, depth + 1)
        else:  # Parquet has no maps
            raise ValueError(f"a field of type {kind}")

    def elements(self, kind: int) -> range:
        """Those of a list, which follow."""
        head = self.byte()
        count = self.varint() if head >> 4 == 15 else head >> 4
        if head & 15 != kind or count > len(self.data) - self.at:  # each has a byte at least
            raise ValueError("a list of another type, or longer than the data")
        return range(count)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Numbers and types of the fields of a structure. A field that came twice would have another value for another reader."""
        last = 0
        while True:
            number, kind = self.field(last)
            if not kind:
                return
            if number <= last:
                raise ValueError("its fields are not in order")
            last = number
            yield number, kind

    def field(self, last: int) -> tuple[int, int]:
        """Number and type of the next field. Type 0 marks the end of the structure."""
        head = self.data[self.at]
        self.at += 1
        if not head:
            return 0, 0
        return (last + (head >> 4) if head >> 4 else self.zigzag()), head & 15


def _page_sizes(data: memoryview, at: int) -> tuple[int, int, int]:
    """The offset of the page behind this header, its uncompressed size, and its size in the file."""
    reader = _Thrift(data, at)
    sizes: dict[int, int] = {}
    for number, kind in reader.fields():
        if number in (2, 3) and kind == _I32:
            sizes[number] = reader.zigzag()
        else:
            reader.skip(kind)
    return reader.at, sizes[2], sizes[3]


def _chunk(reader: _Thrift) -> tuple[int, int]:
    """Offset of the first page of a column, and the size of all of its pages (ColumnChunk and ColumnMetaData)."""
    found: dict[int, int] = {}
    for outer, kind in reader.fields():
        if (outer, kind) != (3, _STRUCT):
            reader.skip(kind)
            continue
        for number, inner in reader.fields():
            if number in (7, 9, 11) and inner == _I64:
                found[number] = reader.zigzag()
            else:
                reader.skip(inner)
    return min(at for at in (found[9], found.get(11)) if at), found[7]


def _chunks(data: memoryview) -> Iterator[list[tuple[int, int]]]:
    """The columns of each row group, from the footer of a Parquet file. pyarrow 26 ends the process where a column's sizes contradict its
    type (`RowGroupMetaData.column`)."""
    length = struct.unpack_from("<I", data, len(data) - 8)[0]
    reader = _Thrift(data, len(data) - 8 - length)
    for number, kind in reader.fields():
        if (number, kind) != (4, _LIST):
            reader.skip(kind)
            continue
        for _ in reader.elements(_STRUCT):
            columns: list[tuple[int, int]] = []
            for inner, of in reader.fields():
                if (inner, of) == (1, _LIST):
                    columns = [_chunk(reader) for _ in reader.elements(_STRUCT)]
                else:
                    reader.skip(of)
            yield columns


def check_pages(data: memoryview, paths: Sequence[str], where: str, wanted: Sequence[str] | None = None) -> None:
    """StoreError if a page claims more than PAGE_BYTES, or if all pages of a table claim more than TABLE_BYTES: of the columns that are
    wanted, because pages of the others are not read. `paths` are those of all columns."""
    total = 0
    data = data.cast("B")
    try:
        groups = list(_chunks(data))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise StoreError(f"{where}: damaged: its footer ({error})") from None
    for group in groups:
        if len(group) != len(paths):
            raise StoreError(f"{where}: damaged: {len(group)} columns of {len(paths)}")
        for path, (at, size) in zip(paths, group, strict=True):
            if wanted is not None and path not in wanted:
                continue
            end = at + size
            if not 0 < at <= end <= len(data):
                raise StoreError(f"{where}: damaged: the column {path} ends behind the end of the data")
            while at < end:
                try:
                    begin, unpacked, size = _page_sizes(data[:end], at)
                except (IndexError, KeyError, ValueError) as error:
                    raise StoreError(f"{where}: damaged: a page of {path} has no header ({error})") from None
                total += unpacked
                if not 0 <= unpacked <= limits.PAGE_BYTES or size < 0 or total > limits.TABLE_BYTES:
                    raise StoreError(f"{where}: a page of {path} claims {unpacked} bytes; at most {limits.PAGE_BYTES} are read")
                at = begin + size


# -------------------------------------------------------------------------------------------------------------------- Arrow


def _table_field(data: memoryview, table: int, number: int) -> int:
    """The offset of a field of a flatbuffer's table; 0 if the table does not have it."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0 or 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = int(struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0])
    return table + offset if offset else 0


def is_compressed(metadata: Any) -> bool:
    """Whether this message has compressed buffers. ValueError for a damaged message."""
    data = memoryview(metadata).cast("B")
    try:
        message = struct.unpack_from("<I", data, 0)[0]
        kind, header = _table_field(data, message, 1), _table_field(data, message, 2)
        if not kind or not header or data[kind] != _BATCH:
            return False
        batch = header + struct.unpack_from("<I", data, header)[0]
        return _table_field(data, batch, 3) != 0
    except (struct.error, IndexError):
        raise ValueError("a message has no header") from None
