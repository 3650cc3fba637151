# SPDX-License-Identifier: MIT OR Apache-2.0
"""A job for the devices whose figures depend on timers, the scheduler and the network stack. Prints nanoseconds as JSON."""

from __future__ import annotations

import json
import random
import socket
import time


def lateness_of_sleeps(interval_ns: int, count: int) -> list[int]:
    late = []
    for _ in range(count):
        deadline = time.monotonic_ns() + interval_ns
        time.sleep(interval_ns / 1e9)
        late.append(time.monotonic_ns() - deadline)
    return late


def round_trips(count: int) -> list[int]:
    near, far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind(("127.0.0.1", 0))
    near.connect(far.getsockname())
    dice = random.Random(1)
    times = []
    for _ in range(count):
        time.sleep(dice.random() / 1000)
        start = time.monotonic_ns()
        near.send(b"x" * 100)
        _, peer = far.recvfrom(200)
        far.sendto(b"y" * 100, peer)
        near.recv(200)
        times.append(time.monotonic_ns() - start)
    return times


print(
    json.dumps(
        {
            "late_100us": lateness_of_sleeps(100_000, 101),
            "late_10ms": lateness_of_sleeps(10_000_000, 101),
            "round_trip": round_trips(101),
        }
    )
)
