# SPDX-License-Identifier: MIT OR Apache-2.0
"""The estimators of the methods from Python: known values, simulated links, input that is none, and the page that shows their use."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from built_estimators import built, missing
from ktrxer.run import binary
from ktrxer.statistics import AvailableBandwidth, PptChecks, coalescing, mda_probes, modes, native, pairs, ppt, ppt_of_probes, ppt_plan

ROOT = Path(__file__).resolve().parents[2]
Times = npt.NDArray[np.int64]
__all__ = ["built"]  # a fixture of all tests here


@pytest.mark.parametrize(("configured", "python", "outcome"), [(False, True, "skipped"), (True, True, "failed"), (True, False, "skipped")])
def test_a_build_without_the_library_is_a_failure(tmp_path: Path, configured: bool, python: bool, outcome: str) -> None:
    if configured:
        (tmp_path / "build.ninja").touch()
        (tmp_path / "meson-info").mkdir()
        (tmp_path / "meson-info" / "intro-buildoptions.json").write_text(json.dumps([{"name": "man", "value": True}, {"name": "python", "value": python}]))
    with pytest.raises(pytest.fail.Exception if outcome == "failed" else pytest.skip.Exception):
        missing(tmp_path, "no library")


def pair_times(ip_bytes: int, bit_s: float, count: int = 40, cross: float = 0, seed: int = 1) -> Times:
    """Pairs of a link that adds 14 bytes; `cross`: share of the pairs between whose packets another one came."""
    random = np.random.default_rng(seed)
    gap = (ip_bytes + 14) * 8e9 / bit_s
    sent = 10**18 + np.arange(count) * 20_000_000
    arrived = sent + 5_000_000 + random.integers(0, 100, count)
    other = np.where(random.random(count) < cross, random.integers(6_000, 121_000, count), 0)
    return np.stack([sent, sent + 1000, arrived, arrived + np.rint(gap).astype(np.int64) + other + random.integers(0, 100, count)], axis=1)


def test_pairs_give_the_capacity() -> None:
    found = pairs(pair_times(1500, 100e6, cross=0.4), pair_times(750, 100e6, cross=0.4, seed=2), 1500, 750)
    assert found.reading == "resolved"
    low, value, high = found.capacity_low_bit_s, found.capacity_bit_s, found.capacity_high_bit_s
    assert low is not None and value is not None and high is not None
    assert low <= value <= high and value == pytest.approx(100e6 * 1500 / 1514, rel=0.01)
    assert found.link_bit_s == pytest.approx(100e6, rel=0.01) and found.overhead_bytes == pytest.approx(14, abs=8)


def test_pairs_that_give_none_have_no_figures() -> None:
    times = pair_times(1500, 100e6)
    times[:, 3] = 0
    found = pairs(times, pair_times(750, 100e6), 1500, 750)
    assert found.reading == "too_few" and found.lost == 40 and found.capacity_bit_s is None
    for large, small in (([], []), (times[:1], times[:1])):
        assert pairs(large, small, 1500, 750).reading == "too_few"


@pytest.mark.parametrize(
    ("values", "cause"),
    [(np.zeros((4, 4)), "integer nanoseconds"), (np.zeros((4, 3), np.int64), "rows of four"), (np.full((4, 4), -1), "a time is negative")],
)
def test_times_that_are_none(values: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        pairs(values, values, 1500, 750)
    with pytest.raises(ValueError, match=cause):
        coalescing(values, values)


def test_equal_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="sizes"):
        pairs(pair_times(1500, 1e8), pair_times(1500, 1e8), 1500, 1500)


def test_modes_with_the_densest_first() -> None:
    random = np.random.default_rng(3)
    gaps = np.concatenate([random.normal(121_000, 300, 200), random.normal(242_000, 300, 400)]).astype(np.int64)
    found = modes(gaps, 1500)
    assert found[0] == pytest.approx(12_000 / 242e-6, rel=0.01)
    assert any(mode == pytest.approx(12_000 / 121e-6, rel=0.01) for mode in found[1:])
    with pytest.raises(ValueError):
        modes([], 1500)


def test_the_period_of_interrupts() -> None:
    random = np.random.default_rng(4)

    def grouped(gap: int, seed: int) -> Times:
        times = pair_times(1500, 1e9, 400, seed=seed)
        first = random.integers(0, 250_000, 400)
        times[:, 2] = 10**18 + 250_000 * 100 + 1000
        times[:, 3] = times[:, 2] + np.where(first + gap < 250_000, 900, 250_000 + random.integers(0, 500, 400))
        return times

    found = coalescing(grouped(12_000, 1), grouped(13_000, 2))
    assert found.separate and found.period_ns == pytest.approx(250_000, rel=0.01) and found.together > found.apart


GAPS = {72: [8540, 8660, 8730, 8610, 8590, 8700, 8680, 8655], 232: [21330, 21460, 21520, 21410, 21380, 21490, 21475, 21440]}


def test_ppt_gives_the_same_as_the_command(tmp_path: Path) -> None:
    (tmp_path / "gaps.csv").write_text("wire_bytes,gap_ns\n" + "".join(f"{size},{gap}\n" for size, gaps in GAPS.items() for gap in gaps))
    done = subprocess.run([binary.find(), "ppt", "estimate", tmp_path / "gaps.csv", "--json"], capture_output=True, text=True, check=True)
    by_command, found = json.loads(done.stdout), ppt(GAPS)
    assert found.reading == by_command["reading"] == "resolved"
    assert found.capacity_bit_s == pytest.approx(by_command["capacity_bit_s"]["value"], rel=1e-6)
    assert found.delta_ns == pytest.approx(by_command["delta_ns"]["value"], rel=1e-6)


@pytest.mark.parametrize("gaps", [{72: [8540] * 8}, {72: [8540] * 8, 232: []}, {72: [0] * 8, 232: [-1] * 8}, {72: [1], 232: [2]}, {}])
def test_gaps_that_are_no_measurement(gaps: dict[int, list[int]]) -> None:
    with pytest.raises(ValueError):
        ppt(gaps)


def test_a_flat_gap_is_a_service_time() -> None:
    found = ppt({72: [15_000, 15_010, 14_990] * 10, 232: [15_000, 15_010, 14_990] * 10}, resolution_ns=1)
    assert found.reading == "service_time" and found.service_ns == pytest.approx(15_000, rel=0.01) and found.capacity_bit_s is None


def test_ppt_of_probes_leaves_out_what_the_sender_split() -> None:
    def probes(trailing: int) -> Times:
        sent = 10**18 + np.arange(50) * 10_000_000
        arrived = sent + 1_000_000
        times = np.stack([sent, sent + 1000, arrived, arrived + (8 * trailing + 96) * 10 + np.arange(50) % 7], axis=1)
        times[::10, 1] += 500_000
        times[::10, 3] += 500_000
        return times

    found = ppt_of_probes({78: probes(78), 232: probes(232)}, heading_bytes=1502)
    assert found.reading == "resolved" and found.capacity_bit_s == pytest.approx(100e6, rel=0.01)
    assert found.delta_low_ns is not None and found.delta_high_ns is not None and found.delta_low_ns <= 3 <= found.delta_high_ns


def received(trailing: int, gap: Callable[[int], float]) -> Times:
    """Compound probes whose gap at the receiver is gap(trailing), with a few nanoseconds of noise."""
    sent = 10**18 + np.arange(60) * 10_000_000
    arrived = sent + 1_000_000
    return np.stack([sent, sent + 1000, arrived, arrived + round(gap(trailing)) + np.arange(60) * 7 % 11], axis=1)


@pytest.mark.parametrize("case", ["link", "service", "uncovered", "bent"])
def test_further_probes_refute_a_model_that_does_not_fit(case: str) -> None:
    """By construction: a link of 100 Mbit/s; the same before a receiver with 15 us for each packet; a heading packet that does not cover the
    gap; a line that is bent the other way."""
    link = lambda trailing: (8 * trailing + 96) * 10  # noqa: E731
    gap = {
        "link": link,
        "service": lambda trailing: max(15_000, link(trailing)),
        "uncovered": lambda trailing: link(trailing) + 8 * trailing * 40,
        "bent": lambda trailing: min(link(trailing), 20_000 + trailing),
    }[case]
    shorter = (lambda trailing: gap(trailing) + 10 * 8 * (1502 - 1134)) if case == "uncovered" else gap
    checks = PptChecks(300, received(300, gap), 1134, 342, received(342, shorter))
    sizes = {78: received(78, gap), 460: received(460, gap)}
    found = ppt_of_probes(sizes, 1502, checks=checks)
    if case == "link":
        assert found.reading == "resolved" and found.capacity_bit_s == pytest.approx(100e6, rel=0.01) and found.service_ns is None
    elif case == "service":
        assert found.reading == "resolved" and found.capacity_bit_s == pytest.approx(100e6, rel=0.01)
        assert found.service_ns == pytest.approx(15_000, abs=20)
    else:
        assert found.reading == {"uncovered": "not_covered", "bent": "bent"}[case] and found.capacity_bit_s is None
    assert ppt_of_probes(sizes, 1502).reading == "resolved", "two sizes fit any line"


def test_checks_that_cannot_be() -> None:
    probes = {78: received(78, float), 460: received(460, float)}
    for middle, shorter in ((78, 1000), (500, 1000), (300, 1502), (300, 0)):
        with pytest.raises(ValueError, match="is not"):
            ppt_of_probes(probes, 1502, checks=PptChecks(middle, received(300, float), shorter, 342, received(342, float)))
    few = PptChecks(300, [], 1134, 342, [])
    assert ppt_of_probes(probes, 1502, checks=few).reading in ("too_few", "unresolved")


def test_plans_of_the_papers_paths() -> None:
    mbit = 1_000_000
    assert ppt_plan([10 * mbit, 155 * mbit, 10 * mbit, 100 * mbit], 1500, frame_gap_bits=0).trailing_max_bytes == pytest.approx(150)
    found = ppt_plan([100 * mbit, 10 * mbit, 155 * mbit, 100 * mbit], 1500, frame_gap_bits=0)
    assert found.narrow_link == 2
    assert found.trailing_max_bytes == pytest.approx(231.818, abs=1e-3) and found.least_ratio == pytest.approx(6.4706, abs=1e-4)
    for path in ([], [0], [mbit] * 65):
        with pytest.raises(ValueError):
            ppt_plan(path)


def test_mda_has_the_published_numbers() -> None:
    assert [mda_probes(hops) for hops in range(2, 13)] == [6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63]
    for hops, failure in ((1, 0.05), (300, 0.05), (2, 0.0), (2, 1.5)):
        with pytest.raises(ValueError):
            mda_probes(hops, failure)


def link(method: str, load: float, seed: int = 7) -> AvailableBandwidth:
    """A link of 10 Mbit/s with Poisson cross traffic of 1000 bytes."""
    random = np.random.default_rng(seed)
    found, now, free = AvailableBandwidth(method), 1e9, 0.0
    cross = now + np.cumsum(random.exponential(1014 * 8 / 10e-3 / load, 200_000)) if load else np.empty(0)
    other = 0
    while (plan := found.plan) is not None:
        times = []
        for flow in range(plan.flows):
            for train in range(plan.trains):
                at, gap = now + plan.period_ns * (train + flow / 2 + random.random() / 8), float(plan.gap_ns)
                for _ in range(plan.packets):
                    times.append(at)
                    at, gap = at + gap, gap * plan.shrink
        arrived = np.zeros(len(times))
        for index in np.argsort(times, kind="stable"):
            while other < len(cross) and cross[other] <= times[index]:
                free = max(free, cross[other]) + 1014 * 8 / 10e-3
                other += 1
            free = max(free, times[index]) + (plan.ip_bytes + 14) * 8 / 10e-3
            arrived[index] = free + 200 * random.random()
        found.take(np.array(times, np.int64), arrived.astype(np.int64) + 5 * 10**12)
        now += plan.period_ns * (plan.trains + 1) + 1e7
    return found


@pytest.mark.parametrize("load", [0, 0.5])
def test_the_available_bandwidth_of_a_simulated_link(load: float) -> None:
    found = link("auto", load).result()
    assert found.reading == "resolved" and found.by == "small_probes"
    assert found.capacity_bit_s == pytest.approx(10e6 * 1500 / 1514, rel=0.01)
    assert found.low_bit_s is not None and found.high_bit_s is not None
    assert found.low_bit_s <= (1 - load) * 10e6 * 1500 / 1514 * 1.02 and (1 - load) * 10e6 * 1500 / 1514 * 0.98 <= found.high_bit_s


def test_a_measurement_that_is_not_over_or_gets_other_times() -> None:
    found = AvailableBandwidth()
    assert found.plan is not None and found.plan.step == "back_to_back" and found.plan.gap_ns == 0
    with pytest.raises(ValueError, match="not over"):
        found.result()
    with pytest.raises(ValueError, match="not those of the plan"):
        found.take([1], [2])
    with pytest.raises(ValueError, match="1 send times, 2 arrivals"):
        found.take([1], [2, 3])
    while (plan := found.plan) is not None:
        found.take(*[np.zeros(plan.flows * plan.trains * plan.packets, np.int64)] * 2)
    assert found.result().reading == "lost" and found.result().low_bit_s is None
    with pytest.raises(ValueError):
        found.take([], [])


def test_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="'fast' is none of auto, slops, chirp"):
        AvailableBandwidth("fast")
    with pytest.raises(ValueError, match="do not fit each other"):
        AvailableBandwidth(large_bytes=100)


def test_the_page_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of the page runs, and prints what the page shows."""
    page = (ROOT / "docs" / "howto" / "estimators.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.S)
    assert len(blocks) >= 2
    names: dict[str, Any] = {}
    for language, block in blocks:
        if language == "python":
            exec(block, names)
        else:
            assert capsys.readouterr().out == block


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "places", lambda: [tmp_path / native.NAME])
    native.library.cache_clear()
    try:
        with pytest.raises(native.NoEstimatorsError, match=r"ktrxer-estimators\.so.*make"):
            mda_probes(2)
    finally:
        native.library.cache_clear()
