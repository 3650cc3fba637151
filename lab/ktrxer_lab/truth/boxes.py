# SPDX-License-Identifier: MIT OR Apache-2.0
"""Middleboxes that the kernel of a guest does not have, as programs in the router next to the client.

    boxes.py reset            answers each TCP segment of the port of the measurement with a reset, to its sender
    boxes.py portal           answers TCP connections that are redirected to it as a captive portal does
    boxes.py echo             sends back UDP datagrams that are redirected to it
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys

PORT, PORTAL, ECHO = 8620, 8999, 8998
DEVICES = ("to-client", "to-right")
ETH_P_ALL, OUTGOING = 3, 4
TCP, RESET, ACK = 6, 4, 16
PAGE = b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\nContent-Length: 0\r\n\r\n"


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def answer(packet: bytes) -> tuple[str, bytes] | None:
    """The sender of a TCP segment, and an IP packet to it that resets its connection; None for other packets."""
    if packet[0] >> 4 == 4:
        after, protocol, source, target = 4 * (packet[0] & 15), packet[9], packet[12:16], packet[16:20]
        length = struct.unpack_from("!H", packet, 2)[0] - after
    elif packet[0] >> 4 == 6:
        after, protocol, source, target = 40, packet[6], packet[8:24], packet[24:40]
        length = struct.unpack_from("!H", packet, 4)[0]
    else:
        return None
    if protocol != TCP:
        return None
    ports, sequence, number, offset, flags = struct.unpack_from("!4sIIBB", packet, after)
    if PORT not in struct.unpack("!HH", ports) or flags & RESET:
        return None
    end = (sequence + length - 4 * (offset >> 4)) % (1 << 32)
    segment = ports[2:] + ports[:2] + struct.pack("!IIBBHHH", number, end, 0x50, RESET | ACK, 0, 0, 0)
    pseudo = target + source + (struct.pack("!BBH", 0, TCP, 20) if len(source) == 4 else struct.pack("!II", 20, TCP))
    segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
    if len(source) == 4:
        return socket.inet_ntop(socket.AF_INET, source), struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, TCP, 0) + target + source + segment
    return socket.inet_ntop(socket.AF_INET6, source), struct.pack("!IHBB", 6 << 28, 20, TCP, 64) + target + source + segment


def reset() -> None:
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    out = {family: socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) for family in (socket.AF_INET, socket.AF_INET6)}
    while True:
        packet, (device, _, kind, *_) = tap.recvfrom(2048)
        if device not in DEVICES or kind == OUTGOING or len(packet) < 40 or (made := answer(packet)) is None:
            continue
        with contextlib.suppress(OSError):
            out[socket.AF_INET6 if ":" in made[0] else socket.AF_INET].sendto(made[1], (made[0], 0))


def portal() -> None:
    listener = socket.create_server(("::", PORTAL), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        connection, _ = listener.accept()
        with contextlib.suppress(OSError), connection:
            connection.recv(2048)
            connection.sendall(PAGE)


def echo() -> None:
    sockets = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sockets.bind(("::", ECHO))
    while True:
        sockets.sendto(*sockets.recvfrom(2048))


if __name__ == "__main__":
    {"reset": reset, "portal": portal, "echo": echo}[sys.argv[1]]()
