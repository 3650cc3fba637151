# SPDX-License-Identifier: MIT OR Apache-2.0
"""TCP sockets of this host by sock_diag netlink: TCP_INFO, the name of the congestion control, and the state of BBR.

Layouts are those of <linux/inet_diag.h> and of struct tcp_info in <linux/tcp.h>. A kernel sends as much of tcp_info as it knows.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ktrxer.collect.netlink import NLM_F_DUMP, Netlink
from ktrxer.collect.queue_stats import ATTRIBUTE, attributes

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_BBRINFO = 2, 3, 4, 16
INET_DIAG_REQ_BYTECODE, INET_DIAG_BC_D_COND = 1, 8
# Established, and those that still send: FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING.
STATES = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
SOCKETS_MOST = 1000  # of one sample

REQUEST = struct.Struct("=BBBxI")  # inet_diag_req_v2 before its sockid
SOCKID = struct.Struct("=2s2s16s16sI8s")
MESSAGE = struct.Struct("=BBBB")  # inet_diag_msg before its sockid
MESSAGE_SIZE = MESSAGE.size + SOCKID.size + 20
BYTECODE = struct.Struct("=BBH")
HOST_CONDITION = struct.Struct("=BBxxi")
BBR = struct.Struct("=5I")
NEVER = 0x7FFFFFFF  # of a slow-start threshold: none yet
UNLIMITED = (1 << 64) - 1

# Offset and type of the members of struct tcp_info that are read.
_INFO: dict[str, tuple[int, str]] = {
    "unacked": (24, "I"), "lost": (32, "I"), "rtt_us": (68, "I"), "rttvar_us": (72, "I"), "ssthresh_segments": (76, "I"),
    "cwnd_segments": (80, "I"), "retransmits": (100, "I"), "pacing_rate": (104, "Q"), "bytes_acked": (120, "Q"),
    "bytes_received": (128, "Q"), "min_rtt_us": (148, "I"), "delivery_rate": (160, "Q"), "delivered_ce": (196, "I"),
}  # fmt: skip
BBR_GAIN_ONE = 256


@dataclass(frozen=True)
class Tcp:
    """One socket. `info`: by the columns of the table tcp_info; what the kernel does not give is missing."""

    source: str
    source_port: int
    peer: str
    peer_port: int
    cc: str = ""
    info: dict[str, int] = field(default_factory=dict)
    bbr: dict[str, float] = field(default_factory=dict)
    cookie: bytes = b""


class Sockets:
    def __init__(self) -> None:
        self._netlink = Netlink(NETLINK_SOCK_DIAG)

    def close(self) -> None:
        self._netlink.close()

    def tcp(self, peer: str = "") -> Iterator[Tcp]:
        """The TCP sockets that have a connection. `peer`: only those with this far end, an address or ADDRESS/PREFIX."""
        for family in (socket.AF_INET, socket.AF_INET6):
            condition = _condition(peer)
            if family == socket.AF_INET and ":" in peer:
                continue
            extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1) | 1 << (INET_DIAG_CONG - 1)
            body = REQUEST.pack(family, socket.IPPROTO_TCP, extensions, STATES) + bytes(SOCKID.size) + condition
            for answer, message in self._netlink.ask(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, body):
                if answer == SOCK_DIAG_BY_FAMILY and (found := parse(message)) is not None:
                    yield found


def _condition(peer: str) -> bytes:
    """Bytecode for the kernel: it leaves out the other sockets of a busy host."""
    if not peer:
        return b""
    network = ipaddress.ip_network(peer, strict=False)
    family = socket.AF_INET if network.version == 4 else socket.AF_INET6
    packed = network.network_address.packed
    condition = HOST_CONDITION.pack(family, network.prefixlen, -1) + packed
    size = BYTECODE.size + len(condition)
    code = BYTECODE.pack(INET_DIAG_BC_D_COND, size, size + BYTECODE.size) + condition  # a jump beyond the end: left out
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(code), INET_DIAG_REQ_BYTECODE) + code


def parse(message: memoryview) -> Tcp | None:
    """None for a message that is damaged or of another family."""
    if len(message) < MESSAGE_SIZE:
        return None
    family = MESSAGE.unpack_from(message)[0]
    sport, dport, source, peer, _, cookie = SOCKID.unpack_from(message, MESSAGE.size)
    size = {socket.AF_INET: 4, socket.AF_INET6: 16}.get(family)
    if size is None:
        return None
    values = dict(attributes(message[MESSAGE_SIZE:]))
    none = memoryview(b"")
    cc = bytes(values.get(INET_DIAG_CONG, none)).partition(b"\0")[0].decode("ascii", "replace")[:16]
    ports = int.from_bytes(sport, "big"), int.from_bytes(dport, "big")
    ends = [str(ipaddress.ip_address(raw[:size])) for raw in (source, peer)]
    info, bbr = _info(values.get(INET_DIAG_INFO, none)), _bbr(values.get(INET_DIAG_BBRINFO, none))
    return Tcp(plain_address(ends[0]), ports[0], plain_address(ends[1]), ports[1], cc, info, bbr, cookie)


def plain_address(text: str) -> str:
    """IPv4 addresses of IPv6 sockets without the prefix ::ffff:."""
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if address.version == 6 else None
    return str(mapped or address)


def _info(data: memoryview) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, (at, letter) in _INFO.items():
        if at + struct.calcsize(letter) <= len(data):
            found[name] = struct.unpack_from(f"={letter}", data, at)[0]
    if found.get("ssthresh_segments", 0) >= NEVER:
        del found["ssthresh_segments"]
    for rate in ("pacing_rate", "delivery_rate"):
        value = found.pop(rate, None)
        if value is not None and value < UNLIMITED // 8:
            found[f"{rate}_bps"] = 8 * value
    return found


def _bbr(data: memoryview) -> dict[str, float]:
    if len(data) < BBR.size:
        return {}
    low, high, rtt, pacing, window = BBR.unpack_from(data)
    return {
        "bw": 8.0 * (high << 32 | low), "min_rtt": rtt / 1000, "pacing_gain": pacing / BBR_GAIN_ONE, "cwnd_gain": window / BBR_GAIN_ONE,
    }  # fmt: skip
