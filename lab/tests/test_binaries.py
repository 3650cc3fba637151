# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reading of ELF files and kernel modules, and patching of the MIPS kernel."""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer_lab import elf, malta, modules
from ktrxer_lab.errors import LabError


def made_elf(sections: dict[str, tuple[int, bytes, int]], wide: bool = False, order: str = "<") -> bytes:
    """An ELF file with these sections: kind, data, link. The table of names comes last."""
    names, offsets = b"\0", {}
    for name in [*sections, ".shstrtab"]:
        offsets[name] = len(names)
        names += name.encode() + b"\0"
    head = 64 if wide else 52
    body, rows = b"", [(0, 0, b"", 0)]
    rows += [(offsets[name], kind, data, link) for name, (kind, data, link) in sections.items()]
    rows.append((offsets[".shstrtab"], 3, names, 0))
    table = b""
    for name, kind, data, link in rows:
        at = head + len(body)
        if wide:
            table += struct.pack(order + "IIQQQQIIQQ", name, kind, 0, 0, at, len(data), link, 0, 1, 0)
        else:
            table += struct.pack(order + "IIIIIIIIII", name, kind, 0, 0, at, len(data), link, 0, 1, 0)
        body += data
    identity = b"\x7fELF" + bytes((2 if wide else 1, 1 if order == "<" else 2, 1)) + bytes(9)
    where, count = head + len(body), len(rows)
    kinds = "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"
    return identity + struct.pack(order + kinds, 1, 8, 1, 0, 0, where, 0, head, 0, 0, 64 if wide else 40, count, count - 1) + body + table


def made_module(**info: str) -> bytes:
    lines = b"".join(f"{key}={value}".encode() + b"\0" for key, value in info.items())
    return made_elf({".modinfo": (1, lines, 0)})


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_needed_libraries_of_any_machine(wide: bool, order: str) -> None:
    strings = b"\0libone.so.1\0libtwo.so\0"
    entry = order + ("qQ" if wide else "iI")
    dynamic = b"".join(struct.pack(entry, tag, value) for tag, value in ((1, 1), (5, 99), (1, 13), (0, 0), (1, 1)))
    data = made_elf({".dynstr": (3, strings, 0), ".dynamic": (6, dynamic, 1)}, wide, order)
    assert elf.is_elf(data)
    assert elf.needed(data) == ["libone.so.1", "libtwo.so"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed (binutils)")
def test_needed_libraries_as_readelf_sees_them() -> None:
    program = Path(sys.executable).resolve()
    message = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True, check=True).stdout
    assert elf.needed(program.read_bytes()) == re.findall(r"\(NEEDED\).*\[(.*)\]", message)


def test_what_is_no_elf_file() -> None:
    assert not elf.is_elf(b"#!/bin/sh\n")
    assert not elf.is_elf(b"")


def test_module_info() -> None:
    data = made_module(license="GPL", depends="a,b", alias="net-pf-17")
    assert elf.module_info(data) == [("license", "GPL"), ("depends", "a,b"), ("alias", "net-pf-17")]
    assert elf.module_info(made_elf({})) == []


def package() -> dict[str, bytes]:
    return {
        "kernel/net/sched/sch-one.ko": made_module(depends="two", alias="qdisc-one"),
        "kernel/lib/two.ko.xz": lzma.compress(made_module(depends="three", softdep="pre: crc32c")),
        "kernel/lib/three.ko": made_module(depends=""),
        "kernel/crypto/crc32c.ko": made_module(depends=""),
        "kernel/drivers/other.ko": made_module(depends="nowhere"),
    }


def test_modules_come_with_what_they_need_and_after_it() -> None:
    chosen = modules.select(package(), ["net/sched/*"])
    names = [module.name for module in chosen]
    assert sorted(names) == ["crc32c", "sch_one", "three", "two"]
    assert names.index("three") < names.index("two") < names.index("sch_one")
    assert names.index("crc32c") < names.index("two")
    assert all(elf.is_elf(module.data) and not module.path.endswith(".xz") for module in chosen)


def test_modprobe_finds_all_that_is_needed() -> None:
    files = modules.index_files(modules.select(package(), ["net/sched/*"]))
    assert "kernel/net/sched/sch-one.ko: kernel/lib/two.ko kernel/lib/three.ko" in files["modules.dep"].splitlines()
    assert files["modules.alias"] == "alias qdisc-one sch_one\n"


def test_modprobe_loads_what_is_needed_twice_before_both() -> None:
    """Modules like those of the bridge, which needs llc and stp, while stp needs llc. modprobe loads the line from its end."""
    there = {
        "kernel/net/bridge.ko": made_module(depends="llc,stp"),
        "kernel/net/stp.ko": made_module(depends="llc"),
        "kernel/net/llc.ko": made_module(depends=""),
    }
    files = modules.index_files(modules.select(there, ["net/bridge*"]))
    assert "kernel/net/bridge.ko: kernel/net/stp.ko kernel/net/llc.ko" in files["modules.dep"].splitlines()


def test_a_module_that_is_not_in_the_package_is_told_by_who_wants_it() -> None:
    with pytest.raises(LabError, match="nowhere, which other needs"):
        modules.select(package(), ["drivers/*"])


# --- the MIPS kernel ---

WORD = malta._word


def kernel(polls: int = 5, divides: int = 1, acknowledges: int = 2) -> bytes:
    """A kernel that consists of the patched places, between words that are not patched."""
    other = WORD(0x12345678)
    poll = WORD(0x2404000A) + WORD(0x7C021420) + b"\xfc\xff\x40\x04" + malta.NOP
    return other * 50 + (poll + other) * polls + (malta.DIVIDE + other * 3) * divides + (malta.ACKNOWLEDGE + other) * acknowledges + other * 50


def packed(inside: bytes, jumps: int = 1) -> bytes:
    jump = WORD(0x3C198040) + WORD(0x37391234) + WORD(0x0320F809)
    return WORD(0) * 8 + jump * jumps + WORD(0) * 8 + lzma.compress(inside, lzma.FORMAT_XZ) + WORD(0) * 8


def test_the_mips_kernel_is_rewritten_in_its_three_places_and_nowhere_else() -> None:
    before = kernel()
    image = malta.prepare(packed(before))
    assert image is not None and elf.is_elf(image)
    entry, = struct.unpack_from("<I", image, 24)
    assert entry == 0x80401234
    kind, offset, address, _, size, memory = struct.unpack_from("<IIIIII", image, 52)
    assert (kind, address, size, memory) == (1, malta.LOAD, len(before), len(before) + malta.BSS)
    after = image[offset:]
    assert len(after) == len(before)
    assert not malta.POLL.search(after)
    assert malta.DIVIDE not in after and malta.ACKNOWLEDGE not in after
    assert after.count(malta.ACKNOWLEDGE_PAST) == 2
    at = before.index(malta.DIVIDE)
    assert after[at : at + 16] == WORD(0x3C0509EF) + WORD(0x34A521AB) + malta.NOP + malta.DIVIDE[12:]  # 0x09ef21ab = 166666667
    changed = [i for i in range(0, len(before), 4) if before[i : i + 4] != after[i : i + 4]]
    assert len(changed) == 5 + 3 + 2 * 2


@pytest.mark.parametrize(
    "image",
    [kernel(polls=4), kernel(polls=6), kernel(divides=0), kernel(divides=2), kernel(acknowledges=1), kernel(acknowledges=3), b"", b"nothing known"],
)
def test_a_kernel_that_looks_otherwise_is_left_alone(image: bytes) -> None:
    assert malta.prepare(packed(image)) is None


def test_a_wrapper_that_looks_otherwise_is_left_alone() -> None:
    assert malta.prepare(packed(kernel(), jumps=0)) is None
    assert malta.prepare(packed(kernel(), jumps=2)) is None
    assert malta.prepare(b"no kernel at all") is None
    whole = packed(kernel())
    assert malta.prepare(whole[: len(whole) // 2]) is None
