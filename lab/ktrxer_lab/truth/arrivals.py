# SPDX-License-Identifier: MIT OR Apache-2.0
"""The packets that arrive at both hosts of a guest, by packet sockets: bytes over time, each byte once, and the number of copies."""

from __future__ import annotations

import mmap
import socket
import struct
import threading
from collections import Counter, defaultdict
from typing import Any

import plain  # type: ignore[import-not-found]

ETH_P_ALL = 3
SOL_PACKET, RX_RING, VERSION, V2 = 263, 5, 10, 1
OUTGOING = 4
FRAME, BLOCK, BLOCKS = 256, 1 << 16, 64  # bytes; 16,384 packets, of which 180 bytes or so are kept
READ_S = 0.05
ROW_NS = 5_000_000
HEAD = struct.Struct("IIIHHII")  # tpacket2_hdr: status, length, kept, offsets of the frame and of its network header, seconds, nanoseconds
TYPE_AT = 32 + 10  # sll_pkttype of the sockaddr_ll behind that header
ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
NEIGHBOURS = (130, 131, 132, 133, 134, 135, 136, 143)  # types of ICMPv6
SYN = 2
LEAST_SHARE = 0.02  # of the bytes of the largest flow; less is signalling


class Flow:
    """One direction of a TCP or UDP flow."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []  # time in ns, bytes of payload without copies, and those of them that a program could read in order
        self.total = 0
        self.first = 0
        self.edge: int | None = None  # of TCP: the sequence number behind the last byte that arrived
        self.holes: list[tuple[int, int]] = []  # below it

    def add(self, at_ns: int, new: int) -> None:
        if not new:
            return
        self.total += new
        row = [at_ns, self.total, self.total if self.edge is None else min((low for low, _ in self.holes), default=self.edge) - self.first]
        if len(self.rows) < 2 or at_ns - self.rows[-2][0] >= ROW_NS:
            self.rows.append(row)
        else:
            self.rows[-1] = row

    def segment(self, sequence: int, length: int) -> int:
        """The bytes of a segment that are new."""
        if self.edge is None:
            self.edge = self.first = sequence
        begin = self.edge + ((sequence - self.edge + (1 << 31)) % (1 << 32)) - (1 << 31)
        end, new, left = begin + length, 0, list[tuple[int, int]]()
        for low, high in self.holes:
            cut = max(low, begin), min(high, end)
            if cut[0] >= cut[1]:
                left.append((low, high))
                continue
            new += cut[1] - cut[0]
            left += [part for part in ((low, cut[0]), (cut[1], high)) if part[0] < part[1]]
        self.holes = left
        if end > self.edge:
            if begin > self.edge:
                self.holes.append((self.edge, begin))
            new += end - max(begin, self.edge)
            self.edge = end
        return new


def together(flows: list[list[list[int]]]) -> list[list[int]]:
    """The rows of all flows as those of one."""
    if len(flows) < 2:
        return flows[0] if flows else []
    steps = list[tuple[int, int, int]]()
    for rows in flows:
        for before, row in zip([[0, 0, 0], *rows], rows, strict=False):
            steps.append((row[0], row[1] - before[1], row[2] - before[2]))
    made, total, read = list[list[int]](), 0, 0
    for at, new, more in sorted(steps):
        total, read = total + new, read + more
        made.append([at, total, read])
    return made


class Arrivals:
    """What arrives at one host."""

    def __init__(self, host: str) -> None:
        with plain.inside(host):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, VERSION, V2)
        self.socket.setsockopt(SOL_PACKET, RX_RING, struct.pack("IIII", BLOCK, BLOCKS, FRAME, BLOCK // FRAME * BLOCKS))
        self.ring = mmap.mmap(self.socket.fileno(), BLOCK * BLOCKS)
        self.at = 0
        self.flows: dict[tuple[int, bytes], Flow] = defaultdict(Flow)
        self.seen: Counter[bytes] = Counter()

    def read(self) -> None:
        while True:
            status, _, kept, mac, net, seconds, nanoseconds = HEAD.unpack_from(self.ring, self.at)
            if not status & 1:
                return
            if self.ring[self.at + TYPE_AT] != OUTGOING:
                self.packet(self.ring[self.at + net : self.at + mac + kept], seconds * 1_000_000_000 + nanoseconds)
            struct.pack_into("I", self.ring, self.at, 0)
            self.at = (self.at + FRAME) % (BLOCK * BLOCKS)

    def packet(self, data: bytes, at_ns: int) -> None:
        if data[0] >> 4 == 4:
            after, addresses = 4 * (data[0] & 15), data[12:20]
            length, protocol = struct.unpack_from("!H", data, 2)[0] - after, data[9]
        elif data[0] >> 4 == 6:
            after, addresses, length, protocol = 40, data[8:40], struct.unpack_from("!H", data, 4)[0], data[6]
        else:
            return
        if protocol == TCP:
            sequence, header = struct.unpack_from("!I", data, after + 4)[0], 4 * (data[after + 12] >> 4)
            sequence += bool(data[after + 13] & SYN)  # it takes one number
            flow = self.flows[TCP, addresses + data[after : after + 4]]
            flow.add(at_ns, flow.segment(sequence, length - header))
        elif protocol in (UDP, ICMP) or (protocol == ICMP6 and data[after] not in NEIGHBOURS):
            content = bytes([protocol]) + data[after + 8 :]  # without the header, which NAT changes
            self.seen[content] += 1
            if protocol == UDP and self.seen[content] == 1:
                self.flows[UDP, addresses + data[after : after + 4]].add(at_ns, length - 8)

    def answer(self) -> dict[str, Any]:
        self.read()
        most = max((flow.total for flow in self.flows.values()), default=0)
        protocol = next((key[0] for key, flow in self.flows.items() if flow.total == most), 0)
        flows = [flow.rows for key, flow in self.flows.items() if key[0] == protocol and flow.total > LEAST_SHARE * most]
        self.ring.close()
        self.socket.close()
        return {"rows": together(flows), "copies": sum(count - 1 for count in self.seen.values())}


class Capture:
    """Both directions: the packets of up arrive at the server."""

    def __init__(self) -> None:
        self.arrivals = {"up": Arrivals("server"), "down": Arrivals("client")}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> dict[str, Any]:
        """The rows of the largest flows of each direction, and the number of packets of UDP and ICMP that arrived again."""
        self.ended.set()
        self.thread.join()
        return {way: one.answer() for way, one in self.arrivals.items()}

    def _run(self) -> None:
        while not self.ended.wait(READ_S):
            for one in self.arrivals.values():
                one.read()
