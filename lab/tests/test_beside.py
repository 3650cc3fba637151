# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error bounds beside CPU load: the truth that is read from two captures, and the comparison with it. The runs are those of `make truth-soak`."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from ktrxer_lab.truth.chance import beside

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
US = 1000


def record(at_ns: int, source: bytes, protocol: int, body: bytes) -> bytes:
    data = bytes(12) + b"\x08\x00" + struct.pack("!BBHIBBH", 0x45, 0, 20 + len(body), 0, 64, protocol, 0) + source + B + body
    return struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(data), len(data)) + data


def capture(*records: bytes) -> list[beside.Seen]:
    return list(beside.read(bytes(24) + b"".join(records)))


def echo(at_ns: int, source: bytes, number: int) -> bytes:
    return record(at_ns, source, beside.ICMP, struct.pack("!BBHHH", 8, 0, 0, 7, number))


def stamp(at_ns: int, source: bytes, number: int) -> bytes:
    ports = struct.pack("!HH", 5000, 8620) if source == A else struct.pack("!HH", 8620, 5000)
    own = struct.pack("!I", number if source == A else number + 100)  # a stateful reflector has its own numbers
    return record(at_ns, source, beside.UDP, ports + bytes(4) + own + bytes(20) + struct.pack("!I", number) + bytes(80))


def drawn(command: str) -> beside.Draw:
    return beside.Draw(1, command, None, (), (), 0)


def test_the_truth_of_ping_is_that_of_the_device() -> None:
    near = capture(*(echo(k * 10**6, A, k) for k in range(5)), *(echo(k * 10**6 + (20 + k) * US, B, k) for k in range(4)))
    assert beside.truth(drawn("ping x"), near, [], A) == {"rtt_p50": 22.0, "loss": 20.0}


def test_the_truth_of_stamp_is_without_the_time_in_the_far_host() -> None:
    near = capture(*(stamp(k * 10**6, A, k) for k in range(3)), *(stamp(k * 10**6 + 50 * US, B, k) for k in range(3)))
    far = capture(*(stamp(k * 10**6 + 10 * US, A, k) for k in range(3)), *(stamp(k * 10**6 + 35 * US, B, k) for k in range(3)))
    assert beside.truth(drawn("stamp x"), near, far, A) == {"rtt_p50": 25.0, "loss": 0.0}


def test_the_truth_of_a_flow_are_its_datagrams() -> None:
    sent = [record(k * 10**7, A, beside.UDP, bytes(8 + 1250)) for k in range(101)]
    found = beside.truth(drawn("flow x"), capture(*sent), capture(*sent[:51], *sent[52:]), A)
    assert found["rate_up"] == pytest.approx(0.99) and found["loss"] == pytest.approx(100 / 101)


def test_a_cut_capture_ends_there() -> None:
    whole = bytes(24) + echo(0, A, 1) + echo(1, A, 2)
    assert len(list(beside.read(whole[:-3]))) == 1


@pytest.mark.parametrize(
    ("value", "bound", "outside", "beyond"),
    [(100.0, 1.0, 0, 0), (115.0, 1.0, 1, 0), (115.0, 9.0, 0, 0), (115.0, None, 0, 0), (140.0, 1.0, 1, 1), (140.0, 50.0, 0, 1)],
)
def test_a_figure_is_compared_with_its_bound_and_its_tolerance(value: float, bound: float | None, outside: int, beyond: int) -> None:
    judged = {"figure": "rtt_p50", "unit": "us", "value": 0.0, "bound": bound, "tolerance": 20.0, "cause": "none"}
    samples: list[dict[str, Any]] = [{"kind": "round_trip", "rtt_ns": int(value * US) + 5 * US, "own_queue_ns": 5 * US}] * 3
    found = beside.compare([*samples, {"kind": "lost"}, {"bounds": [judged]}], {"rtt_p50": 100.0})
    assert tuple(map(len, found)) == (outside, beyond)


def test_lost_probes_are_longer_than_all_others() -> None:
    trip = {"kind": "round_trip", "rtt_ns": 1000}
    assert beside.behind_queues([trip, {"kind": "lost"}, {"kind": "lost"}]) == math.inf


def test_draws_are_those_of_their_seeds() -> None:
    draws = [beside.draw(seed) for seed in range(200)]
    assert draws == [beside.draw(seed) for seed in range(200)]
    assert {one.command for one in draws} == set(beside.COMMANDS) and {one.rate_mbps for one in draws} == {None, 10, 50}
    assert any(not one.busy and not one.real_time for one in draws) and any(len(one.busy) > 4 and one.real_time for one in draws)
