# SPDX-License-Identifier: MIT OR Apache-2.0
"""The outer format of a Flent file: gzip, bzip2 or plain JSON. Reading has limits; the same content gives the same bytes."""

from __future__ import annotations

import bz2
import json
import zlib
from pathlib import Path
from typing import Any

from ktrxer.flent.errors import FlentError
from ktrxer.store import StoreError, files

FILE_LIMIT = 256 << 20  # bytes on disk
TEXT_LIMIT = 256 << 20  # bytes of JSON: an hour of 200 series on a grid of 50 ms
# Limits of values and brackets, because each takes 40 to 70 bytes of memory as a Python object: in all, and for each byte on disk. Numbers
# of measurements compress to a byte or more each.
VALUES_LIMIT = 16_000_000
VALUES_A_BYTE, VALUES_FREE = 4, 1_000_000
CHUNK = 1 << 20
NAME_LIMIT = 250  # characters, with suffix: the limit of file systems

GZIP, BZIP2 = b"\x1f\x8b", b"BZh"


def load(path: Path) -> bytes:
    try:
        with files.open_regular(path) as file:
            return file.read(FILE_LIMIT + 1)
    except StoreError as error:
        raise FlentError(str(error).removeprefix(f"{path}: ")) from None
    except OSError as error:
        raise FlentError(f"{error.strerror}") from None


def parse(data: bytes) -> Any:
    """The JSON value of a file. The bytes determine the codec, not the file name."""
    if len(data) > FILE_LIMIT:
        raise FlentError(f"larger than {FILE_LIMIT >> 20} MiB: too large for a Flent file")
    text = _unpacked(data)
    most = min(VALUES_LIMIT, VALUES_FREE + VALUES_A_BYTE * len(data))
    if sum(text.count(mark) for mark in (b",", b"[", b"{")) > most:
        raise FlentError(f"more than {most} values in {len(data)} bytes: this would fill the memory")
    # json.JSONDecodeError is a ValueError, as is an integer of more digits than Python converts (4300).
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise FlentError("not Flent's JSON: nested too deeply") from None
    except UnicodeDecodeError:
        raise FlentError("not a data file of Flent: neither gzip, bzip2 nor UTF-8 text") from None
    except json.JSONDecodeError as error:
        cut = "; the file is cut off" if error.pos >= len(text) - 1 else ""
        raise FlentError(f"not a data file of Flent: not JSON: {error.msg} (line {error.lineno}){cut}") from None
    except ValueError:
        raise FlentError("not Flent's JSON: a number with too many digits") from None


def _no_number(_: str) -> None:
    """Read NaN and infinities, which Python writes although JSON has none, as missing values."""
    return


def _unpacked(data: bytes) -> bytes:
    if data.startswith(GZIP):
        return _bounded(data, _Gunzip(), "gzip")
    if data.startswith(BZIP2):
        return _bounded(data, bz2.BZ2Decompressor(), "bzip2")
    return data


class _Gunzip:
    """zlib's decompressor with the interface of bz2's: the size of each output is bounded."""

    def __init__(self) -> None:
        self.inner = zlib.decompressobj(wbits=31)
        self.first = True

    def decompress(self, data: bytes, limit: int) -> bytes:
        given, self.first = (data if self.first else self.inner.unconsumed_tail), False
        return self.inner.decompress(given, limit)

    @property
    def eof(self) -> bool:
        return self.inner.eof

    @property
    def needs_input(self) -> bool:
        return not self.inner.unconsumed_tail and not self.inner.eof


def _bounded(data: bytes, codec: Any, name: str) -> bytes:
    parts, size = [], 0
    try:
        part = codec.decompress(data, CHUNK)
        while True:
            size += len(part)
            if size > TEXT_LIMIT:
                raise FlentError(f"unpacks to more than {TEXT_LIMIT >> 20} MiB")
            parts.append(part)
            if codec.eof or (codec.needs_input and not part):
                break
            part = codec.decompress(b"", CHUNK)
            if not part and codec.needs_input:
                break
    except (zlib.error, OSError, EOFError, ValueError) as error:
        raise FlentError(f"damaged {name}: {error}") from None
    if not codec.eof:
        raise FlentError(f"damaged {name}: the file is cut off")
    return b"".join(parts)


def write(path: Path, value: Any) -> None:
    """Write a file atomically. The same value gives the same bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode()
    if path.suffix == ".gz":
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # no name and no time in the header
        data = packer.compress(text) + packer.flush()
    elif path.suffix in (".bz2", ".flnt"):
        data = bz2.compress(text)
    else:
        data = text
    files.replace(path, lambda beside: beside.write_bytes(data))
