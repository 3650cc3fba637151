# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of the bench: statistics, tables, stored runs, and the criterion of a change."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ktrxer_lab.bench import compare, kinds
from ktrxer_lab.bench.table import Column, Row, Table, fixed, people

COLUMNS = (
    Column("engine", "sender", text=True, is_key=True), Column("payload", "payload B", is_key=True), Column("rounds"),
    Column("stalled_rounds", "stalled"), Column("median_us", "median us", 3, 2, better=-1, spread="spread_us"), Column("spread_us", None, 3),
)


def test_quantiles_are_values_that_occurred() -> None:
    values = list(range(100, 0, -1))
    assert [kinds.quantile(values, share) for share in (0, 10_000, 10_001, 500_000, 990_000, 1_000_000)] == [1, 1, 2, 50, 99, 100]
    assert (kinds.median(values), kinds.iqr(values), kinds.median([]), kinds.iqr([])) == (50, 50, None, None)


def test_rates() -> None:
    assert kinds.rate(101, 0, 100_000) == [1_000_000]  # 100 gaps in 100 us
    assert kinds.rate(1, 0, 5) == kinds.rate(2, 5, 5) == kinds.rate(2, 6, 5) == []


def test_notches() -> None:
    # 1.57 * 100 / sqrt(100) = 15.7 on each side
    assert not compare.notches_apart(1000, 100, 100, 1031, 100, 100)
    assert compare.notches_apart(1000, 100, 100, 1032, 100, 100) and compare.notches_apart(1032, 100, 100, 1000, 100, 100)
    assert compare.notches_apart(1, 0, 1, 2, 0, 1) and not compare.notches_apart(1, 0, 0, 2, 0, 1)


def test_cells() -> None:
    column = Column("x", "x", 3, 2)
    assert [people(column, cell) for cell in (-1256, -1, 999_996, 5, None)] == ["-1.26", "0.00", "1000.00", "0.01", "-"]
    assert (people(Column("x"), (1 << 63) - 1), fixed(column, 1234, 3), people(Column("x", text=True), "")) == ("9223372036854775807", "1.234", "-")


def row(**more: Any) -> Row:
    return {"engine": "udp", "payload": 28, "rounds": 9, "stalled_rounds": 0, "median_us": 1000, "spread_us": 30, **more}


@pytest.mark.parametrize(
    ("old", "now", "word"),
    [
        ({}, {"median_us": 1030}, None),
        ({}, {"median_us": 1040}, None),  # distinct, but only 4 %
        ({}, {"median_us": 1100}, "worse"),
        ({}, {"median_us": 900}, "better"),
        ({}, {"median_us": 900, "stalled_rounds": 8, "spread_us": 200}, None),  # one round is left
        ({"median_us": 0}, {"median_us": 100}, "worse"),
    ],
)
def test_changes(old: Row, now: Row, word: str | None) -> None:
    found = compare.compare(Table(COLUMNS, [row(**now)]), [row(**old)])
    assert ([change.word for change in found.changes], found.compared, found.alone) == ([word] if word else [], 1, 0)


def test_what_cannot_be_compared() -> None:
    assert compare.compare(Table(COLUMNS, [row(median_us=None)]), [row()]).compared == 0
    assert compare.compare(Table(COLUMNS, [row(payload=29)]), [row()]).alone == 1
    (change,) = compare.compare(Table(COLUMNS, [row(median_us=1500)]), [row()]).changes
    assert change.line(COLUMNS) == "worse: udp, payload B 28: median_us was 1.00, is 1.50 (+50.0 %)"
    assert change.json(COLUMNS) == {"engine": "udp", "payload": 28, "figure": "median_us", "change": "worse", "was": 1.0, "is": 1.5}


# ------------------------------------------------------------------------------------------------------------ the samples


def job(**more: Any) -> dict[str, Any]:
    none = {"cross": 0, "cross_first_ns": 0, "cross_last_ns": 0, "driver": 0, "wire": 0, "queued": 0}
    return {"pattern": "timed", "sent": None, "arrived": len(more["arrivals_ns"]), "train": 1, "interval_ns": 1000, "calls_ns": None, **none, **more}


def turn(number: int, *jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"engine": "udp", "payload": 28, "cross": 0, "gap_ns": 0, "round": number, "stalled": False, "failed": None, "jobs": jobs} | more


def test_schedule_of_known_stamps() -> None:
    senders = kinds.Senders(kinds.SCHEDULE)
    senders.add(turn(-1, failed="no such thing"))
    ideal = [1000 * number + 500_000 for number in range(15)]
    late = [*ideal[:10], ideal[10] + 40, *ideal[11:13], 0, ideal[14]]  # one 40 ns late, one lost
    senders.add(turn(0, job(arrivals_ns=ideal)))
    senders.add(turn(1, job(arrivals_ns=late, arrived=14)))
    senders.add(turn(2, job(arrivals_ns=[0] * 15), stalled=True))
    (found,) = senders.table().rows
    assert (found["rounds"], found["stalled_rounds"], found["interval_us"]) == (3, 1, 1000)
    # Round 1 has seven intervals between neighbours: five exact ones, two with an error of 40 ns.
    assert (found["median_us"], found["p90_us"], found["p99_us"], found["offset_p99_us"]) == (0, 40, 40, 40)
    assert found["lost_percent"] == 1 * 100_000 // 45 and found["stalled_median_us"] is None


def test_rate_pairs_and_stamps_of_known_stamps() -> None:
    senders = kinds.Senders(kinds.RATE)
    train = [1000 * number + 1 for number in range(20)]
    flood = {"pattern": "flood", "sent": 200, "arrived": 150, "timed": 101, "first_ns": 0, "last_ns": 100_000}
    cross = {"cross": 11, "cross_first_ns": 0, "cross_last_ns": 10_000_000}
    senders.add(turn(0, job(arrivals_ns=[*train[:10], 0, 0, *train[12:]], train=10), flood | cross, cross=2000))
    (found,) = senders.table().rows
    assert (found["train_kpps"], found["rate_kpps"], found["template_kpps"]) == (1_000_000, 1_000_000, None)
    assert (found["rate_mbps"], found["lost_percent"], found["cross_arrived_kpps"]) == (1_000_000 * 56 * 8 // 1000, 25_000, 1000)
    assert senders.reasons == ["1000 of 2000 packets a second of cross traffic arrived beside udp at 28 bytes"]

    pairs = kinds.Senders(kinds.PAIRS)
    stamps = [at + offset for at in range(1000, 16_000, 1000) for offset in (0, 7)]
    pairs.add(turn(0, job(arrivals_ns=stamps, calls_ns=[*stamps[:-1], 0], train=2)))
    (found,) = pairs.table().rows
    assert (found["pairs"], found["arrival_median_us"], found["driver_median_us"]) == (10, 7, 7)

    reported = kinds.Senders(kinds.STAMPS)
    reported.add(turn(0, job(arrivals_ns=stamps, sent_ns=[stamp + stamp % 2 * 3 for stamp in stamps], train=2, driver=30, queued=1), gap_ns=7))
    (found,) = reported.table().rows
    assert (found["gap_us"], found["pairs"], found["stamp"], found["driver_median_us"]) == (7, 10, "driver", None)
    assert (found["median_us"], found["size_median_us"]) == (3, 3)


def test_rounds_of_receivers() -> None:
    receivers = kinds.Receivers()
    for number, lost in enumerate((0, 5)):
        receivers.add({"kind": "cost", "what": "cost", "rules": 1, "wildcards": 0, "round": number, "cost_ns": 30 + number})
        receivers.add({"kind": "rate", "what": "capture+drop", "rules": 0, "wildcards": 1, "round": number, "sent": 100, "captured": 100 - lost,
                       "lost": lost, "first_ns": 0, "last_ns": 99_000})
    cost, rate = receivers.table().rows
    assert (cost["rounds"], cost["cost_ns"], cost["cost_spread_ns"]) == (2, 30, 1)
    assert (rate["sent"], rate["captured"], rate["lost"], rate["lossless_rounds"]) == (200, 195, 5, 1) and rate["rate_kpps"] == 94 * 10**9 // 99_000


# --------------------------------------------------------------------------------------------------------- files of older runs

SETTINGS = {"payload": "100..100/1", "cross": "0,1k", "both_ways": 1, "interval_ns": 2_000_000, "count": 10, "rounds": 9, "seed": 1, "fq": 0, "x": []}


def test_a_table_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    rows: list[Row] = [{"engine": 'raw "x", \\' if number % 2 else "packet", "payload": number, "median_us": (1 << number) - 1000 if number % 3 else None}
                       for number in range(40)]
    table = Table(kinds.SCHEDULE.columns, rows)
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"bench": "schedule", "settings": SETTINGS, "rows": table.json(), "more": {"a": [1e9]}}))
    saved = compare.read(old)
    assert [{key: told[key] for key in ("engine", "payload", "median_us")} for told in saved.rows] == rows
    assert compare.arguments(saved) == ["--payload=100..100/1", "--cross=0,1k", "--both-ways", "--interval=2000000ns", "--count=10", "--rounds=9", "--seed=1"]
    table.write_csv(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as lines:
        assert [told["engine"] for told in csv.DictReader(lines)] == [told["engine"] for told in rows]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "{}", "[]", "null", '{"bench": "rate"}', '{"rows": []}', '{"bench": "rate", "rows": {}}', '{"bench": "rate", "rows": [1]}',
        '{"bench": "rate", "rows": []} x', '{"bench": "other", "rows": []}', '{"bench": ["rate"], "rows": []}',
        '{"bench": "rate", "rows": [{"payload": 99999999999999999999}]}', '{"bench": "rate", "rows": [{"payload": 1e3}]}',
        '{"bench": "rate", "rows": [{"payload": true}]}', '{"bench": "rate", "rows": [{"rate_kpps": 1e400}]}',
        '{"bench": "rate", "rows": [{"rate_kpps": NaN}]}', '{"bench": "rate", "rows": [{"engine": 7}]}', '{"bench": "rate", "rows": [], "settings": []}',
        '{"bench": "rate", "rows": [{"payload": ' + "9" * 5000 + "}]}", "[" * 100_000, "\0" * 100, "\udcff",
    ],
)  # fmt: skip
def test_damaged_files_are_refused(text: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(compare.Damaged):
        compare.read(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["engine", "payload", "median_us", "rate_kpps", "rounds"]), JSON), max_size=3)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["bench", "rows", "settings", "x"]), JSON), st.sampled_from(kinds.NAMES), ROWS,
    st.dictionaries(st.sampled_from(list(SETTINGS)), JSON),
)
def test_any_json_is_read_or_refused(told: dict[str, Any], name: str, rows: list[Any], options: dict[str, Any]) -> None:
    for one in (told, told | {"bench": name, "rows": rows, "settings": options}):
        try:
            saved = compare.parse(one)
            assert all(word.startswith("--") for word in compare.arguments(saved))
        except compare.Damaged:
            pass
