# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer stamp` and reflectors whose stamps are impossible. Reference: the script of the reflector."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ktrxer_lab import hosts

# Answers as RFC 8762 says; the departure stamp of each EVERYth answer is SHIFT ns after the arrival stamp.
REFLECTOR = """
import socket, struct, sys, time
family, shift, every = getattr(socket, sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
s = socket.socket(family, socket.SOCK_DGRAM); s.bind(("", 8620))
print("ready", flush=True)
def stamp(ns):
    return struct.pack("!II", (ns // 10**9 + 2208988800) % 2**32, (ns % 10**9 << 32) // 10**9)
for number in range(10**9):
    data, peer = s.recvfrom(2000)
    came = time.time_ns()
    left = came + shift if number % every == 0 else time.time_ns()
    s.sendto(data[:4] + stamp(left) + b"\\x80\\x01" + bytes(2) + stamp(came) + data[:14] + bytes(2) + bytes([64]) + bytes(3), peer)
"""

SHIFT_NS = 500_000_000


@contextmanager
def reflector(host: hosts.Netns, family: str, shift_ns: int, every: int) -> Iterator[None]:
    child = host.popen([sys.executable, "-I", "-S", "-c", REFLECTOR, family, str(shift_ns), str(every)])
    try:
        assert child.stdout.readline() == "ready\n"
        yield
    finally:
        child.kill()
        child.communicate()


def stamp(pair: Any, ktrxer: Any, family: str, shift_ns: int, every: int) -> dict[str, Any]:
    a, b = pair
    to = b.address if family == "AF_INET" else b.address6
    with reflector(b, family, shift_ns, every):
        done = a.run([ktrxer, "stamp", to, "-c", "20", "-i", "10ms", "--json"], check=False)
    assert done.stdout, done.stderr
    end: dict[str, Any] = json.loads(done.stdout)
    assert end["received"] == 20, end
    return end


def impossible(end: dict[str, Any]) -> list[tuple[int, int]]:
    return [(one["impossible"], one["received"]) for one in end["reasons"] if one["id"] == "stamps_impossible"]


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
@pytest.mark.parametrize("shift_ns", [-SHIFT_NS, -1_000_000, -100_000])
@pytest.mark.parametrize("every", [1, 4])
def test_a_departure_before_the_arrival_gives_no_delay(shared_pair: Any, ktrxer: Any, family: str, shift_ns: int, every: int) -> None:
    end = stamp(shared_pair, ktrxer, family, shift_ns, every)
    count = len(range(0, 20, every))
    assert impossible(end) == [(count, 20)] and end["impossible_stamps"] == count and end["verdict"] != "valid"
    assert end["dwell_max_ns"] < SHIFT_NS / 2
    trips = end["rtt_us"]
    assert end["untimed"] == count and (trips["max"] is None if every == 1 else trips["max"] < SHIFT_NS / 2000), trips


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_a_dwell_beyond_the_round_trip_gives_no_delay(shared_pair: Any, ktrxer: Any, family: str) -> None:
    end = stamp(shared_pair, ktrxer, family, SHIFT_NS, 4)
    assert end["untimed"] == 5 and end["dwell_max_ns"] < SHIFT_NS / 2, end
    assert end["rtt_us"]["max"] < SHIFT_NS / 2000, "no round trip contains the shift; a busy machine adds less"
    assert end["verdict"] != "valid" and end["reasons"] and not impossible(end)


def test_stamps_of_a_true_reflector_are_possible(shared_pair: Any, ktrxer: Any) -> None:
    assert not impossible(stamp(shared_pair, ktrxer, "AF_INET", 0, 1))
