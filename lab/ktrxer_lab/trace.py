# SPDX-License-Identifier: MIT OR Apache-2.0
"""A link whose rate follows a trace file, like mahimahi's mm-link. This program uses only the standard library.

    trace.py FILE FROM TO packets|bytes LIMIT

It reads the frames that leave through the device FROM and sends them through the device TO. Each line of FILE is a time in milliseconds, an
opportunity to send 1514 bytes: one full frame or several small ones; a larger frame continues at the next opportunity. An opportunity
without a waiting frame is unused. The file repeats from its last time on. Frames above the limit of the queue are dropped (tail drop).
The program prints one line when it is ready, and a line with its counters at SIGUSR1.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

OPPORTUNITY = 1514  # bytes of Ethernet: a packet of 1500 bytes and its header
FILE_LIMIT = 8 << 20
NS_PER_MS = 1_000_000

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR = 263, 15
SO_RCVBUFFORCE = 33
VNET_HEADER = 10  # of struct virtio_net_hdr: keeps the state of a checksum that the sender has not computed
LONGEST = 1 << 17
RECEIVE_BUFFER = 256 << 20  # bytes: so large that only the limit of the trace's queue drops frames


def load(path: Path) -> tuple[int, ...]:
    """The times of a trace, in milliseconds. ValueError with the line of an error."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_LIMIT:
        raise ValueError(f"{path}: larger than {FILE_LIMIT >> 20} MiB")
    times: list[int] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        word = line.strip()
        if not word and number > data.count(b"\n"):
            break  # after the last line
        if not word.isdigit() or len(word) > 10:
            shown = word[:20].decode(errors="replace")
            raise ValueError(f"{path}:{number}: expected a time in whole milliseconds, found {shown!r}")
        times.append(int(word))
        if len(times) > 1 and times[-1] < times[-2]:
            raise ValueError(f"{path}:{number}: {times[-1]} ms is before the line above, {times[-2]} ms")
    if not times or times[-1] == 0:
        raise ValueError(f"{path}: the last time must be above 0 ms: it is the length of the trace")
    return tuple(times)


def opportunities(times: Sequence[int]) -> Iterator[int]:
    """The times of the opportunities, in nanoseconds from the start, without end."""
    for turn in itertools.count():
        for at in times:
            yield (turn * times[-1] + at) * NS_PER_MS


class Link:
    """The queue and the partly sent frame. This class uses no clock and no socket."""

    def __init__(self, times: Sequence[int], unit: str, limit: int) -> None:
        self.coming = opportunities(times)
        self.next_ns = next(self.coming)
        self.in_bytes, self.limit = unit == "bytes", limit
        self.waiting: deque[tuple[bytes, int]] = deque()
        self.held = 0  # packets or bytes in the queue
        self.left = 0  # bytes of the first frame that remain; 0: it has not begun
        self.dropped = 0

    def put(self, frame: bytes, size: int) -> None:
        cost = size if self.in_bytes else 1
        if self.held + cost > self.limit:
            self.dropped += 1
            return
        self.held += cost
        self.waiting.append((frame, size))

    def pass_by(self, now_ns: int) -> None:
        """Discard the opportunities before now, because the queue was empty."""
        while self.next_ns < now_ns:
            self.next_ns = next(self.coming)

    def take(self) -> list[bytes]:
        """Use the next opportunity. Returns the frames that it completes."""
        self.next_ns = next(self.coming)
        done, room = [], OPPORTUNITY
        while room and self.waiting:
            frame, size = self.waiting[0]
            self.left = self.left or size
            sent = min(room, self.left)
            room -= sent
            self.left -= sent
            if self.left == 0:
                self.waiting.popleft()
                self.held -= size if self.in_bytes else 1
                done.append(frame)
        return done


def _socket(device: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    made.setblocking(False)
    made.bind((device, protocol))
    return made


def _receiver(device: str) -> socket.socket:
    made = _socket(device, ETH_P_ALL)
    try:
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:  # in a user namespace: keep the machine's limit
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    return made


def run(times: Sequence[int], source: str, target: str, unit: str, limit: int) -> None:
    link = Link(times, unit, limit)
    receiver, sender = _receiver(source), _socket(target, 0)
    with contextlib.suppress(PermissionError):  # a real-time priority avoids the timer slack of normal processes
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    signal.signal(signal.SIGUSR1, lambda *_: print(f"waiting {len(link.waiting)} dropped {link.dropped}", flush=True))
    print("ready", flush=True)
    start = time.monotonic_ns()
    while True:
        idle = not link.waiting  # then only a new frame must wake the loop
        due = start + link.next_ns
        wait_ns = due - time.monotonic_ns()
        if idle or wait_ns > 0:
            select.select([receiver], [], [], None if idle else wait_ns / 1e9)
        now = time.monotonic_ns()
        if idle:
            link.pass_by(now - start)
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = receiver.recv(LONGEST)
                link.put(frame, len(frame) - VNET_HEADER)
        if not idle and now >= due:
            for frame in link.take():
                with contextlib.suppress(OSError):  # the device is down: the frame is lost
                    sender.send(frame)


def main() -> int:
    file, source, target, unit, limit = sys.argv[1:6]
    try:
        run(load(Path(file)), source, target, unit, int(limit))
    except (OSError, ValueError) as error:
        print(f"the trace from {source} to {target}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
