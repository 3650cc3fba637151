# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bridge in user space that loses and reorders TCP segments with data, and prints a JSON line for each of its actions.

    middlebox.py DEVICE_NEAR DEVICE_FAR SEED LOSS_UP LOSS_DOWN REORDER_UP REORDER_DOWN

A reordered segment waits for the next one of its connection and direction, 3 ms at most. The line of a segment has the time from its arrival
in the kernel until this program had sent it: a busy machine may keep both waiting.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass

ETH_P_ALL, OUTGOING, SOL_PACKET, ADD_MEMBERSHIP, PROMISCUOUS, TIMESTAMPNS = 3, 4, 263, 1, 1, 35
HOLD_S = 0.003


@dataclass
class Segment:
    port: int  # of the client
    sequence: int
    length: int


@dataclass
class Held:
    frame: bytes
    segment: Segment
    arrived_ns: int
    until: float


def segment_of(frame: bytes, up: bool) -> Segment | None:
    """A TCP segment with data over IPv4 or IPv6 without extension headers."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800 and frame[23] == socket.IPPROTO_TCP:
        at = 14 + 4 * (frame[14] & 15)
        end = 14 + struct.unpack_from("!H", frame, 16)[0]
    elif kind == 0x86DD and frame[20] == socket.IPPROTO_TCP:
        at = 54
        end = at + struct.unpack_from("!H", frame, 18)[0]
    else:
        return None
    source, destination, sequence = struct.unpack_from("!HHI", frame, at)
    length = end - at - 4 * (frame[at + 12] >> 4)
    return Segment(source if up else destination, sequence, length) if length > 0 else None


def port_of(device: str) -> socket.socket:
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    one.bind((device, ETH_P_ALL))
    one.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 1)
    one.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("iHH8s", socket.if_nametoindex(device), PROMISCUOUS, 0, b""))
    return one


def received(port: socket.socket) -> tuple[bytes, int, int]:
    """A frame, its packet type, and when the kernel had it (CLOCK_REALTIME)."""
    frame, ancillary, _, where = port.recvmsg(65535, 100)
    seconds, ns = next(struct.unpack_from("@ll", data) for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPNS))
    return frame, where[2], seconds * 1_000_000_000 + ns


def main(near: str, far: str, seed: str, *shares: str) -> None:
    ports = {"up": port_of(near), "down": port_of(far)}  # by direction of the arriving packets
    to = {"up": ports["down"], "down": ports["up"]}
    loss = {"up": float(shares[0]), "down": float(shares[1])}
    reorder = {"up": float(shares[2]), "down": float(shares[3])}
    dice = random.Random(int(seed))
    # Use one processor, because frames from two processors may be reordered behind the device.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    held: dict[tuple[str, int], Held] = {}
    order = 0

    def note(way: str, segment: Segment, place: int | None, waited_ns: int) -> None:
        line = {"way": way, "port": segment.port, "sequence": segment.sequence, "order": place, "waited_ns": waited_ns}
        print(json.dumps(line), flush=True)

    def forward(way: str, frame: bytes, segment: Segment, arrived_ns: int) -> None:
        nonlocal order
        order += 1
        to[way].send(frame)
        note(way, segment, order, time.time_ns() - arrived_ns)

    print("ready", flush=True)
    while True:
        wait = min((one.until for one in held.values()), default=None)
        ready, _, _ = select.select(list(ports.values()), [], [], None if wait is None else max(0, wait - time.monotonic()))
        for key in [key for key, one in held.items() if one.until <= time.monotonic()]:
            one = held.pop(key)
            forward(key[0], one.frame, one.segment, one.arrived_ns)
        for way, port in ports.items():
            if port not in ready:
                continue
            frame, kind, arrived_ns = received(port)
            if kind == OUTGOING:
                continue
            segment = segment_of(frame, way == "up")
            if segment is None:
                to[way].send(frame)
                continue
            key = way, segment.port
            if dice.random() < loss[way]:
                note(way, segment, None, 0)
            elif key not in held and dice.random() < reorder[way]:
                held[key] = Held(frame, segment, arrived_ns, time.monotonic() + HOLD_S)
            else:
                forward(way, frame, segment, arrived_ns)
                if key in held:
                    one = held.pop(key)
                    forward(way, one.frame, one.segment, one.arrived_ns)


if __name__ == "__main__":
    main(*sys.argv[1:])
