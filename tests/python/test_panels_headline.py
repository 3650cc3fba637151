# SPDX-License-Identifier: MIT OR Apache-2.0
"""The sentences that a report begins with, over runs whose truth is known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ktrxer.panels.headline import Headline, headline, three, wilson
from ktrxer.summary import where
from ktrxer.summary.figures import summarise
from ktrxer.summary.losses import Loss
from panel_runs import run


def of(directory: Path, **more: Any) -> Headline:
    return headline(summarise(run(directory, **more)))


def number(text: str) -> float:
    found = re.search(r"adds (?:only )?([\d.]+) ms", text)
    assert found is not None, text
    return float(found[1])


@pytest.mark.parametrize(
    ("delays", "place", "words"),
    [
        ({"up_ms": 107}, where.UP, "The upload queue adds"),
        ({"down_ms": 80}, where.DOWN, "The download queue adds"),
        ({"own_ms": 60}, where.OWN, "This host's own queue (fq_codel) adds"),
        ({"far_ms": 45}, where.FAR, "The far host's own queue adds"),
    ],
)
def test_the_queue_that_adds_the_delay_is_named_with_its_delay(tmp_path: Path, delays: dict[str, float], place: str, words: str) -> None:
    found = of(tmp_path, **delays)
    assert found.kind == "added" and found.place == place and found.text.startswith(words)
    (truth,) = delays.values()
    assert number(found.text) == pytest.approx(truth, rel=0.02)
    total = next(text for text in found.details if text.startswith("The load adds"))
    low, high = (float(end) for end in re.search(r"\(at least 90 %: ([\d.]+) to ([\d.]+) ms\)", total).groups())  # type: ignore[union-attr]
    assert low <= truth * 1.02 and high >= truth * 0.95 and high - low < 0.1 * truth
    assert any("20.0 Mbit/s down and 20.0 Mbit/s up" in text for text in found.details)


def test_two_queues_are_both_named(tmp_path: Path) -> None:
    found = of(tmp_path, up_ms=60, down_ms=50)
    assert found.place is None and "in the upload queue and" in found.text and "in the download queue" in found.text


def test_a_queue_that_was_not_measured_apart_is_not_excluded(tmp_path: Path) -> None:
    known, unknown = of(tmp_path, up_ms=80), of(tmp_path, name="other", up_ms=80, own_ms=None)
    assert not any("not measured apart" in text for text in known.details)
    assert any(text.startswith("This host's own queue was not measured apart") for text in unknown.details)


def test_no_direction_is_claimed_without_one_way_delays_or_with_uncertain_clocks(tmp_path: Path) -> None:
    without = of(tmp_path, up_ms=80, one_way=False)
    assert without.place is None and without.text.startswith("The load adds") and "The directions were not measured apart." in without.details
    uncertain = of(tmp_path, name="other", up_ms=80, clock_ms=40)
    assert uncertain.place is None and any("offset of the two clocks is uncertain by 80.0 ms" in text for text in uncertain.details)


def test_nothing_added_is_said_with_what_the_run_could_have_shown(tmp_path: Path) -> None:
    found = of(tmp_path, seed=3)
    assert found.kind == "none" and found.place is None and abs(found.added_ms) < 0.1
    bound = re.fullmatch(r"The load changes the round trip by less than (0\.\d+) ms \(at least 90 %\)\.", found.text)
    assert bound is not None and abs(found.added_ms) < float(bound[1]) <= 0.1


def test_a_little_delay_is_called_little(tmp_path: Path) -> None:
    found = of(tmp_path, up_ms=3)
    assert found.kind == "little" and "adds only" in found.text and number(found.text) == pytest.approx(3, rel=0.1)


def test_loss_comes_first_where_it_is_what_the_load_changes(tmp_path: Path) -> None:
    found = of(tmp_path, loss=0.0325)
    assert found.kind == "loss" and found.lossy
    share, lost, sent = re.match(r"Under load ([\d.]+) % of the probes are lost \((\d+) of ([\d,]+), \d+ up; 95 %: ", found.text).groups()  # type: ignore[union-attr]
    assert sent == "4,000" and len(share.partition(".")[2]) <= 2  # 3.250 of 4,000 probes would claim too much
    assert float(share) == pytest.approx(100 * int(lost) / 4000, abs=0.006)
    both = of(tmp_path, name="both", loss=0.05, up_ms=90)
    assert both.kind == "added" and both.lossy and any("of the probes are lost" in text for text in both.details)


def test_loss_that_the_idle_path_has_too_is_not_blamed_on_the_load(tmp_path: Path) -> None:
    assert not of(tmp_path, loss=0.03, idle_loss=0.03).lossy


def test_most_probes_lost(tmp_path: Path) -> None:
    found = of(tmp_path, loss=0.7)
    assert found.kind == "loss" and found.text == "Under load more than half of the probes are lost."


def test_an_invalid_run_has_no_conclusion(tmp_path: Path) -> None:
    found = of(tmp_path, up_ms=100, verdict="invalid", reasons=["31 % of the probes of stamp left late", "the clock stepped"])
    assert found.kind == "invalid" and found.text == "This run is invalid: 31 % of the probes of stamp left late."
    assert found.place is None and "adds" not in " ".join((found.text, *found.details)) and "the clock stepped." in found.details


def test_a_degraded_run_says_why(tmp_path: Path) -> None:
    found = of(tmp_path, up_ms=100, verdict="degraded", reasons=["CPU above 90 % for 7 % of the run"])
    assert found.place == where.UP and "The run is degraded: CPU above 90 % for 7 % of the run." in found.details


def test_runs_without_load_without_answers_and_without_probes(tmp_path: Path) -> None:
    summary = summarise(run(tmp_path))
    idle = headline(replace(summary, latency=[replace(one, loaded=None) for one in summary.latency], throughput=[]))
    assert idle.kind == "idle" and idle.text.startswith("The UDP round trip has a p50 of 10.0")
    silent = headline(replace(summary, latency=[], loss=[Loss("load", 500, 500, 0, 0)]))
    assert silent.kind == "nothing" and silent.text == "None of 500 probes was answered."
    assert headline(replace(summary, latency=[], loss=[])).text == "This run measured no delay."
    assert "not finished" in " ".join(headline(replace(summary, verdict=None)).details)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (3.2501, "3.25"), (117.42, "117"), (9.456, "9.46"), (12345.6, "12,346"), (0.01234, "0.0123")])
def test_three_digits(value: float, text: str) -> None:
    assert three(value) == text


def test_the_interval_of_a_share() -> None:
    low, high = wilson(260, 8000)
    assert low == pytest.approx(0.0288, abs=1e-4) and high == pytest.approx(0.0366, abs=1e-4)
    assert wilson(0, 100)[0] == 0 and 0.03 < wilson(0, 100)[1] < 0.05 and wilson(0, 0) == (0, 1)
