# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each impairment of a topology, compared with its file, by plain sockets."""

from __future__ import annotations

from typing import Any

import pytest
from flows import Flow, run_flows

FILE = """
hosts = ["plain", "cut", "bursts", "twice", "early", "normal", "policed", "server"]
routers = ["hub"]
[[links]]
ends = ["plain", "hub"]
delay = "10ms"
jitter = "2ms"
[[links]]
ends = ["cut", "hub"]
down = ["1s to 2s", "2.5s to 2.7s"]
[[links]]
ends = ["bursts", "hub"]
from.bursts = { loss = "5%", burst = 4 }
[[links]]
ends = ["twice", "hub"]
from.twice = { duplicate = "10%" }
[[links]]
ends = ["early", "hub"]
from.early = { delay = "10ms", reorder = "10%" }
[[links]]
ends = ["normal", "hub"]
from.normal = { delay = "20ms", jitter = "2ms", distribution = "normal" }
[[links]]
ends = ["policed", "hub"]
from.policed = { police = "2mbit" }
[[links]]
ends = ["hub", "server"]
"""
FLOWS = (
    Flow("cut", 400, 0.01, 100),
    Flow("plain", 2000, 0.02, 100),
    Flow("bursts", 10000, 0.002, 100),
    Flow("twice", 4000, 0.005, 100),
    Flow("early", 4000, 0.005, 100),
    Flow("normal", 3000, 0.02, 100),
    Flow("policed", 5000, 0.001, 1000),
)


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """All flows at once, one from each host, in one guest."""
    return run_flows(tmp_path_factory.mktemp("paths"), FILE, FLOWS).arrived


def test_jitter_is_uniform_without_a_distribution(arrived: dict[str, list[Any]]) -> None:
    delays = [delay / 1e6 for _, delay, *_ in arrived["plain"]]
    assert len(delays) == 2000
    assert 8 <= min(delays) < 8.1 and 11.9 < max(delays) < 12.1
    assert sum(delays) / 2000 == pytest.approx(10, abs=5 * 1.155 / 2000**0.5)


def test_a_link_that_is_down_passes_nothing_and_comes_back(arrived: dict[str, list[Any]]) -> None:
    numbers = [number for number, *_ in arrived["cut"]]
    times = [now / 1e9 for _, _, now, *_ in arrived["cut"]]
    gaps = sorted(((after - before), begin) for before, after, begin in zip(times, times[1:], numbers, strict=False))
    assert [round(gap, 1) for gap, _ in gaps[-2:]] == [0.2, 1.0] and gaps[-3][0] < 0.05
    assert 400 - len(numbers) == pytest.approx(120, abs=4)


def test_losses_come_in_bursts(arrived: dict[str, list[Any]]) -> None:
    came = {number for number, *_ in arrived["bursts"]}
    lost = [number not in came for number in range(10000)]
    bursts = sum(now and not before for before, now in zip([False, *lost], lost, strict=False))
    assert sum(lost) == pytest.approx(500, abs=5 * (500 * 0.95 * 7) ** 0.5)
    assert sum(lost) / bursts == pytest.approx(4, abs=5 * 12**0.5 / 125**0.5)


def test_duplicates(arrived: dict[str, list[Any]]) -> None:
    numbers = [number for number, *_ in arrived["twice"]]
    assert set(numbers) == set(range(4000))
    assert len(numbers) - 4000 == pytest.approx(400, abs=5 * (4000 * 0.1 * 0.9) ** 0.5)


def test_reordered_packets_skip_the_delay(arrived: dict[str, list[Any]]) -> None:
    delays = [delay / 1e6 for _, delay, *_ in arrived["early"]]
    early = [delay for delay in delays if delay < 5]
    assert len(delays) == 4000 and max(early) < 0.1 and all(10 <= delay < 10.1 for delay in delays if delay >= 5)
    assert len(early) == pytest.approx(400, abs=5 * (4000 * 0.1 * 0.9) ** 0.5)
    numbers = [number for number, *_ in arrived["early"]]
    assert any(after < before for before, after in zip(numbers, numbers[1:], strict=False))


def test_jitter_of_a_normal_distribution(arrived: dict[str, list[Any]]) -> None:
    delays = [delay / 1e6 for _, delay, *_ in arrived["normal"]]
    mean = sum(delays) / 3000
    deviation = (sum((delay - mean) ** 2 for delay in delays) / 3000) ** 0.5
    assert len(delays) == 3000 and mean == pytest.approx(20, abs=5 * 2 / 3000**0.5)
    assert deviation == pytest.approx(2, rel=0.1)
    beyond = sum(abs(delay - mean) > deviation for delay in delays) / 3000
    assert beyond == pytest.approx(0.317, abs=0.045), "a uniform distribution has 0.42 of them there"


def test_a_policer_drops_what_exceeds_its_rate_and_delays_nothing(arrived: dict[str, list[Any]]) -> None:
    sizes = 1000 + 28 + 14
    bits = len(arrived["policed"]) * sizes * 8
    assert bits == pytest.approx(2e6 * (5 + 0.05), rel=0.02)
    assert max(delay for _, delay, *_ in arrived["policed"]) < 100_000
