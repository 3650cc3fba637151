# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tcp` over round trips of 40 and 300 ms that netem makes in virtual time, pair by pair against captures at both ends."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guests import KTRXER, Lab

FILE = """
hosts = ["near", "far"]
routers = ["mid"]
[[links]]
ends = ["near", "mid"]
[[links]]
ends = ["mid", "far"]
"""
CLOCKS_NS = 1_000_000
NEAR_NS = 150_000_000  # a segment that arrives later after a round trip is a retransmission: the server's timer is 200 ms


@dataclass(frozen=True)
class Scenario:
    up: str = ""
    down: str = ""
    delay_ms: int = 20  # in each direction


SCENARIOS = {
    "clean": Scenario(),
    "loss": Scenario("loss 5%", "loss 5%"),
    "reordering": Scenario("reorder 10%", "reorder 10%"),
    "all": Scenario("loss 10% reorder 10%", "loss 10% reorder 10%"),
    "long": Scenario("loss 3%", "loss 3%", 150),
}


@dataclass(frozen=True)
class Found:
    objects: list[dict[str, Any]]
    arrived: dict[str, list[tuple[int, int, int, int]]]  # up and down: time, port of the client, sequence number, length


def segments(path: Path, real_minus_mono: int, up: bool) -> Iterator[tuple[int, int, int, int]]:
    """Segments with data of one direction, from a capture with nanoseconds."""
    data = path.read_bytes()
    assert data[:4] == bytes.fromhex("4d3cb2a1")
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, here, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + here]
        at += 16 + here
        tcp = 14 + 4 * (frame[14] & 15)
        source, destination, sequence = struct.unpack_from("!HHI", frame, tcp)
        length = struct.unpack_from("!H", frame, 16)[0] + 14 - tcp - 4 * (frame[tcp + 12] >> 4)
        if length > 0 and (destination if up else source) == 80:
            yield seconds * 10**9 + nanoseconds - real_minus_mono, source if up else destination, sequence, length


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """All scenarios, one after the other in one guest."""
    folder = tmp_path_factory.mktemp("tcp")
    lab = Lab(folder)
    (lab.folder / "path.toml").write_text(FILE)
    (lab.folder / "large").write_bytes(bytes(20000))
    offset = "import time; a = time.monotonic_ns(); print(time.time_ns() - a)"
    job = [
        f"{sys.executable} -I -S -c '{offset}' >offset",
        "for h in mid far; do for d in $(ip netns exec $h ls /sys/class/net); do ip netns exec $h ethtool -K $d tso off gso off gro off; done; done",
        "until curl -s far/ >/dev/null; do sleep 0.1; done",
    ]
    capture = "tcpdump -q -n -s 80 --immediate-mode --time-stamp-precision nano -Z root -U -w"
    for number, one in enumerate(SCENARIOS.values()):
        job += [
            f"ip netns exec mid tc qdisc replace dev to-far root netem delay {one.delay_ms}ms {one.up} limit 10000",
            f"ip netns exec mid tc qdisc replace dev to-near root netem delay {one.delay_ms}ms {one.down} limit 10000",
            f"ip netns exec mid {capture} near{number} -i to-near -Q out tcp 2>/dev/null & near=$!",  # behind netem; the near host takes them first
            f"ip netns exec far {capture} far{number} -i to-mid -Q in tcp 2>/dev/null & far=$!",
            "sleep 0.2",
            f"{KTRXER} tcp far -4 --path /large --count 60 --interval 250ms --connections 8 --jsonl >{number}.jsonl",
            "sleep 0.2; kill -INT $near $far; wait $near $far",
        ]
    serve = f"far={sys.executable} -m http.server 80 --protocol HTTP/1.1"
    done = lab("run", "./path.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join([*job, "true"]), timeout=230)
    assert done.returncode == 0, done.stdout + done.stderr
    real_minus_mono = int((lab.folder / "offset").read_text())
    return {
        name: Found(
            [json.loads(line) for line in (lab.folder / f"{number}.jsonl").read_text().splitlines()],
            {
                "up": list(segments(lab.folder / f"far{number}", real_minus_mono, True)),
                "down": list(segments(lab.folder / f"near{number}", real_minus_mono, False)),
            },
        )
        for number, name in enumerate(SCENARIOS)
    }


def fate(one: Found, way: str, sample: dict[str, Any], sequences: tuple[int, int], delay_ms: int) -> str:
    # A reordered segment needs no time at all here, and the offset of the clocks is read with two calls.
    limits = sample["sent_ns"] - CLOCKS_NS, sample["sent_ns"] + 2_000_000 * delay_ms + NEAR_NS
    near = [
        (has, i) for i, (at, port, has, _) in enumerate(one.arrived[way]) if port == sample["from_port"] and limits[0] <= at <= limits[1]
    ]
    first, second = ([i for has, i in near if has == wanted % 2**32] for wanted in sequences)
    if not first or not second:
        return ("both_lost" if not second else "first_lost") if not first else "second_lost"
    return "in_order" if first[0] < second[0] else "reordered"


def truth(one: Found, sample: dict[str, Any], delay_ms: int) -> tuple[str, str]:
    end = one.objects[-1]
    sequence, elicited = sample["sequence"], sample["elicited_sequence"]
    up = fate(one, "up", sample, (sequence, sequence + end["payload_bytes"]), delay_ms)
    down = fate(one, "down", sample, (elicited, elicited + end["mss_bytes"]), delay_ms)
    if up == "both_lost":
        down = "unknown"
    elif up == "second_lost":
        down = "first_lost" if down in ("first_lost", "both_lost") else "in_order"
    return up, down


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_pair_is_read_as_the_captures_show_it(found: dict[str, Found], name: str) -> None:
    one = found[name]
    pairs = [sample for sample in one.objects if sample.get("kind") == "tcp_pair"]
    known = [sample for sample in pairs if sample["doubt"] is None]
    # 60 pairs are due, and each of 16 runs had 30 or more. A pair whose segments may be retransmissions has no conclusion: 2 of 48 in one of them.
    assert len(pairs) >= 25 and len(known) >= 0.9 * len(pairs), one.objects[-1]
    wrong = list[Any]()
    for sample in known:
        up, down = truth(one, sample, SCENARIOS[name].delay_ms)
        right = up == sample["up"] or (sample["up"] == "complete" and up in ("in_order", "reordered"))
        if not right or down != sample["down"]:
            wrong.append((up, down, sample["up"], sample["down"], sample["number"]))
    assert not wrong, wrong


def test_the_round_trip_is_that_of_netem(found: dict[str, Found]) -> None:
    rtt, delay_us = found["clean"].objects[-1]["rtt_us"], 2000 * SCENARIOS["clean"].delay_ms
    assert rtt["min"] == pytest.approx(delay_us, abs=50) and rtt["max"] == pytest.approx(delay_us, abs=100)


def test_a_clean_path_is_valid(found: dict[str, Found]) -> None:
    end = found["clean"].objects[-1]
    assert end["verdict"] == "valid" and end["known"] == 60, end["reasons"]


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_shares_are_those_of_netem(found: dict[str, Found], way: str) -> None:
    lost = found["loss"].objects[-1][way]["lost"]
    reordered = found["reordering"].objects[-1][way]["reordered"]
    assert 0 < lost["count"] < 0.15 * lost["of"] and found["reordering"].objects[-1][way]["lost"]["count"] == 0
    assert 0 < reordered["count"] < 0.3 * reordered["of"]
