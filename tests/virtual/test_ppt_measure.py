# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer ppt measure` over links that netem shapes in virtual time: tbf would pass a probe in one burst."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from guests import KTRXER, Lab

# netem needs no time for check sequence, preamble and inter-frame gap, 24 bytes of each packet: dPPT is this much less than zero.
UNCOUNTED_BITS = 192
STEP_NS = 256  # of the guest's clock

FILE = """
hosts = ["near", "far"]
routers = ["one", "two"]
[[links]]
ends = ["near", "one"]
delay = "2ms"
[[links]]
ends = ["one", "two"]
[[links]]
ends = ["two", "far"]
"""

# near - one - two - far. UP: the end link; DOWN: that of near; MIDDLE: a link before the end link.
UP, DOWN, MIDDLE = ("two", "to-far"), ("one", "to-near"), ("one", "to-two")
PLAIN = "ip netns exec {0} tc qdisc del dev {1} root 2>/dev/null"
SHAPE = "ip netns exec {0} tc qdisc add dev {1} root netem {2} limit 10000"
LATER = "(sleep {3}; ip netns exec {0} tc qdisc change dev {1} root netem {2} limit 10000) &"
CROSS = "{} flow up far --udp --bitrate {} --model poisson --payload 200..1472 --for 30s --token-file token >/dev/null 2>&1 & sleep 0.2"


@dataclass
class Scenario:
    links: dict[tuple[str, str], str]
    options: str = ""
    cross: str = ""
    later: str = ""


SCENARIOS = {
    "10": Scenario({UP: "rate 10mbit", DOWN: "rate 10mbit"}, "--direction both"),
    "100": Scenario({UP: "rate 100mbit", DOWN: "rate 100mbit"}, "--direction both --interval 10ms --size2 600"),
    "1000": Scenario({UP: "rate 1000mbit", DOWN: "rate 1000mbit"}, "--direction both --interval 10ms --size2 1472"),
    "narrow link before the end link": Scenario({MIDDLE: "rate 10mbit", UP: "rate 100mbit"}, "--size2 145"),
    "trailing packets too large": Scenario({MIDDLE: "rate 10mbit", UP: "rate 100mbit"}, "--size1 1000 --size2 1400"),
    "10 half": Scenario({UP: "rate 10mbit"}, "", "5M"),
    "groups of 1 ms": Scenario({UP: "rate 100mbit slot 1ms 1ms"}, "--interval 20ms"),
    "loss": Scenario({UP: "rate 100mbit loss 3%"}, "--interval 20ms"),
    "reordered": Scenario({UP: "rate 100mbit delay 1ms reorder 20%"}, "--interval 10ms --count 30"),
    "changed": Scenario({UP: "rate 100mbit"}, "--interval 40ms", later="rate 80mbit"),  # four seconds
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All scenarios, one after the other in one guest."""
    folder = tmp_path_factory.mktemp("ppt")
    lab = Lab(folder)
    (lab.folder / "ppt.toml").write_text(FILE)
    lab.write_token()
    job = list[str]()
    for number, scenario in enumerate(SCENARIOS.values()):
        job += [PLAIN.format(*link) for link in (UP, DOWN, MIDDLE)]
        job += [SHAPE.format(*link, words) for link, words in scenario.links.items()]
        if scenario.cross:
            job.append(CROSS.format(KTRXER, scenario.cross))
        if scenario.later:
            job.append(LATER.format(*UP, scenario.later, 2))
        job.append(f"{KTRXER} ppt measure far --json --token-file token {scenario.options} >{number}.json")
        if scenario.cross:
            job.append("kill -INT $!; wait $!")
    serve = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./ppt.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join([*job, "true"]), timeout=230)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((lab.folder / f"{number}.json").read_text()) for number, name in enumerate(SCENARIOS)}


@pytest.mark.parametrize("mbit", [10, 100, 1000])
@pytest.mark.parametrize("way", ["up", "down"])
def test_an_idle_link(found: dict[str, dict[str, Any]], mbit: int, way: str) -> None:
    """Within 3 % with 30 probes of each kind, whose gaps differ by many steps of the clock (docs/measurements/2026-11-23-ppt.md)."""
    result = found[str(mbit)]
    assert result[way]["capacity_bit_s"], result["reasons"]
    capacity, delta = result[way]["capacity_bit_s"], result[way]["delta_ns"]
    assert capacity["value"] == pytest.approx(mbit * 1e6, rel=0.03)
    if mbit < 1000:  # its smaller gap is two steps of the guest's clock
        small, large = (train["trailing_wire_bytes"] for train in result[way]["trains"][:2])
        step = STEP_NS / (8000 * (large - small) / mbit)  # as a share of the difference of both gaps
        assert step < 0.025 and capacity["low"] * (1 - step) <= mbit * 1e6 <= capacity["high"] * (1 + step)
    assert delta["low"] - STEP_NS <= -UNCOUNTED_BITS * 1000 / mbit <= delta["high"] + STEP_NS, delta
    assert result["verdict"] == "valid", result["reasons"]
    assert result[way]["paper"]["ppt_note"].startswith("fixed by construction")


@pytest.mark.parametrize("mbit", [10, 100])
def test_the_probes_take_less_than_2_percent_of_the_link(found: dict[str, dict[str, Any]], mbit: int) -> None:
    result = found[str(mbit)]
    assert result["up"]["link_share"] == pytest.approx(result["probe_bit_s"] / mbit / 1e6, rel=0.03) and result["up"]["link_share"] < 0.02


def test_the_end_link_behind_a_slower_one(found: dict[str, dict[str, Any]]) -> None:
    """The heading packet of 1502 bytes is 10.4 times the trailing packet, the end link 10 times as fast."""
    result = found["narrow link before the end link"]
    assert result["up"]["capacity_bit_s"], result["reasons"]
    assert result["up"]["capacity_bit_s"]["value"] == pytest.approx(100e6, rel=0.03)


def test_trailing_packets_that_are_too_large_are_found(found: dict[str, dict[str, Any]]) -> None:
    """Two sizes fit a line, and the narrow link's capacity was printed; the shorter heading packet refutes the line."""
    result = found["trailing packets too large"]
    assert result["up"]["reading"] == "not_covered" and result["up"]["capacity_bit_s"] is None, result["up"]
    assert [one["id"] for one in result["reasons"]] == ["ppt_not_covered"] and result["verdict"] == "invalid"


def test_half_of_the_link_is_taken(found: dict[str, dict[str, Any]]) -> None:
    result = found["10 half"]
    assert result["up"]["capacity_bit_s"], result["reasons"]
    assert result["up"]["capacity_bit_s"]["value"] == pytest.approx(10e6, rel=0.05)


def test_no_answer_where_arrivals_come_in_groups(found: dict[str, dict[str, Any]]) -> None:
    result = found["groups of 1 ms"]
    assert result["up"]["reading"] == "coalesced" and result["up"]["capacity_bit_s"] is None
    assert result["verdict"] == "invalid" and "coalesced" in result["reasons"][0]["text"]


def test_probes_that_lost_a_packet_are_counted_and_left_out(found: dict[str, dict[str, Any]]) -> None:
    result = found["loss"]
    assert "up" in result, result["reasons"]
    assert 1 <= sum(train["lost"] for train in result["up"]["trains"]) <= 30  # 6 % of 120 probes
    for train in result["up"]["trains"]:
        counts = ("lost", "reordered", "one_stamp", "not_back_to_back", "unsent", "usable")
        assert train["probes"] == sum(train[name] for name in counts) == 30
    assert result["up"]["capacity_bit_s"]["value"] == pytest.approx(100e6, rel=0.03)


def test_probes_whose_packets_changed_places_are_counted(found: dict[str, dict[str, Any]]) -> None:
    """netem sends the reordered packets without delay. If both packets of a probe are, the gap is the sender's: the interval shows it."""
    result = found["reordered"]
    up = result["up"]
    assert sum(train["reordered"] for train in up["trains"]) >= 3, up
    capacity = up["capacity_bit_s"]
    if capacity:
        assert capacity["low"] <= 100e6 <= capacity["high"], up
        assert result["verdict"] != "valid" or capacity["value"] == pytest.approx(100e6, rel=0.05), up


def test_a_rate_that_changes_during_the_trains(found: dict[str, dict[str, Any]]) -> None:
    result = found["changed"]
    assert result["up"]["reading"] == "changed" and result["up"]["capacity_bit_s"] is None and result["verdict"] == "invalid"
