# SPDX-License-Identifier: MIT OR Apache-2.0
"""Main effects and interactions of the factors of a batch, from combinations whose means are known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from ktrxer.analyse.factorial import Effect, Factorial, factorial
from ktrxer.analyse.figure import Figure
from ktrxer.analyse.grouping import Facts, Group, Member, by
from ktrxer.commands import compare as compare_command
from ktrxer.commands.comparison_files import markdown
from ktrxer.commands.comparison_text import effect_lines
from ktrxer.statistics.contrast import contrast
from ktrxer.statistics.difference import difference
from ktrxer.store import open_run
from ktrxer.store.writer import write_finished
from ktrxer.view import plot_command
from synthetic import synthetic

ADDED = Figure("added", "delay that load adds", "ms", 0.0, "lower", True)
RATE = Figure("rate.up", "rate up", "Mbit/s", 0.0, "higher", True)
KNOWN = {one.key: one for one in (ADDED, RATE)}
MEANS = {("cubic", "fifo"): 100.0, ("bbr", "fifo"): 20.0, ("cubic", "fq_codel"): 5.0, ("bbr", "fq_codel"): 5.0}


def groups(means: dict[tuple[str, ...], float], runs: int = 4, spread: float = 0.2, seed: int = 1, keys: tuple[str, ...] = ("cc", "qdisc")) -> list[Group]:
    chance = np.random.default_rng(seed)
    members = []
    for combination, mean in means.items():
        for k in range(runs):
            facts = Facts("", "valid", [], False, dict(zip(keys, combination, strict=True)))
            members.append(Member(f"{'-'.join(combination)}-{k}", facts, {"added": mean + spread * chance.standard_normal(), "rate.up": 9.5}))
    return by(members, keys)


def effects(made: Factorial | None) -> dict[str, Effect]:
    assert made is not None
    return {" x ".join(one.factors + one.levels): one for one in made.effects if one.key == "added"}


def test_effects_and_their_interaction() -> None:
    made = factorial(groups(MEANS), ("cc", "qdisc"), KNOWN)
    found = effects(made)
    assert [round(one.value) for one in found.values()] == [-40, -55, 80] and {one.combinations for one in found.values()} == {4}
    assert [one.outcome for one in found.values()] == ["lower", "lower", "higher"] and found["cc x bbr"].bases == ["cubic"]
    same = [one for one in made.effects if one.key == "rate.up"] if made is not None else []
    assert [(one.value, one.outcome) for one in same] == [(0.0, "same")] * 3
    lines = effect_lines(made) if made is not None else []
    assert lines[0] == "factors  cc: cubic, bbr; qdisc: fifo, fq_codel"
    assert any("cc bbr - cubic x qdisc fq_codel - fifo" in line and line.endswith("the effects differ") for line in lines)
    assert sum(line.endswith("better") for line in lines) == 2 and sum(line.endswith("no interaction") for line in lines) == 1
    assert "### Effects of the factors" in markdown([], [], made)


def test_an_effect_is_the_mean_over_the_other_factor_whatever_the_numbers_of_runs_are() -> None:
    some = groups(MEANS, spread=0.0)
    some[0].members += [Member(f"more-{k}", some[0].members[0].facts, {"added": 100.0, "rate.up": 9.5}) for k in range(20)]
    found = effects(factorial(some, ("cc", "qdisc"), KNOWN))
    assert [one.value for one in found.values()] == [-40.0, -55.0, 80.0] and all(one.p_corrected == 0 for one in found.values())


def test_cells_without_a_partner_do_not_count() -> None:
    without = {combination: mean for combination, mean in MEANS.items() if combination != ("bbr", "fq_codel")}
    made = factorial(groups(without), ("cc", "qdisc"), KNOWN)
    found = effects(made)
    assert {name: (round(one.value), one.combinations) for name, one in found.items()} == {"cc x bbr": (-80, 2), "qdisc x fq_codel": (-95, 2)}
    assert made is not None and any("1 of 4 combinations have no run" in note for note in made.notes)


def test_three_factors_with_three_levels() -> None:
    """The value is a sum of the levels and one product: all other interactions are zero."""
    combinations = product(("a", "b", "c"), ("x", "y"), ("0", "1"))
    means = {combination: 10.0 * "abc".index(combination[0]) + 3.0 * "xy".index(combination[1]) * int(combination[2]) for combination in combinations}
    made = factorial(groups(means, keys=("f", "g", "h"), spread=0.0), ("f", "g", "h"), {"added": ADDED})
    found = effects(made)
    assert (found["f x b"].value, found["f x c"].value, found["g x y"].value) == (10, 20, 1.5)
    assert found["g x h x y x 1"].value == 3 and found["f x g x b x y"].value == 0 and len(found) == 9


def test_one_factor_or_one_level_has_no_factorial() -> None:
    one = {combination: mean for combination, mean in MEANS.items() if combination[0] == "cubic"}
    assert factorial(groups(one), ("cc", "qdisc"), KNOWN) is None


def test_few_runs_and_lost_probes() -> None:
    made = factorial(groups(MEANS, runs=2), ("cc", "qdisc"), KNOWN)
    assert {one.outcome for one in effects(made).values()} == {"too few runs"} and made is not None and "3 runs in each combination" in made.notes[0]
    lost = groups(MEANS)
    lost[1].members[0].figures["added"] = math.inf
    made = factorial(lost, ("cc", "qdisc"), KNOWN)
    assert {one.combinations for one in effects(made).values()} == {2} and made is not None and "among lost probes in runs of bbr fifo" in made.notes[0]


def test_a_contrast_of_two_groups_is_that_of_welch() -> None:
    a, b = [1.0, 2.0, 4.0], [5.0, 9.0, 7.5, 6.0]
    one, other = contrast([a, b], [-1, 1]), difference(a, b)
    assert one.low is not None and one.p is not None
    assert (one.value, one.low, one.high, one.p) == pytest.approx((other.difference, other.low, other.high, other.p))
    with pytest.raises(ValueError, match="not finite"):
        contrast([[1.0, math.nan], b], [-1, 1])


def test_intervals_hold() -> None:
    """2,000 designs of four combinations with four runs and unequal spreads: the interval holds the true interaction, and no effect is found where
    there is none."""
    chance = np.random.default_rng(7)
    inside = wrong = 0
    for _ in range(2000):
        combinations = [10 + deviation * chance.standard_normal(4) for deviation in (0.3, 1.0, 2.0, 0.5)]
        found = contrast([list(one) for one in combinations], [1, -1, -1, 1])
        assert found.low is not None and found.high is not None and found.p is not None
        inside += found.low <= 0 <= found.high
        wrong += found.p < 0.05
    assert 0.93 < inside / 2000 < 0.985 and wrong == 2000 - inside


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs in each of four combinations: the depth of a queue, and a label that changes nothing."""
    root = tmp_path_factory.mktemp("combinations")
    for (title, depth), (label, shift) in product((("long", 80), ("short", 40)), (("day", 0), ("night", 0))):
        for i in range(3):
            name = f"{title}-{label}-{i}"
            path = synthetic(root, seconds=8, delay=2, seed=depth + 7 * i + len(label), title=title, depth_ms=depth + i + shift, name=name)
            run = open_run(path)
            meta = replace(run.meta, metadata=run.meta.metadata | {"labels": {"when": label}})
            write_finished(path, meta, {kind: run.table(kind) for kind in run.kinds()}, root / ".edited.tmp")
    return root


@pytest.mark.slow
def test_the_commands_print_and_draw_the_effects(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_command.main([str(runs), "--by", "title,when", "--markdown", str(tmp_path / "table.md")]) == 0
    out = capsys.readouterr().out
    assert "factors  title: long, short; when: day, night" in out
    (line,) = [line for line in out.splitlines() if line.startswith("title short - long  ") and "delay that load adds" in line]
    assert line.endswith("better") and "title short - long" in (tmp_path / "table.md").read_text()
    assert compare_command.main([str(runs), "--by", "title,when", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["factorial"]
    assert [one["levels"] for one in printed["factors"]] == [["long", "short"], ["day", "night"]]
    (added,) = [one for one in printed["effects"] if one["key"] == "added" and one["factors"] == ["title"]]
    assert added["outcome"] == "lower" and added["low"] < added["value"] < added["high"] < 0 and added["combinations"] == 4
    assert compare_command.main([str(runs), "--by", "title", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["factorial"] is None
    for kind in ("svg", "png", "pdf"):
        assert plot_command.main([str(runs), "--effects", "title,when", "-o", str(tmp_path / f"effects.{kind}")]) == 0
    text = (tmp_path / "effects.svg").read_text()
    assert "Effects of title and when" in text and ">day<" in text and ">night<" in text and ">long<" in text
    assert "12 runs in 4 combinations" in text and (tmp_path / "effects.png").stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize(("words", "status", "sentence"), [
    (["--effects", "title"], 2, "give two keys that have two values each"),
    (["--effects", "title,test"], 2, "give two keys that have two values each"),
    (["--effects", "title,nonesuch"], 2, "no property, setting or path of that name: 'nonesuch'"),
    (["--effects", "title,when", "-o", "effects.bmp"], 2, "the name must end in"),
])  # fmt: skip
def test_wrong_use(runs: Path, words: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plot_command.main([str(runs), *words]) == status
    assert sentence in capsys.readouterr().err
