# SPDX-License-Identifier: MIT OR Apache-2.0
"""/dev/krx without the library, for tests inside a device: <linux/ktrxer.h> in Python, with packets and rules for tests."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

CAPTURE, DROP, CAPTURE_DROP, FORWARD = 1, 2, 3, 4
INGRESS, PREROUTING = 1, 2
PROMISCUOUS = 1
UP, DOWN, GONE = 0, 1, 2
PAD, TAGGED, RAW_IP, LATE = 1, 2, 4, 8

SETUP = struct.Struct("=10I2I")
RULE = struct.Struct("=BBBBB3xHH16s16s")
RULES = struct.Struct("=IIQII")
STATS = struct.Struct("=IIQQQII")
RING = struct.Struct("=7I")
HEAD_AT, EVENTS_AT = 64, 28
RECORD = struct.Struct("=6IqQHBxI")


_DIRECTION = 29  # bits at which _IOC() puts what is read and written; MIPS has a bit less of size than others, and 3 directions in 3 bits


def _ioctl_number(read: bool, write: bool, number: int, size: int) -> int:
    mips = os.uname().machine.startswith("mips")
    r, w = (2, 4) if mips else (2, 1)
    return ((r if read else 0) | (w if write else 0)) << (_DIRECTION if mips else 30) | size << 16 | 0xE9 << 8 | number


IOC_VERSION = _ioctl_number(True, False, 0x00, 16)
IOC_SETUP = _ioctl_number(True, True, 0x40, SETUP.size)
IOC_RULES = _ioctl_number(True, True, 0x41, RULES.size)
IOC_STATS = _ioctl_number(True, True, 0x42, STATS.size)

libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace: str) -> None:
    """Move this thread to a network namespace."""
    with open(f"/run/netns/{namespace}") as there:
        assert libc.setns(there.fileno(), 0x40000000) == 0, os.strerror(ctypes.get_errno())


@contextlib.contextmanager
def within(namespace: str) -> Iterator[None]:
    """Run the body of this thread in a network namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter(namespace)
        yield
    finally:
        assert libc.setns(home, 0x40000000) == 0
        os.close(home)


# ------------------------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True)
class Rule:
    op: int
    proto: int = 0
    from_: str = ""  # ADDR or ADDR/PREFIX
    to: str = ""
    from_port: int = 0
    to_port: int = 0
    priority: int = 0

    @property
    def version(self) -> int:
        return (6 if ":" in self.from_ + self.to else 4) if self.from_ or self.to else 0

    def side(self, text: str) -> tuple[bytes, int]:
        if not text:
            return b"", 0
        address, _, prefix = text.partition("/")
        raw = socket.inet_pton(socket.AF_INET6 if self.version == 6 else socket.AF_INET, address)
        return raw, int(prefix) if prefix else len(raw) * 8

    def pack(self) -> bytes:
        (from_, from_prefix), (to, to_prefix) = self.side(self.from_), self.side(self.to)
        ports = (socket.htons(port) for port in (self.from_port, self.to_port))
        return RULE.pack(self.op, self.version, self.proto, from_prefix, to_prefix, *ports, from_, to)


@dataclass(frozen=True)
class Record:
    flags: int
    rule: int
    ifindex: int
    length: int
    real_ns: int
    mono_ns: int
    tci: int
    direction: int
    data: bytes
    generation: int = 0


# -------------------------------------------------------------------------------------------------------------------- file


class Krx:
    """An open /dev/krx. Usable in a `with`."""

    def __init__(self, namespace: str | None = None) -> None:
        with within(namespace) if namespace else contextlib.nullcontext():
            self.fd = os.open("/dev/krx", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.map: mmap.mmap | None = None
        self.tail = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.map is not None:
            self.map.close()
            self.map = None
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def setup(self, ifindex: int, hook: int = INGRESS, snap: int = 0, ring: int = 1 << 20, flags: int = 0, map: bool = True) -> Krx:
        answer = bytearray(SETUP.pack(SETUP.size, flags, hook, ifindex, snap, ring, 0, 0, 0, 0, 0, 0))
        fcntl.ioctl(self.fd, IOC_SETUP, answer)
        *_, self.ring, self.map_bytes, self.tail_at, self.data_at, offset = SETUP.unpack(answer)[:10]
        if map:
            self.map = mmap.mmap(self.fd, self.map_bytes, offset=offset)
        return self

    def rules(self, rules: Iterable[Rule]) -> Krx:
        """In the order of the list."""
        return self.rules_packed(b"".join(rule.pack() for rule in rules))

    def rules_packed(self, packed: bytes) -> Krx:
        buffer = ctypes.create_string_buffer(packed, len(packed) + 1)
        fcntl.ioctl(self.fd, IOC_RULES, RULES.pack(RULES.size, len(packed) // RULE.size, ctypes.addressof(buffer), RULE.size, 0))
        return self

    def stats(self, count: int = 0) -> tuple[list[int], int, int, int]:
        """Matched by rule, captured, lost, state."""
        matched = (ctypes.c_uint64 * count)()
        answer = bytearray(STATS.pack(STATS.size, count, ctypes.addressof(matched) if count else 0, 0, 0, 0, 0))
        fcntl.ioctl(self.fd, IOC_STATS, answer)
        _, _, _, captured, lost, state, _ = STATS.unpack(answer)
        return list(matched), captured, lost, state

    def head(self) -> int:
        assert self.map is not None
        return int.from_bytes(self.map[HEAD_AT : HEAD_AT + 4], "little")

    def tail_set(self, tail: int) -> None:
        assert self.map is not None
        self.tail = tail & 0xFFFFFFFF
        self.map[self.tail_at : self.tail_at + 4] = self.tail.to_bytes(4, "little")

    def events(self) -> int:
        """Changes of the device's state, marked as seen."""
        assert self.map is not None
        seen = self.map[EVENTS_AT : EVENTS_AT + 4]
        self.map[self.tail_at + 4 : self.tail_at + 8] = seen
        return int.from_bytes(seen, "little")

    def records(self, most: int = 1 << 30) -> list[Record]:
        assert self.map is not None
        got: list[Record] = []
        head = self.head()
        while self.tail != head and len(got) < most:
            at = self.data_at + (self.tail & (self.ring - 1))
            size, flags = struct.unpack_from("=II", self.map, at)
            assert size and not size % 8, f"record of {size} bytes at {self.tail}"
            if not flags & PAD:
                _, _, rule, ifindex, length, kept, real, mono, tci, direction, generation = RECORD.unpack_from(self.map, at)
                data = self.map[at + RECORD.size : at + RECORD.size + kept]
                got.append(Record(flags, rule, ifindex, length, real, mono, tci, direction, data, generation))
            self.tail_set(self.tail + size)
        return got

    def poll(self, timeout_ms: int = 0, events: int = select.POLLIN) -> int:
        p = select.poll()
        p.register(self.fd, events)
        return dict(p.poll(timeout_ms)).get(self.fd, 0)


# ------------------------------------------------------------------------------------------------------------------- packets


@dataclass
class Link:
    """The two ends of the pair fixture: the rules in `far` apply to packets from `near`."""

    near_mac: bytes = b""
    far_mac: bytes = b""
    far_index: int = 0
    socket: socket.socket | None = field(default=None)

    @staticmethod
    def make() -> Link:
        link = Link()
        with within("near"):
            link.near_mac = mac("wire")
            link.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            link.socket.bind(("wire", 0))
        with within("far"):
            link.far_mac = mac("wire")
            link.far_index = socket.if_nametoindex("wire")
        return link

    def send(self, *frames: bytes) -> None:
        assert self.socket is not None
        for frame in frames:
            self.socket.send(frame)

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()

    def frame(self, payload: bytes = b"x", ports: tuple[int, int] = (1000, 2000), version: int = 4, proto: int = 17, tags: Iterable[tuple[int, int]] = (),
              fragment: int = 0, to: str = "", extensions: bytes = b"", next_header: int | None = None, tcp: bytes = b"", ip_total: int | None = None,
              from_: str = "") -> bytes:
        later = version == 4 and fragment & 0x1FFF
        addresses = (from_ or ("10.9.0.1" if version == 4 else "fd09::1"), to or ("10.9.0.2" if version == 4 else "fd09::2"))
        packed = b"".join(socket.inet_pton(socket.AF_INET if version == 4 else socket.AF_INET6, address) for address in addresses)
        body = payload
        if proto == 17 and not later:
            body = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
            body = body[:6] + checksum(packed + struct.pack("!II", len(body), proto) + body) + body[8:]
        elif tcp:
            body = struct.pack("!HH", *ports) + tcp + payload
            body = body[:16] + checksum(packed + struct.pack("!II", len(body), proto) + body) + body[18:]
        if version == 4:
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body) if ip_total is None else ip_total, 7, fragment, 64, proto, 0) + packed
            ip = ip[:10] + checksum(ip) + ip[12:]
        else:
            first = proto if next_header is None else next_header
            length = len(extensions) + len(body) if ip_total is None else ip_total
            ip = struct.pack("!IHBB", 6 << 28, length, first, 64) + packed + extensions
        head = self.far_mac + self.near_mac + b"".join(struct.pack("!HH", kind, tci) for kind, tci in tags)
        return head + struct.pack("!H", 0x0800 if version == 4 else 0x86DD) + ip + body


def mac(device: str) -> bytes:
    """Devices of this namespace, because /sys may show those of another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return bytes(fcntl.ioctl(sock.fileno(), 0x8927, struct.pack("16s16x", device.encode()))[18:24])


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1])) + (data[-1] << 8 if len(data) & 1 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF or 0xFFFF)


# ------------------------------------------------------------------------------- the same chances as tests/unit/random_packets.h


class Chance:
    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self, below: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return ((self.state >> 33) * below) >> 31

    def proto(self) -> int:
        return (17, 17, 17, 6, 6, 132, 33, 136, 1, 58, 47)[self.next(11)]

    def address(self, version: int) -> bytes:
        if version == 4:
            return bytes((10, 0, self.next(2), self.next(4)))
        return b"\x20\x01\x0d\xb8\0" + bytes((self.next(2),)) + bytes(9) + bytes((self.next(4),))

    def port(self) -> int:
        return 1 + self.next(4) if self.next(8) else 0

    def side(self, version: int) -> str:
        if not self.next(3):
            return ""
        raw = int.from_bytes(self.address(version), "big")
        bits = 32 if version == 4 else 128
        prefix = ((32, 32, 32, 24, 31, 8, 0, 23) if version == 4 else (128, 128, 128, 64, 127, 48, 0, 33))[self.next(8)]
        raw &= ~((1 << (bits - prefix)) - 1)
        return f"{text_of(raw.to_bytes(bits // 8, 'big'))}/{prefix}"

    def rule(self, exactness: int) -> Rule:
        version = 4 if self.next(2) else 6
        rule = Rule(CAPTURE if self.next(3) else FORWARD, priority=self.next(4))
        if self.next(10) < exactness:
            proto = (17, 6, 132, 33, 136)[self.next(5)]
            from_, to = text_of(self.address(version)), text_of(self.address(version))
            return replace(rule, proto=proto, from_=from_, to=to, from_port=1 + self.next(4), to_port=1 + self.next(4))
        rule = replace(rule, from_=self.side(version), to=self.side(version))
        proto = self.proto() if self.next(2) else 0
        if proto == 58 and rule.version == 4:
            proto = 1
        if proto == 1 and rule.version == 6:
            proto = 58
        rule = replace(rule, proto=proto)
        if proto in (0, 17, 6, 132, 33, 136):
            rule = replace(rule, from_port=self.port() if self.next(2) else 0)
            rule = replace(rule, to_port=self.port() if self.next(2) else 0)
        return rule

    def frame(self) -> bytes:
        version = 4 if self.next(2) else 6
        proto = self.proto()
        frame = bytearray(256)
        count = 0 if self.next(3) else self.next(4)
        n = 12
        for _ in range(count):
            struct.pack_into("!H", frame, n, (0x8100, 0x88A8)[self.next(2)])
            struct.pack_into("!H", frame, n + 2, self.next(4096))
            n += 4
        struct.pack_into("!H", frame, n, 0x0800 if version == 4 else 0x86DD)
        if not self.next(20):
            struct.pack_into("!H", frame, n, 0x0806)
        n += 2
        l3 = n
        if version == 4:
            words = 5 if self.next(4) else 3 + self.next(13)
            frame[n] = 0x40 | words
            if not self.next(6):
                struct.pack_into("!H", frame, n + 6, 0x2000 | self.next(2))
            frame[n + 9] = proto
            frame[n + 12 : n + 16] = self.address(4)
            frame[n + 16 : n + 20] = self.address(4)
            n += 20 if words < 5 else words * 4
        else:
            at = n + 6
            count = 0 if self.next(4) else self.next(4)
            frame[n] = 0x60
            frame[n + 8 : n + 24] = self.address(6)
            frame[n + 24 : n + 40] = self.address(6)
            n += 40
            for _ in range(count):
                frame[at] = (0, 43, 44, 51, 60)[self.next(5)]
                at = n
                if frame[at] == 44:
                    struct.pack_into("!H", frame, n + 2, self.next(2) << 3 | self.next(2))
                n += 8
            frame[at] = proto
        struct.pack_into("!H", frame, n, self.port())
        struct.pack_into("!H", frame, n + 2, self.port())
        struct.pack_into("!H", frame, n + 4, 8)
        frame[n + 12] = 0x50
        n += 8 + self.next(20)
        struct.pack_into("!H", frame, l3 + (2 if version == 4 else 4), n - l3 - (0 if version == 4 else 40))
        if not self.next(8):
            struct.pack_into("!H", frame, l3 + (2 if version == 4 else 4), self.next(70))
        if not self.next(8):
            frame[self.next(n)] = self.next(256)
        if not self.next(6):
            n = self.next(n + 1)
        return bytes(frame[:n])


def text_of(raw: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


# ------------------------------------------------------------------------------------------- the linear scan, in words of its own


@dataclass(frozen=True)
class View:
    version: int = 0
    proto: int = 0
    from_: int = 0
    to: int = 0
    ports: tuple[int, int] = (0, 0)  # 0: there are none


def view_of(frame: bytes) -> View:
    """The fields of a packet as in docs/reference/receiving.md."""
    at, tags = 14, 0
    if len(frame) < 14:
        return View()
    kind = int.from_bytes(frame[12:14], "big")
    while kind in (0x8100, 0x88A8) and tags < 2:
        if len(frame) < at + 4:
            return View()
        kind, at, tags = int.from_bytes(frame[at + 2 : at + 4], "big"), at + 4, tags + 1
    packet = frame[at:]
    if kind == 0x0800 and len(packet) >= 20 and packet[0] >> 4 == 4:
        return _view_ipv4(packet)
    if kind == 0x86DD and len(packet) >= 40 and packet[0] >> 4 == 6:
        return _view_ipv6(packet)
    return View()


def _with_ports(view: View, segment: bytes) -> View:
    if view.proto not in (6, 17, 33, 132, 136) or len(segment) < 4:
        return view
    return replace(view, ports=struct.unpack("!HH", segment[:4]))


def _view_ipv4(packet: bytes) -> View:
    header, total, fragment = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[6:8], "big")
    view = View(4, packet[9], int.from_bytes(packet[12:16], "big"), int.from_bytes(packet[16:20], "big"))
    if header < 20 or 0 < total < header or fragment & 0x1FFF:
        return view
    return _with_ports(view, packet[header : total or len(packet)])


def _view_ipv6(packet: bytes) -> View:
    length, proto = int.from_bytes(packet[4:6], "big"), packet[6]
    view = View(6, proto, int.from_bytes(packet[8:24], "big"), int.from_bytes(packet[24:40], "big"))
    rest = packet[40 : 40 + length] if length or proto == 59 else packet[40:]
    for headers in range(17):
        if proto not in (0, 43, 44, 51, 60):
            return _with_ports(replace(view, proto=proto), rest)
        if headers == 16 or len(rest) < 4:
            break
        size = 8 if proto == 44 else (rest[1] + 2) * 4 if proto == 51 else (rest[1] + 1) * 8
        if size > len(rest):
            break
        later = proto == 44 and int.from_bytes(rest[2:4], "big") & 0xFFF8
        proto, rest = rest[0], rest[size:]
        if later:
            break
    return replace(view, proto=proto)


@dataclass(frozen=True)
class Prepared:
    """A rule as numbers."""

    anything: bool
    version: int
    proto: int
    from_: tuple[int, int]  # value, mask
    to: tuple[int, int]
    ports: tuple[int, int]

    @staticmethod
    def of(rule: Rule) -> Prepared:
        bits = 32 if rule.version == 4 else 128

        def numbers(text: str) -> tuple[int, int]:
            raw, prefix = rule.side(text)
            mask = ((1 << prefix) - 1) << (bits - prefix) if raw else 0
            return int.from_bytes(raw, "big") & mask, mask

        nothing = not (rule.version or rule.proto or rule.from_port or rule.to_port)
        return Prepared(nothing, rule.version, rule.proto, numbers(rule.from_), numbers(rule.to), (rule.from_port, rule.to_port))

    def fits(self, v: View) -> bool:
        if self.anything:
            return True
        return (
            v.version != 0
            and self.version in (0, v.version)
            and self.proto in (0, v.proto)
            and self.ports[0] in (0, v.ports[0])
            and self.ports[1] in (0, v.ports[1])
            and v.from_ & self.from_[1] == self.from_[0]
            and v.to & self.to[1] == self.to[0]
        )


def scan(rules: list[Prepared], frame: bytes) -> int:
    view = view_of(frame)
    return next((i for i, rule in enumerate(rules) if rule.fits(view)), -1)


def use_count() -> int:
    line = next(line for line in Path("/proc/modules").read_text().splitlines() if line.startswith("ktrxer "))
    return int(line.split()[2])
