# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of compound probes with known properties: gaps in CSV, and captures."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path

HEADING, PORT = 1502, 9000


def gap_ns(rate: float, delta_ns: float, wire_bytes: int) -> float:
    """The gap on a link of this rate: transmission time, inter-frame gap and dPPT."""
    return (8 * wire_bytes + 96) * 1e9 / rate + delta_ns


def gaps(rate: float, delta_ns: float, sizes: tuple[int, int], count: int, noise_ns: float, seed: int = 1) -> list[tuple[int, int]]:
    dice = random.Random(seed)
    return [(size, round(gap_ns(rate, delta_ns, size) + dice.gauss(0, noise_ns))) for _ in range(count) for size in sizes]


def csv(path: Path, rows: Iterable[tuple[int, int]], unit: str = "ns") -> Path:
    path.write_text(f"wire_bytes,gap_{unit}\n" + "".join(f"{size},{gap}\n" for size, gap in rows))
    return path


def frame(wire_bytes: int, port: int = PORT) -> bytes:
    """Ethernet, IPv4 and UDP without the check sequence: 12 bytes less than on the wire."""
    length = wire_bytes - 12
    udp = struct.pack("!HHHH", 40000, port, length - 34, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length - 14, 0, 0, 64, 17, 0, bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
    return (bytes(12) + b"\x08\x00" + ip + udp).ljust(length, b"\0")


def pcap(path: Path, packets: Iterable[tuple[int, bytes]], snap: int = 65535) -> Path:
    """Time in ns, and frame; a file with nanoseconds."""
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, 1)
    for at, whole in packets:
        kept = whole[:snap]
        data += struct.pack("<IIII", at // 10**9, at % 10**9, len(kept), len(whole)) + kept
    path.write_bytes(data)
    return path


def probes(rows: Iterable[tuple[int, int]], interval_ns: int = 10_000_000) -> list[tuple[int, bytes]]:
    """The packets of the probes with these trailing sizes and gaps."""
    made = []
    for number, (size, gap) in enumerate(rows):
        at = 1_700_000_000 * 10**9 + number * interval_ns
        made += [(at, frame(HEADING)), (at + gap, frame(size))]
    return made
