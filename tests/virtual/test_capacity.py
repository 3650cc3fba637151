# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer capacity` over links that netem shapes in virtual time: the IP-layer capacity is that of the link within 2 %."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shaped import FRAME, SHAPE, WIRE, WIRE_FILE, after, measure

CAPACITY = "capacity far --token-file token"
pytestmark = pytest.mark.slow

# Mbit/s to options. A search from row 0 takes half a second for each 100 Mbit/s; a million packets take a minute of wall time.
LINKS = {
    10: "--for 6s",
    100: "--for 3s --low-delay 20ms",
    1000: "--for 1s --sample-interval 500ms --row 950 --start-row --low-delay 10ms --high-delay 40ms",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """All links, one after the other in one guest."""
    # A queue of about 60 ms of packets of 1250 bytes.
    scenarios = [(f"rate {mbit}mbit limit {max(20, 6 * mbit)}", 0, f"{CAPACITY} {options}") for mbit, options in LINKS.items()]
    results = measure(tmp_path_factory.mktemp("capacity"), scenarios, 580, "--udpstp-port 24601")
    return dict(zip(LINKS, results, strict=True))


@pytest.mark.parametrize("mbit", LINKS)
@pytest.mark.parametrize("way", ["up", "down"])
def test_the_capacity_is_that_of_the_link(found: dict[int, dict[str, Any]], mbit: int, way: str) -> None:
    result = found[mbit]
    assert result["verdict"] == "valid", result["reasons"]
    maximum = result[way]["maximum"]
    # The largest packets have 1250 bytes; the additional one of a row is smaller, and has more headers in proportion.
    assert mbit * 1e6 * 0.98 * 1250 / (1250 + FRAME) <= maximum["bit_s"] <= mbit * 1e6 * 1250 / (1250 + FRAME) * 1.001
    # The queue was full: the delay variation is that of the queue, the round trip's no more than the sum of both.
    assert maximum["delay_variation"]["max_ns"] >= 10_000_000
    assert (result[way]["sender"]["sent"] if way == "up" else result[way]["datagrams_received"]) >= result[way]["datagrams"]


# Mbit/s to the delays behind the link: packets overtake each other. Of IP packets of 1250 bytes, 50 are on the way out of order.
OVERTAKEN = {100: "20ms 5ms", 60: "20ms 9ms"}


def test_reordering_without_a_loss_is_no_congestion(tmp_path: Path) -> None:
    jobs = [
        (SHAPE.format(f"rate {mbit}mbit limit 200") + "\n" + WIRE.format(f"delay {delay} limit 100000"), f"{CAPACITY} --for 3s --direction down")
        for mbit, delay in OVERTAKEN.items()
    ]
    for mbit, result in zip(OVERTAKEN, after(tmp_path, jobs, 300, "--udpstp-port 24601", WIRE_FILE), strict=True):
        way = result["down"]
        print(f"figure: {mbit}: {way['maximum']['bit_s'] / 1e6:.2f} Mbit/s, {way['reordered']} reordered, {result['reasons']}")
        assert way["reordered"] > 5000
        assert mbit * 1e6 * 0.98 * 1250 / (1250 + FRAME) <= way["maximum"]["bit_s"] <= mbit * 1e6
        assert result["verdict"] == "valid"


TC = "ip netns exec mid tc"
CLEAR = f"for d in to-near to-far; do {TC} qdisc del dev $d root; {TC} qdisc del dev $d ingress; done 2>/dev/null"


def tbf(mbit: int, burst: str) -> str:
    return f"{TC} qdisc add dev to-near root tbf rate {mbit}mbit burst {burst} limit 200k"


def police(mbit: int, burst: str, device: str) -> str:
    rule = f"matchall action police rate {mbit}mbit burst {burst} conform-exceed drop"
    return f"{TC} qdisc add dev {device} handle ffff: ingress; {TC} filter add dev {device} parent ffff: {rule}"


def steps(before: int, seconds: float, after: int) -> str:
    netem = "qdisc {} dev to-near root netem rate {}mbit limit 200"
    return f"{TC} {netem.format('add', before)}; (sleep {seconds}; {TC} {netem.format('change', after)}) &"


# Commands of tc, the direction, and the truth: bytes of the bucket, 0 without one; then the rates of IP packets in Mbit/s, in order.
SHAPED = {
    "tbf of 1 MiB": (tbf(20, "1mb"), "down", 1 << 20, (20,)),
    "policer of 1 MiB": (police(20, "1m", "to-far"), "down", 1 << 20, (20,)),
    "policer of 5 MiB": (police(20, "5m", "to-near"), "up", 5 << 20, (20,)),
    "60 to 20 at 0.8 s": (steps(60, 0.8, 20), "down", 0, (60, 20)),
    "60 to 20 at 4 s": (steps(60, 4, 20), "down", 0, (60, 20)),
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    jobs = [(f"{CLEAR}; {tc}", f"{CAPACITY} --for 6s --direction {way}") for tc, way, _, _ in SHAPED.values()]
    return dict(zip(SHAPED, after(tmp_path_factory.mktemp("shaped"), jobs, 500, "--udpstp-port 24601"), strict=True))


@pytest.mark.parametrize("name", SHAPED)
def test_a_bucket_and_a_change_of_the_rate_are_named(changed: dict[str, dict[str, Any]], name: str) -> None:
    _, direction, bucket, rates = SHAPED[name]
    result = changed[name]
    way = result[direction]
    print(f"figure: {name}: {way.get('shaper')}, {way.get('levels')}")
    assert [one["id"] for one in result["reasons"]] == ["capacity_shaped" if bucket else "capacity_changed"]
    if bucket:
        assert "levels" not in way
        assert 0.98 * bucket <= way["shaper"]["bucket_bytes"] <= 1.02 * bucket
        assert way["shaper"]["sustained_bit_s"] == pytest.approx(rates[0] * 1e6, rel=0.02)
        assert way["shaper"]["line_bit_s"] > 2 * way["shaper"]["sustained_bit_s"]
        assert way["maximum"]["bit_s"] > 1.02 * way["shaper"]["sustained_bit_s"]
    else:
        assert "shaper" not in way
        assert [one["bit_s"] for one in way["levels"]] == pytest.approx([mbit * 1e6 * 1250 / (1250 + FRAME) for mbit in rates], rel=0.02)
        seconds = float(name.split()[-2])
        assert way["levels"][0]["to_ns"] == way["levels"][1]["from_ns"] == pytest.approx(seconds * 1e9, abs=5e8)


def test_a_path_without_a_bucket_or_a_change_has_none(found: dict[int, dict[str, Any]]) -> None:
    for result in found.values():
        for way in ("up", "down"):
            assert "shaper" not in result[way] and "levels" not in result[way]


def test_datagrams_in_a_long_queue_are_not_missing(tmp_path: Path) -> None:
    """1.1 Mbit/s and a queue of 9 s: the last datagrams arrive after the test."""
    (result,) = measure(tmp_path, [("rate 1100kbit limit 1000", 0, f"{CAPACITY} --for 4s --direction up")], 100, "--udpstp-port 24601")
    print(f"figure: {result['up']['sender']['sent']} sent, {result['up']['datagrams']} arrived, {result['reasons']}")
    assert result["up"]["sender"]["sent"] > 1.5 * (result["up"]["datagrams"] + result["up"]["lost"])
    assert result["verdict"] == "valid"
