# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects that the commands of ktrxer-lab print, against their tables (contract/lab/). The lab does not import the experiments."""

from __future__ import annotations

import math

import printed_check
import tables
from ktrxer_lab import command, vm
from ktrxer_lab.bench import figures
from ktrxer_lab.truth import judge, report
from ktrxer_lab.truth.chance import draw as chance
from ktrxer_lab.truth.chance import judge as chance_judge
from ktrxer_lab.truth.chance import rates, run
from ktrxer_lab.truth.figure import Figure
from ktrxer_lab.truth.measure import Result
from ktrxer_lab.truth.path import Path, Way

QUIET = {"counted": {way: {"sent": 100, "packets": 100, "bytes": 0, "frames": 0} for way in ("up", "down")}, "reference": None, "out": ""}


def faults(name: str, made: dict[str, object]) -> None:
    """The object is one of its table; an object without a field, and one with another field, are not."""
    assert not printed_check.wrong(name, made)
    assert printed_check.wrong(name, made | {"invented": 1})
    for key in made:
        assert printed_check.wrong(name, {one: value for one, value in made.items() if one != key}), key


def test_a_command_in_a_device() -> None:
    answer = vm.Answer(1, b"out", b"\xff", None, [], ["<4>[1.0] smells"], 2.0, 3.5, 1.25, 0.5, 1.0)
    faults("lab", command._as_json(vm.Machine.named("router"), answer, "sh -c 'exit 1'"))


def test_figures_of_known_paths() -> None:
    path = Path("mine", Way(10, 10, loss=1), Way(20))
    given = [Figure("round trip max", math.inf), Figure("loss up", 1.0, low=0.5, high=2.0, trials=100), Figure("delay up p50", 10.0)]
    rows = judge.rows(path, "mine", given, QUIET)
    made = report.as_json([Result(path, rows, rows, ["mine: no figure"], 1.5)])
    assert len(made["paths"][0]["rows"]) == len(given) and rows[0].as_json()["value"] is None
    faults("truth", made)
    made["paths"][0]["rows"][0]["invented"] = 1
    assert printed_check.wrong("truth", made)


def test_a_draw() -> None:
    draw = chance.drawn(1)
    finding = chance_judge.Finding(chance_judge.KINDS[0], "ping", "loss round trip", "0.5, truth 0")
    faults("truth-chance", rates.record(run.Tried(draw, (run.Run("ping server", "valid", True, 3, ()),), (finding,), 1.5)))


def test_figures_of_the_bench() -> None:
    made = figures.as_json([figures.row(name, figures.Figure("median", 0.5, "us", 1, 20), 3) for name in figures.SECTIONS])
    faults("bench-figures", made)
    (section,) = [one for one in tables.load().groups["bench_figure"].fields if one.name == "section"]
    assert section.values == tuple(figures.SECTIONS)


def test_a_row_of_a_query_has_any_columns() -> None:
    assert not printed_check.wrong("query-rows", {"a": 1, "b": [None, {"c": "d"}], "e": True})
    assert printed_check.wrong("query-rows", [1])
