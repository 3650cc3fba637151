# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer pair` over links that netem shapes in virtual time: tbf would pass a pair in one burst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from shaped import FRAME, WIRE_FILE, after, measure, truth

pytestmark = pytest.mark.slow


@dataclass
class Scenario:
    netem: str
    options: str = "--count 60"
    cross_kbit: int = 0


SCENARIOS = {
    "10": Scenario("rate 10mbit"),
    "100": Scenario("rate 100mbit"),
    "1000": Scenario("rate 1000mbit"),
    "10 half": Scenario("rate 10mbit", "--count 60 --direction up --interval 40ms", 5000),
    "groups of 1 ms": Scenario("rate 100mbit slot 1ms 1ms", "--count 60"),
    "groups of 300 us": Scenario("rate 10mbit slot 300us 300us"),
    "loss": Scenario("rate 100mbit loss 3%", "--count 60"),
    "loss of 10 %": Scenario("rate 100mbit loss 10%", "--count 60"),
    "reordered": Scenario("rate 100mbit delay 1ms reorder 20%", "--count 60 --direction up"),
    "echo 10": Scenario("rate 10mbit", "--echo --count 60"),
    "echo 100": Scenario("rate 100mbit", "--echo --count 60"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All scenarios, one after the other in one guest."""
    scenarios = list[tuple[str, int, str]]()
    for one in SCENARIOS.values():
        token = "" if "--echo" in one.options else "--token-file token"
        scenarios.append((one.netem, one.cross_kbit, f"pair far {token} {one.options}"))
    return dict(zip(SCENARIOS, measure(tmp_path_factory.mktemp("pairs"), scenarios, timeout=230), strict=True))



@pytest.mark.parametrize("mbit", [10, 100, 1000])
@pytest.mark.parametrize("way", ["up", "down"])
def test_an_idle_link(found: dict[str, dict[str, Any]], mbit: int, way: str) -> None:
    capacity = found[str(mbit)][way]["capacity_bit_s"]
    assert capacity["value"] == pytest.approx(truth(mbit), rel=0.02)
    assert capacity["low"] <= truth(mbit) <= capacity["high"]
    assert found[str(mbit)]["verdict"] == "valid", found[str(mbit)]["reasons"]


def test_half_of_the_link_is_taken(found: dict[str, dict[str, Any]]) -> None:
    """Only slow links, because cross traffic of faster ones takes minutes: for those see tests/unit/test_pairs.c."""
    result = found["10 half"]
    assert result["up"]["capacity_bit_s"], result["reasons"]
    assert result["up"]["capacity_bit_s"]["value"] == pytest.approx(truth(10), rel=0.05)
    assert "down" not in result


def test_the_link_rate_and_what_it_adds_to_a_packet_are_known_from_both_sizes(found: dict[str, dict[str, Any]]) -> None:
    up = found["10"]["up"]
    assert up["link_bit_s"] == pytest.approx(10e6, rel=0.005) and up["overhead_bytes"] == pytest.approx(FRAME, abs=3)


def test_no_answer_where_arrivals_come_in_groups(found: dict[str, dict[str, Any]]) -> None:
    result = found["groups of 1 ms"]
    for way in ("up", "down"):
        assert result[way]["reading"] == "coalesced" and result[way]["capacity_bit_s"] is None
        # netem begins a group with the first packet that waits, so no pair is divided, and the period stays unknown.
        assert "coalescing_ns" not in result[way] and "receives both packets of a pair at once" in " ".join(one["text"] for one in result["reasons"])
    assert result["verdict"] == "invalid" and "coalesced" in result["reasons"][0]["text"]


def test_groups_shorter_than_the_gap_give_the_right_answer_or_none(found: dict[str, dict[str, Any]]) -> None:
    result = found["groups of 300 us"]
    for way in ("up", "down"):
        capacity = result[way]["capacity_bit_s"]
        assert capacity is None or capacity["value"] == pytest.approx(truth(10), rel=0.02), result[way]


def test_pairs_that_lost_a_packet_are_counted_and_left_out(found: dict[str, dict[str, Any]]) -> None:
    result = found["loss"]
    assert "up" in result, result["reasons"]
    sizes = [size for way in ("up", "down") for size in result[way]["sizes"]]
    assert 3 <= sum(size["lost"] for size in sizes) <= 40  # 6 % of 240 pairs
    for way in ("up", "down"):
        for size in result[way]["sizes"]:
            assert size["pairs"] == 60
            assert size["usable"] + size["lost"] + size["reordered"] + size["one_stamp"] + size["not_back_to_back"] + size["unsent"] == 60
        assert result[way]["capacity_bit_s"]["value"] == pytest.approx(truth(100), rel=0.02)


def test_each_session_gives_a_result_where_one_packet_of_ten_is_lost(found: dict[str, dict[str, Any]]) -> None:
    """The control connection loses segments, too."""
    result = found["loss of 10 %"]
    for way in ("up", "down"):
        assert way in result, result["reasons"]
        assert result[way]["capacity_bit_s"], result["reasons"]
        assert result[way]["capacity_bit_s"]["value"] == pytest.approx(truth(100), rel=0.02)


def test_pairs_whose_packets_changed_places_are_counted(found: dict[str, dict[str, Any]]) -> None:
    """netem sends the reordered packets without delay, so they do not measure the path: the result is correct or missing."""
    up = found["reordered"]["up"]
    assert sum(size["reordered"] for size in up["sizes"]) >= 5, up
    assert up["capacity_bit_s"] is None or up["capacity_bit_s"]["value"] == pytest.approx(truth(100), rel=0.02), up


@pytest.mark.parametrize("mbit", [10, 100])
def test_one_sided_by_echo_replies(found: dict[str, dict[str, Any]], mbit: int) -> None:
    result = found[f"echo {mbit}"]
    assert result["one_sided"] and "up" not in result and "down" not in result, result["reasons"]
    capacity = result["round_trip"]["capacity_bit_s"]
    assert capacity, result["reasons"]
    assert capacity["value"] == pytest.approx(truth(mbit), rel=0.02) and capacity["low"] <= truth(mbit) <= capacity["high"]


TC, WIRE_TC = "ip netns exec mid tc", "ip netns exec wire tc"
CLEAR = f"for d in to-near to-wire; do {TC} qdisc del dev $d root; {TC} qdisc del dev $d ingress; done 2>/dev/null; {WIRE_TC} qdisc del dev to-mid root 2>/dev/null"


def tbf(mbit: int, burst: int) -> str:
    return f"{TC} qdisc add dev to-near root tbf rate {mbit}mbit burst {burst} limit 200k"


def police(mbit: int, burst: int) -> str:
    rule = f"matchall action police rate {mbit}mbit burst {burst} conform-exceed drop"
    return f"{TC} qdisc add dev to-wire handle ffff: ingress; {TC} filter add dev to-wire parent ffff: {rule}"


# The line in Mbit/s, the device behind it, and the truth: sustained rate in Mbit/s, bytes of the bucket, 0 without one.
BUCKETS = {
    "tbf behind 100": (100, tbf(20, 32768), 20, 32768),
    "tbf behind 1000": (1000, tbf(20, 32768), 20, 32768),
    "small tbf": (1000, tbf(5, 6000), 5, 6000),
    "policer": (100, police(20, 32768), 20, 32768),
    "slow policer": (1000, police(50, 20000), 50, 20000),
    "cake": (100, f"{TC} qdisc add dev to-near root cake bandwidth 20mbit", 20, 0),
    "fq_codel behind 20": (20, f"{TC} qdisc add dev to-near root fq_codel", 20, 0),
    "short queue": (20, f"{WIRE_TC} qdisc change dev to-mid root netem rate 20mbit limit 12", 20, 0),
}


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    line = f"{WIRE_TC} qdisc add dev to-mid root netem limit 1000 rate"
    jobs = [(f"{CLEAR}; {line} {mbit}mbit; {tc}", "pair far --token-file token --count 60 --direction down") for mbit, tc, _, _ in BUCKETS.values()]
    return dict(zip(BUCKETS, after(tmp_path_factory.mktemp("buckets"), jobs, 230, file=WIRE_FILE), strict=True))


@pytest.mark.parametrize("name", BUCKETS)
def test_a_token_bucket_is_named_with_its_rates(shaped: dict[str, dict[str, Any]], name: str) -> None:
    line, _, sustained, bucket = BUCKETS[name]
    result = shaped[name]
    down = result["down"]
    print(f"figure: {name}: {down['reading']}, {down.get('shaper')}, {down['capacity_bit_s']}")
    if not bucket:
        assert result["verdict"] == "valid" and "shaper" not in down
        assert down["capacity_bit_s"]["value"] == pytest.approx(truth(sustained), rel=0.02)
        return
    assert down["reading"] == "shaped" and [one["id"] for one in result["reasons"]] == ["pair_shaped"]
    assert down["shaper"]["line_bit_s"] == pytest.approx(truth(line), rel=0.03)
    assert down["shaper"]["sustained_bit_s"] == pytest.approx(truth(sustained), rel=0.05)
    assert down["shaper"]["bucket_bytes"] == pytest.approx(bucket, abs=1500)
