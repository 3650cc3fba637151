# SPDX-License-Identifier: MIT OR Apache-2.0
"""The far end of the system tests, and their own packet code. It shares no code with the programs under test.

    peer.py capture DEVICE              every packet that comes in, with the kernel's stamp; written at SIGTERM, one line each
    peer.py respond DEVICE PROTO        answers echo requests (icmp, icmp6, udp) after a script: see `fate()`
    peer.py refuse DEVICE MS            sends "port unreachable" for each UDP datagram, so many ms later
    peer.py tun NAME                    holds a tun device open and reads nothing
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ME = Path(__file__).resolve()
ETH_P_ALL = 3
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_CSUMNOTREADY, TP_STATUS_VLAN_VALID = 1 << 3, 1 << 4
SO_TIMESTAMPNS = 35  # its message carries the same number


# ----------------------------------------------------------------------------------------------------------------- packets


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Packet:
    at_ns: int
    offloaded: bool  # the sending device has to compute its transport checksum
    vlan: bool
    version: int
    source: str
    destination: str
    ttl: int
    tos: int
    proto: int
    dont_fragment: bool
    identification: int
    header_right: bool
    transport_right: bool
    from_port: int
    to_port: int
    payload: bytes

    @property
    def number(self) -> int:
        return int.from_bytes(self.payload[:8], "big")


def parse(frame: bytes, at_ns: int = 0, offloaded: bool = False, vlan: bool = False) -> Packet | None:
    """UDP and ICMP echo over IPv4 and IPv6; None for all else."""
    kind = int.from_bytes(frame[12:14], "big")
    ip = frame[14:]
    if kind == 0x0800:
        head = 4 * (ip[0] & 15)
        ip = ip[: int.from_bytes(ip[2:4], "big")]
        addresses = [socket.inet_ntop(socket.AF_INET, ip[at : at + 4]) for at in (12, 16)]
        ttl, tos, proto = ip[8], ip[1], ip[9]
        fragment = int.from_bytes(ip[6:8], "big")
        pseudo = ip[12:20] + struct.pack("!BBH", 0, proto, len(ip) - head)
        header_right = checksum(ip[:head]) == 0
        identification, df = int.from_bytes(ip[4:6], "big"), bool(fragment & 0x4000)
    elif kind == 0x86DD:
        head = 40
        ip = ip[: 40 + int.from_bytes(ip[4:6], "big")]
        addresses = [socket.inet_ntop(socket.AF_INET6, ip[at : at + 16]) for at in (8, 24)]
        ttl, tos, proto = ip[7], int.from_bytes(ip[:2], "big") >> 4 & 255, ip[6]
        pseudo = ip[8:40] + struct.pack("!IBBBB", len(ip) - head, 0, 0, 0, proto)
        header_right, identification, df = True, 0, True
    else:
        return None
    l4 = ip[head:]
    if proto == 17:
        stored = int.from_bytes(l4[6:8], "big")
        right = checksum(pseudo + l4) == 0 and stored != 0
        ports = struct.unpack("!HH", l4[:4])
    elif proto in (1, 58) and l4[0] in (0, 8, 128, 129):
        right = checksum((pseudo if proto == 58 else b"") + l4) == 0
        ports = struct.unpack("!HH", l4[4:8])
    else:
        return None
    return Packet(at_ns, offloaded, vlan, ip[0] >> 4, *addresses, ttl, tos, proto, df, identification, header_right, right, *ports, l4[8:])


# ----------------------------------------------------------------------------------------------------------------- capture


def capture(device: str) -> None:
    taker = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    try:
        taker.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    except PermissionError:  # in a user namespace: keep the machine's limit
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    taker.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    taker.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    taker.bind((device, ETH_P_ALL))
    time.sleep(0.05)  # the kernel enables stamps by deferred work
    taken = []
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        taker.setblocking(False)

    signal.signal(signal.SIGTERM, stop)
    taker.settimeout(0.2)
    print("ready", flush=True)
    while True:
        try:
            frame, control, _, address = taker.recvmsg(65600, 256)
        except TimeoutError:
            continue
        except BlockingIOError:
            break
        if address[2] == PACKET_OUTGOING:
            continue
        stamp = status = 0
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                stamp = seconds * 1_000_000_000 + nanoseconds
            elif level == SOL_PACKET and kind == PACKET_AUXDATA:
                (status,) = struct.unpack_from("I", data)
        taken.append((stamp, status, frame))
        if stopping:
            taker.setblocking(False)
    for stamp, status, frame in taken:
        print(stamp, status, frame.hex())


@contextmanager
def capturing(host, seconds: float = 0.1) -> Iterator[list[Packet]]:
    """The UDP and echo packets that arrive at a host's device while the body runs and `seconds` longer; complete afterwards."""
    packets: list[Packet] = []
    taker = host.popen([sys.executable, ME, "capture", host.device])
    assert taker.stdout.readline() == "ready\n", taker.communicate()[1]
    yield packets
    time.sleep(seconds)
    taker.terminate()
    output, errors = taker.communicate(timeout=60)
    assert taker.returncode == 0, errors
    for line in output.splitlines():
        stamp, status, frame = line.split()
        packet = parse(bytes.fromhex(frame), int(stamp), bool(int(status) & TP_STATUS_CSUMNOTREADY), bool(int(status) & TP_STATUS_VLAN_VALID))
        if packet:
            packets.append(packet)


# --------------------------------------------------------------------------------------------------------------- responder


def fate(number: int) -> tuple[bool, bool, bool]:
    """The treatment of the request with this number: (answered, answered twice, answered after the next one)."""
    answered = number % 5 != 4
    return answered, answered and number % 7 == 6, answered and number % 3 == 2


def script(count: int) -> list[int]:
    """The numbers of the answers, in the order in which they leave."""
    order: list[int] = []
    held: list[int] = []
    for number in range(count):
        answered, twice, later = fate(number)
        if not answered:
            continue
        if later:
            held += [number] * (1 + twice)
            continue
        order += [number] * (1 + twice) + held
        held = []
    return order + held


def answer(frame: bytes, proto: str) -> bytes:
    """The answer: addresses swapped, type changed, checksums recomputed."""
    ether = frame[6:12] + frame[:6] + frame[12:14]
    ip = frame[14:]
    if proto == "icmp6" or ip[0] >> 4 == 6:
        head, l4 = 40, bytearray(ip[40:])
        ip_header = ip[:8] + ip[24:40] + ip[8:24]
        pseudo = ip_header[8:40] + struct.pack("!IBBBB", len(l4), 0, 0, 0, ip[6])
    else:
        head = 4 * (ip[0] & 15)
        ip = ip[: int.from_bytes(ip[2:4], "big")]
        l4 = bytearray(ip[head:])
        ip_header = ip[:12] + ip[16:20] + ip[12:16] + ip[20:head]
        pseudo = ip_header[12:20] + struct.pack("!BBH", 0, ip[9], len(l4))
    if proto == "udp":
        l4[0:4] = l4[2:4] + l4[0:2]
        l4[6:8] = b"\0\0"
        l4[6:8] = (checksum(pseudo + l4) or 0xFFFF).to_bytes(2, "big")
    else:
        l4[0] = 129 if proto == "icmp6" else 0
        l4[2:4] = b"\0\0"
        l4[2:4] = checksum((pseudo if proto == "icmp6" else b"") + l4).to_bytes(2, "big")
    return ether + ip_header + bytes(l4)


def respond(device: str, proto: str) -> None:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.bind((device, ETH_P_ALL))
    print("ready", flush=True)
    held: list[bytes] = []
    while True:
        frame, address = wire.recvfrom(65600)
        if address[2] == PACKET_OUTGOING:
            continue
        packet = parse(frame)
        if not packet or packet.proto != {"icmp": 1, "icmp6": 58, "udp": 17}[proto] or (proto == "udp" and packet.to_port != 7):
            continue
        if proto != "udp" and frame[14 + (40 if proto == "icmp6" else 20)] not in (8, 128):
            continue
        answered, twice, later = fate(packet.number)
        if not answered:
            continue
        replies = [answer(frame, proto)] * (1 + twice)
        if later:
            held += replies
            continue
        for reply in replies + held:
            wire.send(reply)
        held = []


def refuse(device: str, delay_ms: str) -> None:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.bind((device, ETH_P_ALL))
    print("ready", flush=True)
    while True:
        frame, address = wire.recvfrom(65600)
        packet = parse(frame) if address[2] != PACKET_OUTGOING else None
        if not packet or packet.version != 4 or packet.proto != 17:
            continue
        time.sleep(int(delay_ms) / 1000)
        message = struct.pack("!BBHI", 3, 3, 0, 0) + frame[14:42]
        message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(message), 0, 0, 64, 1, 0) + frame[30:34] + frame[26:30]
        header = header[:10] + checksum(header).to_bytes(2, "big") + header[12:]
        wire.send(frame[6:12] + frame[:6] + frame[12:14] + header + message)


@contextmanager
def responding(host, proto: str, *more: str) -> Iterator[None]:
    """Only the script answers: the host's own answers are switched off. A UDP port is open, so that the host sends no ICMP error."""
    host.sysctl("ipv4/icmp_echo_ignore_all", 1)
    host.sysctl("ipv6/icmp/echo_ignore_all", 1)
    sink = host.popen([sys.executable, "-c", "import socket,sys; s=socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', 7)); "
                       "print('ready', flush=True); sys.stdin.read()"], stdin=-1)
    assert sink.stdout.readline() == "ready\n"
    words = ["respond", host.device, proto] if not more else ["refuse", host.device, *more]
    child = host.popen([sys.executable, ME, *words])
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    try:
        yield
    finally:
        for one in (child, sink):
            one.kill()
            one.communicate()


@contextmanager
def echoing(host) -> Iterator[None]:
    """A UDP echo service (RFC 862) for both versions."""
    program = ("import socket; s=socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', 7)); print('ready', flush=True)\n"
               "while True:\n data, peer = s.recvfrom(65600); s.sendto(data, peer)\n")
    child = host.popen([sys.executable, "-c", program])
    assert child.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        child.kill()
        child.communicate()


# --------------------------------------------------------------------------------------------------------------------- tun


def tun(name: str) -> None:
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
    print("ready", flush=True)
    sys.stdin.read()


# ------------------------------------------------------------------------------------- deviates of RFC 4656, section 5


def _aes_tables() -> tuple[list[int], list[int]]:
    """The S-box by its definition: inverses in GF(2^8), then an affine map."""
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= (p << 1 & 255) ^ (0x1B if p & 128 else 0)
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 255
        if q & 128:
            q ^= 9
        x = q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4)
        box[p] = (x ^ 0x63) & 255
        if p == 1:
            break
    box[0] = 0x63
    return box, [(x << 1 ^ (0x11B if x & 128 else 0)) for x in range(256)]


def aes128(key: bytes, block: bytes) -> bytes:
    box, double = _aes_tables()
    words = [list(key[i : i + 4]) for i in range(0, 16, 4)]
    rcon = 1
    for i in range(4, 44):
        word = list(words[i - 1])
        if i % 4 == 0:
            word = [box[x] for x in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = double[rcon]
        words.append([a ^ b for a, b in zip(words[i - 4], word, strict=True)])
    keys = [[x for word in words[4 * r : 4 * r + 4] for x in word] for r in range(11)]
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for r in range(1, 11):
        state = [box[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]  # substitute, shift rows
        if r < 10:
            mixed = []
            for c in range(0, 16, 4):
                a = state[c : c + 4]
                mixed += [double[a[i]] ^ double[a[(i + 1) % 4]] ^ a[(i + 1) % 4] ^ a[(i + 2) % 4] ^ a[(i + 3) % 4] for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[r], strict=True)]
    return bytes(state)


def deviates(seed: bytes) -> Iterator[int]:
    """Exponential, mean 1, in 32.32 fixed point."""
    quantiles = [0, 0xB17217F8, 0xEEF193F7, 0xFD271862, 0xFF9D6DD0, 0xFFF4CFD0, 0xFFFEE819, 0xFFFFE7FF, 0xFFFFFE2B, 0xFFFFFFE0,
                 0xFFFFFFFE, 0xFFFFFFFF]
    ln2 = quantiles[1]

    def draws() -> Iterator[int]:
        counter = 0
        while True:
            block = aes128(seed, counter.to_bytes(16, "big"))
            for at in range(0, 16, 4):
                yield int.from_bytes(block[at : at + 4], "big")
            counter += 4  # the counter counts words, not blocks

    source = draws()
    while True:
        u, j = next(source), 0
        while u & 0x80000000 and j < 32:
            u, j = u << 1 & 0xFFFFFFFF, j + 1
        u = u << 1 & 0xFFFFFFFF
        if u < ln2:
            yield j * ln2 + u
            continue
        k = 2
        while u >= quantiles[k]:
            k += 1
        yield j * ln2 + (min(next(source) for _ in range(k)) * ln2 >> 32)


if __name__ == "__main__":
    {"capture": capture, "respond": respond, "refuse": refuse, "tun": tun}[sys.argv[1]](*sys.argv[2:])
