# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer abw` over links that netem shapes in virtual time, with cross traffic of a known rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from shaped import FRAME, PAYLOADS, measure, truth

pytestmark = pytest.mark.slow

HEADERS = 28  # IPv4 and UDP


@dataclass
class Scenario:
    mbit: int
    load: int = 0  # per cent of the link, by cross traffic up
    options: str = "--direction up"
    netem: str = ""
    then_mbit: int = 0  # the rate of the link 1.5 s after the command has begun

    def cross_kbit(self) -> int:
        """The payload rate at which frames take this share of the link."""
        mean = sum(PAYLOADS) / 2
        return round(self.mbit * 10 * self.load * mean / (mean + HEADERS + FRAME))

    def truth(self) -> float:
        return truth(self.mbit * (100 - self.load) / 100)

    def capacity(self) -> float:
        return truth(self.mbit)


SCENARIOS = {
    "10 idle": Scenario(10, options=""),
    "10 at 30": Scenario(10, 30),
    "10 at 60": Scenario(10, 60),
    "10 at 90": Scenario(10, 90),
    "100 idle": Scenario(100, options=""),
    "1000 idle": Scenario(1000, options=""),
    "max load": Scenario(10, 0, "--direction up --max-load 100k"),
    "loss": Scenario(10, 0, "--direction up", "loss 3%"),
    "changed": Scenario(10, 30, then_mbit=20),
    "groups of 2 ms": Scenario(10, 0, "--direction up", "slot 2ms 2ms"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All scenarios, one after the other in one guest."""
    scenarios = [
        (f"rate {one.mbit}mbit {one.netem}", one.cross_kbit(), f"abw far --token-file token {one.options}") for one in SCENARIOS.values()
    ]
    changes = {number: (1.5, f"rate {one.then_mbit}mbit") for number, one in enumerate(SCENARIOS.values()) if one.then_mbit}
    return dict(zip(SCENARIOS, measure(tmp_path_factory.mktemp("abw"), scenarios, timeout=580, changes=changes), strict=True))


def ranges(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [result[way] for way in ("up", "down") if way in result]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("changed", "groups of 2 ms")])
def test_the_truth_is_in_the_range(found: dict[str, dict[str, Any]], name: str) -> None:
    result, scenario = found[name], SCENARIOS[name]
    for way in ranges(result):
        available = way["available_bit_s"]
        assert available, result["reasons"]
        assert available["low"] <= scenario.truth() <= available["high"], way
        assert available["high"] - available["low"] <= 0.15 * scenario.capacity()
        assert way["capacity_bit_s"] == pytest.approx(scenario.capacity(), rel=0.02)
        if scenario.mbit == 10:  # stamps have steps of 256 ns: at 1 Gbit/s they are 32 bytes
            assert way["overhead_bytes"] == pytest.approx(FRAME, abs=6)
    assert result["verdict"] == "valid", result["reasons"]


def test_both_directions_unless_one_is_asked_for(found: dict[str, dict[str, Any]]) -> None:
    assert "up" in found["10 idle"] and "down" in found["10 idle"]
    assert "up" in found["10 at 30"] and "down" not in found["10 at 30"]


def test_the_load_keeps_its_limit(found: dict[str, dict[str, Any]]) -> None:
    assert found["max load"]["up"]["load_bit_s"] <= 100e3
    assert found["max load"]["up"]["load_share"] <= 0.0105


def test_no_range_where_arrivals_come_in_groups(found: dict[str, dict[str, Any]]) -> None:
    result = found["groups of 2 ms"]
    assert result["up"]["reading"] == "coalesced" and result["up"]["available_bit_s"] is None
    assert result["verdict"] == "invalid" and "coalesced" in result["reasons"][0]["text"]


def test_no_range_where_the_rate_of_the_link_changes(found: dict[str, dict[str, Any]]) -> None:
    up = found["changed"]["up"]
    assert up["reading"] == "changed" and up["available_bit_s"] is None
    assert up["capacity_bit_s"] == pytest.approx(truth(10), rel=0.02) and up["capacity_end_bit_s"] == pytest.approx(truth(20), rel=0.05)
    assert found["changed"]["verdict"] == "invalid" and "changed from" in found["changed"]["reasons"][0]["text"]
