# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rate of a flow is of the time in which its bytes were received, at the end that counts them. Reference: the rate that the sender sets,
which the path carries, and the time at which the path dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shaped import measure

KBIT = 960
FLOW = "flow {} {} --bitrate {}k --for {}s --token-file token --sample-interval 100ms"


def flow(direction: str, kbit: int, seconds: int, *words: str, to: str = "far") -> str:
    return " ".join([FLOW.format(direction, to, kbit, seconds), *words])


def rate(end: dict[str, Any], direction: str) -> float:
    assert f"{direction}_bps" in end, end
    return float(end[f"{direction}_bps"]) / 1e3


@pytest.mark.parametrize(("delay_ms", "protocols"), [(600, ("-u",)), (20, ("-u", ""))])  # TCP begins too slowly for 600 ms
def test_a_long_delay_is_no_part_of_the_time(tmp_path: Path, delay_ms: int, protocols: tuple[str, ...]) -> None:
    flows = [flow(way, KBIT, 4, words, to=to) for way in ("up", "down") for words in protocols for to in ("far", "far-6")]
    scenarios = [(f"delay {delay_ms}ms", 0, words) for words in flows]
    for (_, _, words), end in zip(scenarios, measure(tmp_path, scenarios, 400), strict=True):
        way = words.split()[1]
        print("figure:", words, rate(end, way), end[f"{way}_coverage_percent"], end["flows"][0]["duration_ns"])
        assert rate(end, way) == pytest.approx(KBIT, rel=0.03), words
        assert end[f"{way}_coverage_percent"] == 100.0


@pytest.mark.parametrize("kbit", [8, 64, 500])
def test_a_slow_tcp_flow_is_paced_from_its_first_byte(tmp_path: Path, kbit: int) -> None:
    flows = [flow(way, kbit, seconds, to=to) for way in ("up", "down") for seconds in (2, 6) for to in ("far", "far-6")]
    scenarios = [("delay 2ms", 0, words) for words in flows]
    for (_, _, words), end in zip(scenarios, measure(tmp_path, scenarios, 400), strict=True):
        way = words.split()[1]
        print("figure:", words, rate(end, way), end["verdict"], [one["id"] for one in end["reasons"]])
        assert 0.85 * kbit < rate(end, way) < 1.03 * kbit, words


def test_a_path_that_dies_gives_no_rate_of_a_part_of_the_time(tmp_path: Path) -> None:
    for number, words in enumerate(((), ("-u",))):
        for way in ("up", "down"):
            (end,) = measure(
                tmp_path / f"{number}{way}", [("delay 20ms", 0, flow(way, 10000, 8, *words))], 400, changes={0: (4, "loss 100%")}
            )
            print("figure:", way, words, end[f"{way}_bps"], end[f"{way}_coverage_percent"], end["reasons"])
            covered, mean = end[f"{way}_coverage_percent"], end[f"{way}_bps"]
            assert (mean is None) == (covered < 98)
            assert mean is None or mean < 6e6, "the mean over the time of the load"
            assert end["verdict"] != "valid"


@pytest.mark.parametrize("kbit", [16, 64])
def test_a_queue_that_drains_slowly_loses_nothing(tmp_path: Path, kbit: int) -> None:
    scenarios = [(f"delay 10ms rate {kbit}kbit limit 1000", 0, flow(way, 2 * kbit, 5, "-u", "--payload", "1000")) for way in ("up", "down")]
    for (_, _, words), end in zip(scenarios, measure(tmp_path, scenarios, 400), strict=True):
        way, one = words.split()[1], end["flows"][0]
        print("figure:", words, rate(end, way), one["lost"], one["duration_ns"])
        # The server's messages of the control connection share the queue of the datagrams down: an eighth of 16 kbit/s.
        assert one["lost"] == 0 and rate(end, way) == pytest.approx(kbit * 1000 / 1042, rel=0.15)
