# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading of ELF files, as far as the lab needs it: the libraries of a program, and the information section of a kernel module."""

from __future__ import annotations

import struct
from dataclasses import dataclass

DYNAMIC, NEEDED = 6, 1


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    data: bytes
    link: int


def is_elf(data: bytes) -> bool:
    return data[:4] == b"\x7fELF"


def _sections(data: bytes) -> tuple[list[Section], bool, str]:
    wide = data[4] == 2
    order = "<" if data[5] == 1 else ">"
    offset, size, count, names = (
        struct.unpack_from(order + "Q", data, 40)[0] if wide else struct.unpack_from(order + "I", data, 32)[0],
        *struct.unpack_from(order + "HHH", data, 58 if wide else 46),
    )
    header = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    raw = [struct.unpack_from(header, data, offset + index * size) for index in range(count)]
    if not raw:
        return [], wide, order
    name_table = data[raw[names][4] : raw[names][4] + raw[names][5]]
    found = []
    for name, kind, _flags, _addr, at, length, link, *_ in raw:
        text = name_table[name : name_table.index(b"\0", name)].decode()
        found.append(Section(text, kind, b"" if kind == 8 else data[at : at + length], link))
    return found, wide, order


def needed(data: bytes) -> list[str]:
    """The sonames of the shared libraries that a program or library needs."""
    sections, wide, order = _sections(data)
    libraries = []
    for section in sections:
        if section.kind != DYNAMIC:
            continue
        strings = sections[section.link].data
        for tag, value in struct.iter_unpack(order + ("qQ" if wide else "iI"), section.data):
            if tag == 0:
                break
            if tag == NEEDED:
                libraries.append(strings[value : strings.index(b"\0", value)].decode())
    return libraries


def is_program(data: bytes) -> bool:
    """Whether this is an executable that needs a loader for its libraries."""
    return is_elf(data) and any(section.name == ".interp" for section in _sections(data)[0])


def module_info(data: bytes) -> list[tuple[str, str]]:
    """The key=value lines of a kernel module."""
    sections, _, _ = _sections(data)
    for section in sections:
        if section.name == ".modinfo":
            lines = [line.decode(errors="replace") for line in section.data.split(b"\0") if b"=" in line]
            return [(key, value) for key, _, value in (line.partition("=") for line in lines)]
    return []
