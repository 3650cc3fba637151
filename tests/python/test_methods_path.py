# SPDX-License-Identifier: MIT OR Apache-2.0
"""The estimators of `ktrxer trace --load`, `capacity` and `tcp` from Python: known values, and input that is none."""

from __future__ import annotations

import re
from math import comb
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from built_estimators import built
from ktrxer.statistics import Answer, CapacityInterval, TcpPair, hop_queues, ip_capacity, tcp_losses, tcp_pair, tcp_pairs

ROOT = Path(__file__).resolve().parents[2]
Times = npt.NDArray[np.int64]
__all__ = ["built"]  # a fixture of all tests here
MS, S = 1_000_000, 1_000_000_000


# ------------------------------------------------------------------------------------------------------------- queues


def path(fills: int, hops: int = 5, count: int = 82) -> tuple[Times, Times]:
    """Round trips of `hops` hops, 1 ms each; the queue before hop `fills` (from 1) adds 20 to 60 ms. 0: none does."""
    random = np.random.default_rng(fills)
    idle, loaded = (np.arange(1, hops + 1)[:, None] * MS + random.integers(0, 50_000, (hops, count)) for _ in range(2))
    if fills:
        loaded[fills - 1 :] += 20 * MS + np.arange(count) % 41 * MS
    return idle, loaded


@pytest.mark.parametrize("fills", [1, 2, 5])
def test_the_queue_that_fills(fills: int) -> None:
    idle, loaded = path(fills)
    found = hop_queues(idle, loaded)
    assert found.fullest == fills and len(found.hops) == 6
    assert [hop.fills for hop in found.hops] == [number == fills for number in range(6)]
    hop = found.hops[fills]
    assert hop.after == fills - 1 and hop.queue_ns == pytest.approx(40 * MS, abs=2 * MS)
    assert hop.idle_ns == pytest.approx(median(idle[fills - 1]), abs=1) and hop.loaded_ns == pytest.approx(median(loaded[fills - 1]), abs=1)


def test_no_queue_and_the_own_queue() -> None:
    idle, loaded = path(0)
    assert hop_queues(idle, loaded).fullest is None
    own = np.zeros(82, np.int64), np.full(82, 30 * MS)
    found = hop_queues(idle, loaded + 30 * MS, own)
    assert found.fullest == 0 and found.hops[0].queue_ns == 30 * MS and not found.hops[1].fills


def test_the_uncertainty_is_that_of_order_statistics() -> None:
    """The widest interval of ranks k to n + 1 - k around a median that misses it with 1 % at most, by the binomial distribution."""
    random = np.random.default_rng(5)
    idle, loaded = random.integers(MS, 2 * MS, (1, 60)), random.integers(3 * MS, 4 * MS, (1, 60))

    def uncertainty(values: list[int]) -> float:
        ranked = sorted(values)
        left = max(k for k in range(1, 31) if 2 * sum(comb(60, below) for below in range(k)) / 2**60 <= 0.01)
        middle = (ranked[29] + ranked[30]) // 2
        return max(middle - ranked[left - 1], ranked[60 - left] - middle)

    expected = (uncertainty(idle[0].tolist()) ** 2 + uncertainty(loaded[0].tolist()) ** 2) ** 0.5
    assert hop_queues(idle, loaded).hops[1].added_uncertainty_ns == pytest.approx(expected, abs=1)


def test_hops_without_answers_have_no_figures() -> None:
    idle, loaded = path(3)
    loaded[1, 7:] = -1  # eight answers are the least
    found = hop_queues(idle, loaded)
    assert found.hops[2].loaded_answers == 7 and found.hops[2].idle_ns is None and not found.hops[2].fills
    assert found.fullest == 3 and found.hops[3].after == 1
    assert hop_queues(idle[:, :7], loaded[:, :7]).fullest is None


@pytest.mark.parametrize(
    ("idle", "loaded", "cause"),
    [
        ([], [], "one for each hop"),
        (np.ones((2, 9)), np.ones((2, 9)), "integer nanoseconds"),
        (np.ones((2, 9), np.int64), np.ones((3, 9), np.int64), "2 hops without the load, 3 with it"),
    ],
)
def test_round_trips_that_are_none(idle: Any, loaded: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        hop_queues(idle, loaded)


def test_own_delays_of_another_count() -> None:
    idle, loaded = path(1)
    with pytest.raises(ValueError, match="82 repetitions of the hops"):
        hop_queues(idle, loaded, ([0], [0]))


def test_many_hops_fit() -> None:
    idle, loaded = path(100, hops=255, count=20)
    assert hop_queues(idle, loaded).fullest == 100


# ----------------------------------------------------------------------------------------------------------- capacity


def interval(mbit: int, lost: int = 0, lasts_ns: int = S, variation_ns: int | None = 40 * MS) -> CapacityInterval:
    return CapacityInterval(99 * max(lost, 1), mbit * lasts_ns // 8000, lasts_ns, lost, variation_min_ns=MS, variation_max_ns=variation_ns)


def test_the_maximum_of_the_sub_intervals() -> None:
    found = ip_capacity([interval(10), interval(95, 3), interval(93), interval(94)])
    assert (found.maximum.at, found.maximum.bit_s, found.maximum.loss) == (1, 95e6, pytest.approx(0.01))
    assert found.mean_bit_s == pytest.approx(73e6) and found.lost == 3 and found.mean_loss == pytest.approx(3 / (99 * 6 + 3))
    assert found.variation_max_ns == 40 * MS and found.rtt_min_ns is None and not found.modes and not found.rising and not found.unfilled


def test_two_modes() -> None:
    found = ip_capacity([interval(200), interval(190), interval(50), interval(60)], first_mode=2)
    assert [(mode.first, mode.at, mode.bit_s) for mode in found.modes] == [(0, 0, 200e6), (2, 3, 60e6)]


def test_a_late_sub_interval_counts_with_the_next_one() -> None:
    """20 Mbit/s for 2.4 s: the receiver stood still at the end of the second one, and counted in the third one what came meanwhile."""
    late = [interval(20), interval(15, lasts_ns=S + S // 5), interval(30, lasts_ns=S * 4 // 5), interval(20)]
    found = ip_capacity(late)
    assert found.late == 1 and found.maximum.bit_s == pytest.approx(21e6)
    assert ip_capacity(late, late_ns=2 * S).maximum.bit_s == pytest.approx(30e6)


def test_doubts() -> None:
    assert ip_capacity([interval(10, 1), interval(20), interval(30)]).rising
    assert ip_capacity([interval(30, variation_ns=5 * MS)]).unfilled
    assert not ip_capacity([interval(30, variation_ns=5 * MS)], low_ns=2 * MS).unfilled
    assert not ip_capacity([interval(30, variation_ns=None)]).unfilled


@pytest.mark.parametrize("intervals", [[], [CapacityInterval(1, 1, 0)], [CapacityInterval(-1, 1, S)], [CapacityInterval(1, 1 << 64, S)]])
def test_sub_intervals_that_are_none(intervals: list[CapacityInterval]) -> None:
    with pytest.raises(ValueError):
        ip_capacity(intervals)


# -------------------------------------------------------------------------------------------------------------- pairs


def test_the_names_are_those_of_the_library() -> None:
    header = (ROOT / "methods" / "estimate" / "tcp_pair.h").read_text()
    names = re.findall(r"^\tTCP_PAIR_(\w+)", header.split("enum tcp_pair_event {")[1].split("}")[0], re.MULTILINE)
    assert [*tcp_pairs.EVENTS, "events"] == [name.lower() for name in names]


@pytest.mark.parametrize(
    ("answers", "up", "down"),
    [
        ([Answer(0, 1), Answer(1, 2)], "in_order", "in_order"),
        ([Answer(1, 2), Answer(0, 1)], "in_order", "reordered"),
        ([Answer(0, 0), Answer(1, 0), Answer(None, 2)], "reordered", "in_order"),
        ([Answer(0, 0), Answer(1, 0), Answer(0, 0, again=True)], "first_lost", "in_order"),
        ([Answer(0, 1), Answer(-1, 1, again=True)], "second_lost", "in_order"),
        ([Answer(-2, 0, again=True)], "both_lost", "unknown"),
        ([Answer(1, 2), Answer(0, 2, again=True)], "in_order", "first_lost"),
        ([Answer(0, 1), Answer(0, 2, again=True)], "in_order", "second_lost"),
        ([], "unknown", "unknown"),
    ],
)
def test_the_fate_of_a_pair(answers: list[Answer], up: str, down: str) -> None:
    """The table of OneProbe: a server that has received the second probe alone acknowledges none, and sends both segments."""
    found = tcp_pair(answers)
    assert (found.up, found.down) == (up, down)
    assert found.whole == (up in ("in_order", "reordered") and down in ("in_order", "reordered"))


def test_shares_with_the_interval_of_wilson() -> None:
    up, down = tcp_losses([TcpPair("in_order", "in_order")] * 97 + [TcpPair("second_lost", "in_order")] * 2 + [TcpPair("in_order", "reordered")])
    assert (up.lost.count, up.lost.of, up.reordered.count, up.reordered.of) == (2, 200, 0, 98)
    assert (down.lost.count, down.lost.of, down.reordered.count, down.reordered.of) == (0, 198, 1, 98)
    z, n, p = NormalDist().inv_cdf(0.975), 200, 0.01
    for edge, sign in ((up.lost.low, -1), (up.lost.high, 1)):  # the edges solve |edge - p| = z sqrt(edge (1 - edge) / n)
        assert edge - p == pytest.approx(sign * z * (edge * (1 - edge) / n) ** 0.5, rel=1e-9)
    assert tcp_losses([])[0].lost.high == 1


@pytest.mark.parametrize("answer", [Answer(2, 0), Answer(0, 3), Answer(0, -1), Answer(-(1 << 32), 0)])
def test_segments_that_are_none(answer: Answer) -> None:
    with pytest.raises(ValueError, match="segment"):
        tcp_pair([answer])


def test_events_that_are_none() -> None:
    with pytest.raises(ValueError, match="lost"):
        tcp_losses([TcpPair("lost", "in_order")])
