# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plain UDP sockets in the hosts of a guest: one-way delays, rates and cross traffic through the socket interface only.

One process sends and receives, with the client's clock for both, so a time stamp in a packet gives its one-way delay.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWNET = 0x40000000
FRAME, HEADERS = 1514, 42
HEAD = struct.Struct("!Qq")  # number and time of sending, ns
DRAIN_S = 3.0  # longer than the queue and the delay of any path
PORTS = {"up": 7001, "down": 7002}
ENDS = {"up": ("client", "server"), "down": ("server", "client")}
BUFFER, BUFFER_FORCE = 1 << 22, 33  # SO_RCVBUFFORCE


@contextmanager
def inside(host: str) -> Iterator[None]:
    """Sockets that this thread creates in the body are created in this host."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as here, Path("/run/netns", host).open() as there:
        for target in (there, here):
            if libc.setns(target.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {host}")
            if target is there:
                yield


def pair(sender: str, receiver: str, address: str, port: int) -> tuple[socket.socket, socket.socket]:
    with inside(receiver):
        taking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taking.setsockopt(socket.SOL_SOCKET, BUFFER_FORCE, BUFFER)
        taking.bind(("0.0.0.0", port))
        taking.setblocking(False)
    with inside(sender):
        sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sending.connect((address, port))
    return sending, taking


@dataclass
class Seen:
    """The send times and arrival times of the packets of one direction."""

    sent: list[int] = field(default_factory=list)  # ns
    came: list[tuple[int, int]] = field(default_factory=list)  # number, ns

    def as_json(self) -> dict[str, object]:
        first: dict[int, int] = {}
        for number, at in self.came:
            first.setdefault(number, at)
        delays = [[self.sent[number], at - self.sent[number]] for number, at in sorted(first.items())]
        return {"sent": len(self.sent), "received": len(first), "duplicates": len(self.came) - len(first), "delays": delays}


class Probes:
    """Sends small packets in both directions at exponential intervals, until it is stopped or has sent `count` in each."""

    def __init__(self, addresses: dict[str, str], mean_s: float, count: int | None = None) -> None:
        self.mean_s, self.count = mean_s, count
        self.seen = {name: Seen() for name in PORTS}
        self.sockets = {name: pair(*ENDS[name], addresses[name], port) for name, port in PORTS.items()}
        self.stopped = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> dict[str, object]:
        self.stopped = True
        return self.wait()

    def wait(self) -> dict[str, object]:
        self.thread.join()
        for both in self.sockets.values():
            for one in both:
                one.close()
        return {name: seen.as_json() for name, seen in self.seen.items()}

    def _run(self) -> None:
        random_of = {name: random.Random(port) for name, port in PORTS.items()}
        due = {name: time.monotonic() + generator.expovariate(1 / self.mean_s) for name, generator in random_of.items()}
        by_socket = {taking.fileno(): (name, taking) for name, (_, taking) in self.sockets.items()}
        end: float | None = None
        while True:
            now = time.monotonic()
            for name, at in due.items():
                if at <= now and end is None:
                    seen = self.seen[name]
                    if self.count is None or len(seen.sent) < self.count:
                        seen.sent.append(time.monotonic_ns())
                        self.sockets[name][0].send(HEAD.pack(len(seen.sent) - 1, seen.sent[-1]))
                    due[name] = at + random_of[name].expovariate(1 / self.mean_s)
            done = self.count is not None and all(len(seen.sent) >= self.count for seen in self.seen.values())
            if end is None and (self.stopped or done):
                end = now + DRAIN_S
            if end is not None and now >= end:
                return
            wait = (end - now) if end is not None else max(0.0, min(due.values()) - time.monotonic())
            for ready in select.select(list(by_socket), [], [], wait)[0]:
                name, taking = by_socket[ready]
                while True:
                    try:
                        data = taking.recv(2048)
                    except BlockingIOError:
                        break
                    self.seen[name].came.append((HEAD.unpack_from(data)[0], time.monotonic_ns()))


class Stream:
    """Sends full frames, evenly spaced, at this rate, until it is stopped."""

    def __init__(self, sender: str, receiver: str, address: str, port: int, mbps: float) -> None:
        self.gap_s = FRAME * 8e-6 / mbps
        self.sending, self.taking = pair(sender, receiver, address, port)
        self.stopped = False
        self.arrivals: list[int] = []
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._send, self._take)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join()
        self.sending.close()
        self.taking.close()

    def _send(self) -> None:
        data, due = b"." * (FRAME - HEADERS), time.monotonic()
        while not self.stopped:
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            self.sending.send(data)
            due += self.gap_s

    def _take(self) -> None:
        while not self.stopped:
            if select.select([self.taking], [], [], 0.2)[0]:
                while True:
                    try:
                        self.taking.recv(2048)
                    except BlockingIOError:
                        break
                    self.arrivals.append(time.monotonic_ns())

    def rate_mbps(self, from_ns: int, to_ns: int) -> float:
        """The rate of full frames that arrived between the two times, from the first to the last of them."""
        times = [at for at in self.arrivals if from_ns <= at < to_ns]
        return (len(times) - 1) * FRAME * 8e3 / (times[-1] - times[0]) if len(times) > 1 else 0.0


def capacity_mbps(sender: str, receiver: str, address: str, mbps: float, seconds: float = 1.5) -> float:
    """The received rate of a stream that exceeds the path's rate."""
    begun = time.monotonic_ns()
    stream = Stream(sender, receiver, address, 7003, 1.3 * mbps)
    time.sleep(seconds)
    now = time.monotonic_ns()
    stream.stopped = True
    rate = stream.rate_mbps(begun + int(seconds * 4e8), now)
    stream.stop()
    time.sleep(1.0)  # let the queue empty
    return rate


def hosts_file() -> dict[str, str]:
    """Names and IPv4 addresses of the guest's hosts."""
    found: dict[str, str] = {}
    for place in ("/etc/hosts", os.environ.get("KTRXER_LAB_HOSTS", "/etc/hosts")):
        with Path(place).open() as file:
            for line in file:
                words = line.split()
                if len(words) > 1 and "." in words[0] and not words[0].startswith("#"):
                    found |= dict.fromkeys(words[1:], words[0])
    return found
