# SPDX-License-Identifier: MIT OR Apache-2.0
"""Patches for Debian's MIPS Malta kernel, so that it boots in seconds in the emulator.

Two steps take half a minute of every boot in virtual time. The kernel unpacks itself: this module unpacks it once instead. The kernel
measures its clock by polling the real-time clock for up to two seconds: with the patch the five polling loops end at once, and the division
after them is replaced by its known result (the emulated 24Kc counts once every 6 ns).
A third step reduces accuracy. The kernel tests its count/compare timer by setting compare to the current count. In virtual time the
emulator treats that as a time in the future, so the kernel finds the timer broken and uses the PIT (838 ns steps). With the patch the
kernel sets compare to one count earlier.
Nothing else is changed. A kernel that does not contain exactly these instructions is left unchanged.
"""

from __future__ import annotations

import lzma
import re
import struct

LOAD = 0x80100000  # where arch/mips/boot/compressed unpacks to
BSS = 8 << 20  # room after the image, which the kernel clears
COUNTS_PER_S = 166_666_667
XZ_MAGIC = b"\xfd7zXZ\x00"


def _word(value: int) -> bytes:
    return struct.pack("<I", value)


NOP = _word(0)
# li a0, 10 (in the delay slot of the call that reads the RTC); seb v0, v0; bltz or bgez v0, back; nop
POLL = re.compile(re.escape(_word(0x2404000A) + _word(0x7C021420)) + b"(\\xfc\\xff[\\x40\\x41]\\x04)" + re.escape(NOP), re.S)
# subu v0, v0, s8; divu zero, v0, s0; mflo a1; move v0, a1
DIVIDE = _word(0x005E1023) + _word(0x0050001B) + _word(0x00002812) + _word(0x00A01025)
# mfc0 v1, c0_count; mtc0 v1, c0_compare; ehb. The emulator does not need the barrier, so its place is used for addiu v1, v1, -1.
ACKNOWLEDGE = _word(0x40034800) + _word(0x40835800) + _word(0x000000C0)
ACKNOWLEDGE_PAST = _word(0x40034800) + _word(0x2463FFFF) + _word(0x40835800)
# lui t9, HIGH; ori t9, t9, LOW; jalr t9: the jump into the unpacked kernel
JUMP = re.compile(b"(..)\\x19\\x3c(..)\\x39\\x37" + re.escape(_word(0x0320F809)), re.S)


def prepare(vmlinuz: bytes) -> bytes | None:
    """The kernel as an ELF file that needs no unpacking, or None if its code is not as expected."""
    packed = [match.start() for match in re.finditer(re.escape(XZ_MAGIC), vmlinuz)]
    jumps = JUMP.findall(vmlinuz)
    kernel = next(filter(None, (_unpack(vmlinuz[at:]) for at in packed)), None)
    if kernel is None or len(jumps) != 1:
        return None
    high, low = (int.from_bytes(part, "little") for part in jumps[0])
    patched = _skip_calibration(kernel)
    if patched is None or patched.count(ACKNOWLEDGE) != 2:
        return None
    return _as_elf(patched.replace(ACKNOWLEDGE, ACKNOWLEDGE_PAST), entry=high << 16 | low)


def _unpack(data: bytes) -> bytes | None:
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
    except lzma.LZMAError:
        return None


def _skip_calibration(kernel: bytes) -> bytes | None:
    polls = list(POLL.finditer(kernel))
    divide = kernel.find(DIVIDE)
    if len(polls) != 5 or divide < 0 or kernel.find(DIVIDE, divide + 1) >= 0:
        return None
    if not 0 < divide - polls[-1].end() < 200 or polls[-1].end() - polls[0].start() > 400:
        return None
    new = bytearray(kernel)
    for poll in polls:
        new[poll.start(1) : poll.end(1)] = NOP
    load = _word(0x3C050000 | COUNTS_PER_S >> 16) + _word(0x34A50000 | COUNTS_PER_S & 0xFFFF)  # lui a1; ori a1, a1
    new[divide : divide + 12] = load + NOP
    return bytes(new)


def _as_elf(image: bytes, entry: int) -> bytes:
    offset = 0x1000
    identity = b"\x7fELF" + bytes((1, 1, 1)) + bytes(9)
    header = identity + struct.pack("<HHIIIIIHHHHHH", 2, 8, 1, entry, 52, 0, 0x70001001, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, offset, LOAD, LOAD, len(image), len(image) + BSS, 7, 0x1000)
    return (header + segment).ljust(offset, b"\0") + image
