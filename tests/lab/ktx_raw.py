# SPDX-License-Identifier: MIT OR Apache-2.0
"""/dev/ktx without the library: the ring of <linux/ktrxer.h>, also for wrong use."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The kernel that checks each memory access (`make soak-module`, built by the lab) is slow, so times are longer.
SLOW = 20 if "ktrxer@lab" in Path("/proc/version").read_text() else 1
MS = 1_000_000 * SLOW
# The module checks only the number of a command; the struct itself contains its size.
VERSION, FEATURES, SETUP, KICK = 0xE900, 0xE901, 0xE910, 0xE911
AUTO, SOFTIRQ, THREAD, NONE = range(4)
CATCH_UP, SKIP, SHIFT = range(3)
SENT, FAILED, SKIPPED, CANCELLED = range(1, 5)
ANY = 0xFFFFFFFF
NEVER = (1 << 64) - 1
TRAIN, QUEUE = 1, 2
SETUP_FORMAT, KICK_FORMAT, SLOT_FORMAT, REPORT_FORMAT = "=10I3Q8I", "=4IQ", "=QQIIII", "=QQQIIHHiII"
SLOT, REPORT = struct.calcsize(SLOT_FORMAT), struct.calcsize(REPORT_FORMAT)
HEAD, SEEN, COMPENSATION = 128, 132, 136
TAIL, ERROR, MARGIN, GUARD = 256, 260, 264, 268
ETHERTYPE = 0x88B5  # for local experiments (IEEE 802)


@dataclass(frozen=True)
class Report:
    sent_ns: int
    planned_ns: int
    user: int
    call_ns: int
    tries: int
    status: int
    reserved: int
    error: int
    queue: int
    reserved1: int


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def frame(number: int, length: int = 60) -> bytes:
    """An Ethernet frame to an unused address, with its number and a pattern that depends on the number."""
    head = b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + struct.pack(">HI", ETHERTYPE, number)
    return (head + bytes((number + i) & 0xFF for i in range(max(0, length - len(head)))))[:length]


def setup_words(ifindex: int, **given: int) -> list[int]:
    names = ("size", "ifindex", "slots", "frame_size", "timer", "late", "queue", "cpu", "flags", "clock", "late_ns", "retry_ns")
    values = {"size": 96, "ifindex": ifindex, "slots": 64, "frame_size": 1514, "queue": ANY, "cpu": ANY, "clock": time.CLOCK_MONOTONIC, "late_ns": 100_000, "retry_ns": 2_000_000}
    return [{**values, **given}.get(name, 0) for name in names] + [0] * 9


class Ktx:
    """One open file, set up and mapped."""

    def __init__(self, device: str, fd: int | None = None, **given: int) -> None:
        self.fd = os.open("/dev/ktx", os.O_RDWR | os.O_CLOEXEC) if fd is None else fd
        try:
            argument = bytearray(struct.pack(SETUP_FORMAT, *setup_words(socket.if_nametoindex(device), **given)))
            fcntl.ioctl(self.fd, SETUP, argument, True)
            words = struct.unpack(SETUP_FORMAT, argument)
            self.count, self.timer, self.size = words[2], words[4], words[12]
            map_offset, self.slots, self.reports_at, self.frames, self.stride, self.margin_ns, self.softirq_ns, self.thread_ns = words[13:]
            self.map = mmap.mmap(self.fd, self.size, offset=map_offset)
        except BaseException:
            os.close(self.fd)
            raise
        self.head = self.read = 0

    def close(self) -> None:
        self.map.close()
        os.close(self.fd)

    def __enter__(self) -> Ktx:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def word(self, at: int) -> int:
        """Read in one access, as the module writes, because struct.unpack() reads byte by byte."""
        with memoryview(self.map) as whole, whole[at : at + 4] as part, part.cast("I") as words:
            return words[0]

    def put_word(self, at: int, value: int) -> None:
        with memoryview(self.map) as whole, whole[at : at + 4] as part, part.cast("I") as words:
            words[0] = value & ANY

    def put(self, data: bytes, at_ns: int = 0, flags: int = 0, length: int | None = None, user: int = 0, queue: int = 0) -> None:
        index = self.head % self.count
        start = self.frames + index * self.stride
        self.map[start : start + len(data)] = data
        struct.pack_into(SLOT_FORMAT, self.map, self.slots + SLOT * index, at_ns, user, len(data) if length is None else length, flags, queue, 0)
        self.head += 1

    def kick(self, cancel_to: int | None = None) -> int:
        self.put_word(HEAD, self.head)
        argument = bytearray(struct.pack(KICK_FORMAT, 24, cancel_to is not None, (cancel_to or 0) & ANY, 0, 0))
        fcntl.ioctl(self.fd, KICK, argument, True)
        return int(struct.unpack(KICK_FORMAT, argument)[4])

    def send(self, frames: Sequence[bytes], at_ns: Sequence[int] | None = None, flags: int = 0) -> None:
        for i, data in enumerate(frames):
            self.put(data, at_ns[i] if at_ns else 0, flags if i + 1 < len(frames) else 0)
        self.kick()

    def collect(self) -> list[Report]:
        reports = []
        while self.read != self.word(TAIL) + (self.read & ~ANY):
            reports.append(Report(*struct.unpack_from(REPORT_FORMAT, self.map, self.reports_at + REPORT * (self.read % self.count))))
            self.read += 1
        self.put_word(SEEN, self.read)
        return reports

    def reports(self, count: int, limit_s: float = 2.0) -> list[Report]:
        """Wait by poll() for at least so many reports."""
        got: list[Report] = []
        limit_s *= SLOW
        end = now() + int(limit_s * 1e9)
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        while len(got) < count and now() < end:
            if self.timer == NONE:
                self.kick()
            elif any(events & select.POLLERR for _, events in poll.poll(limit_s * 1000)):
                time.sleep(0.001)  # a device error persists; only reports still arrive
            got += self.collect()
        assert len(got) >= count, f"{len(got)} of {count} reports, error {self.word(ERROR)}"
        return got


class Ear:
    """What arrives at a device, with the kernel's stamps."""

    def __init__(self, device: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((device, ETHERTYPE))

    def hear(self, wait_s: float = 0.0) -> list[bytes]:
        time.sleep(wait_s)
        heard = []
        while True:
            try:
                heard.append(self.socket.recv(70000, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return heard
            except OSError as error:  # reported once, after the device was down
                if error.errno != errno.ENETDOWN:
                    raise

    def numbers(self, wait_s: float = 0.0) -> list[int]:
        return [int(struct.unpack_from(">I", data, 14)[0]) for data in self.hear(wait_s)]

    def close(self) -> None:
        self.socket.close()
