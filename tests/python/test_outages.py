# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times without any answer: their length and direction, and the grade that they limit. The truth is that of the synthetic runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import panel_runs
import pytest
from ktrxer.cli import main
from ktrxer.panels.headline import headline
from ktrxer.summary import figures, model
from ktrxer.summary.byte_outages import ByteOutage, byte_outages, line, longest_of_all
from ktrxer.summary.outages import capped
from ktrxer.summary.text import lines

S = 1_000_000_000


def made(folder: Path, **more: Any) -> model.Summary:
    return figures.summarise(panel_runs.run(folder, **more))


def test_a_path_that_was_dead_for_a_fifth_of_the_time(tmp_path: Path) -> None:
    """It had grade A+ and the class "good"."""
    summary = made(tmp_path, up_ms=1, seconds=28, dead_s=(10, 14))
    (one,) = summary.outages
    assert one.direction == "up" and one.from_s == 10 and one.lost == 800 and one.probes == ["UDP"]
    assert one.low_ms <= 4000 <= one.high_ms and one.high_ms - one.low_ms <= 20.001, "the probes are sent each 10 ms"
    assert summary.grade is not None and summary.grade.letter == "F" and summary.grade.outage_ms == one.low_ms
    assert summary.responsiveness is not None and summary.responsiveness.rating == "poor"
    text = lines(summary)
    assert text[1].startswith("outage  no answer for 3990.0 ms to 4010.0 ms, from 10.00 s on, up (800 probes of UDP)"), text[:3]
    assert any(line.startswith("grade  F: an outage of 3990.0 ms; load adds ") for line in text)
    assert headline(summary).details[0].startswith("The path was dead: no answer for ")
    assert main(["report", str(tmp_path / "run.ktrxer"), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert re.search(r"an outage of 3,?990(\.0)? ms; load adds ", page)
    assert "poor, because of an outage of " in page


@pytest.mark.parametrize("more", [{}, {"loss": 0.3, "idle_loss": 0.02}, {"loss": 0.6}, {"up_ms": 200, "loss": 0.1}, {"dead_s": (9.0, 9.15)}])
def test_losses_by_chance_are_no_outage(tmp_path: Path, more: dict[str, Any]) -> None:
    summary = made(tmp_path, **more)
    assert summary.outages == []
    assert summary.grade is None or summary.grade.outage_ms == 0
    assert not any(line.startswith("outage") for line in lines(summary))


def test_a_queue_that_drops_for_a_round_trip_is_no_outage(tmp_path: Path) -> None:
    """pie before 1.2 Mbit/s dropped each probe for 0.2 s under load, with round trips of 0.5 s: no part of the path was dead."""
    full = {"up_ms": 400, "base_ms": 90, "dead_s": (9.0, 9.35)}
    assert made(tmp_path, name="a", **full).outages == []
    (one,) = made(tmp_path, name="b", **full | {"dead_s": (9.0, 9.8)}).outages
    assert 780 <= one.low_ms <= 800
    assert len(made(tmp_path, name="c", **full | {"dead_s": (2.0, 2.35)}).outages) == 1, "without a load no queue is full"
    assert len(made(tmp_path, name="d", **full | {"up_ms": 3000, "dead_s": (9.0, 10.2)}).outages) == 1


def test_an_outage_in_a_path_that_loses_packets(tmp_path: Path) -> None:
    (one,) = made(tmp_path, loss=0.2, idle_loss=0.2, dead_s=(10, 11)).outages
    assert one.low_ms <= 1000 + 100 and one.high_ms is not None and one.high_ms >= 1000


def test_an_outage_to_the_end(tmp_path: Path) -> None:
    summary = made(tmp_path, seconds=28, dead_s=(26, 28))
    (one,) = summary.outages
    assert one.high_ms is None and one.low_ms == pytest.approx(1990)
    assert summary.grade is not None and summary.grade.outage_ms == 0, "the server may have ended, and not the path"
    assert "at least 1990.0 ms, up to the last probe" in lines(summary)[1]


def test_a_kind_that_is_blocked_is_no_outage(tmp_path: Path) -> None:
    assert made(tmp_path, dead_s=(0, 100)).outages == []


@pytest.mark.parametrize(("letter", "outage_ms", "expected"), [
    ("A+", 0, "A+"), ("A+", 250, "D"), ("C", 250, "D"), ("F", 250, "F"), ("D", 150, "D"), ("A", 2000, "F"),
])  # fmt: skip
def test_no_grade_is_better_than_that_of_the_outage(letter: str, outage_ms: float, expected: str) -> None:
    assert capped(letter, outage_ms) == expected


def of_process(number: int, flows: int, *dead: dict[str, Any]) -> tuple[list[SimpleNamespace], SimpleNamespace]:
    """The series of the flows of a process, and its result with these outages."""
    whole = [{"direction": "up", **one} for one in dead]  # a stored result has no field without a value
    result = {"start_ns": 0, "outages": whole}
    return (
        [SimpleNamespace(runner=number, direction="up") for _ in range(flows)],
        SimpleNamespace(id=number, kind="flow", from_ns=0, to_ns=20 * S, result=result),
    )


def found(*processes: tuple[list[SimpleNamespace], SimpleNamespace]) -> list[tuple[float, float, int, int]]:
    series = [one for flows, _ in processes for one in flows]
    run: Any = SimpleNamespace(meta=SimpleNamespace(of_kind=lambda _: series, runners=[runner for _, runner in processes]))
    return [(one.from_s, one.low_ms, one.flows, one.of_flows) for one in byte_outages(run)]


def test_one_flow_of_four_stood_still() -> None:
    """No byte came in one flow for three seconds, and it had no word in the summary."""
    stall = {"flow": 2, "from_ns": 5 * S, "low_ns": 3 * S}
    assert found(of_process(1, 4, stall)) == [(5.0, 3000.0, 1, 4)]
    assert found(of_process(1, 4, stall), of_process(2, 2)) == [(5.0, 3000.0, 1, 6)], "flows of another process went on"
    to_end = ByteOutage(5.0, 3000.0, None, "up", 1, 4)
    shown = line(to_end)
    assert shown == "no byte up in 1 of 4 flows for at least 3000.0 ms, up to the end, from 5.00 s on"
    assert longest_of_all([], [to_end]) == 3000, "the program at the far end went on with the other flows"
    assert longest_of_all([], [replace(to_end, flows=4)]) == 0


def test_a_process_whose_flows_stood_still_beside_others() -> None:
    dead = {"from_ns": 5 * S, "low_ns": 3 * S}
    assert found(of_process(1, 4, dead), of_process(2, 1)) == [(5.0, 3000.0, 4, 5)]
    assert found(of_process(1, 4, dead), of_process(2, 1, dead)) == [(5.0, 3000.0, 5, 5)]
    assert found(of_process(1, 4, dead | {"low_ns": S // 2}), of_process(2, 1)) == [], "shorter than a second: losses"
    later = {"flow": 0, "from_ns": 7 * S, "low_ns": 2 * S}
    assert found(of_process(1, 4, dead, later), of_process(2, 1, dead)) == [(5.0, 3000.0, 5, 5)], "its time-out goes on behind the outage"
