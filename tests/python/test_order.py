# SPDX-License-Identifier: MIT OR Apache-2.0
"""The order of runs where the clock of their host was set between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import synthetic as made_runs
from compared import P95, facts_at, member
from ktrxer.analyse import grouping
from ktrxer.analyse.compare import Comparison, compare
from ktrxer.analyse.grouping import Group, Member
from ktrxer.analyse.order import order
from ktrxer.store import Zero


def stepped(boots: tuple[str | None, str | None], numbered: bool) -> Comparison:
    """Interleaved runs whose figure grows; from the middle on the clock is wrong by -2 h."""
    made: dict[str, list[Member]] = {"A": [], "B": []}
    for i in range(24):
        late = i >= 12
        facts = facts_at(2.0 * i, wrong_s=-7200 * late, boot=boots[late], number=(i + 1) * numbered)
        made["AB"[i % 2]].append(Member(f"r{i:02}", facts, {P95.key: 50.0 + i}))
    return compare(Group("A", made["A"]), Group("B", made["B"]), {P95.key: P95})


@pytest.mark.parametrize(
    ("boots", "numbered", "said"),
    [
        (("one", "one"), False, "the clock of near was set back by 7200 s between r11 and r12: the order and the drift"),
        (("one", "two"), True, "the clock was set back between runs: r12 (number 13 of its batch) is 7080 s before r11 (12): the order"),
        ((None, None), True, "the clock was set back between runs: r12 (number 13 of its batch) is 7080 s before r11 (12): the order"),
    ],
)
def test_a_clock_that_was_set_between_runs_is_named_and_hides_no_drift(boots, numbered, said):
    made = stepped(boots, numbered)
    assert sum("the clock" in note for note in made.notes) == 1
    assert any(note.startswith(said) for note in made.notes)
    assert made.rows[0].drift is not None
    assert made.rows[0].drift.per_hour == pytest.approx(30, rel=0.01)  # 1 ms in each 2 minutes


def test_a_clock_that_was_set_forward_changes_no_slope():
    made = [member(f"r{i}", 2.0 * i) for i in range(8)]
    for i in range(4, 8):
        made[i].facts = facts_at(2.0 * i, wrong_s=86_400)
    found = order(made)
    assert [round(after - before) for before, after in pairwise(found.times(made))] == [120] * 7
    assert "was set forward by 86400 s (or the host slept) between r3 and r4" in found.notes[0]


def test_a_clock_whose_rate_is_corrected_makes_no_step():
    made = [Member(f"r{i}", facts_at(60.0 * i, wrong_s=1.6 * i, number=i + 1), {}) for i in range(8)]  # 450 ppm
    found = order(made)
    assert not found.notes
    assert found.at["r1"] - found.at["r0"] == pytest.approx(3601.6)


def test_guests_of_virtual_time_share_no_clock():
    """The boot id of such a guest follows from its seed, so two batches with one seed have runs with equal ids. The run of a batch that was
    slower began later by the clock of the machine, and its monotonic clock may be less."""
    members = []
    for which, (began_s, zero_ns) in enumerate(((0.0, 5_128_058_816), (4.0, 5_108_850_624))):
        place = {"topology": {"name": "net", "place": "virtual time"}}
        meta = replace(made_runs.describe(8, 2, ""), metadata=place)
        meta.zero = Zero(zero_ns, 1_795_534_651_128_008_384 + round(began_s * 1e9), 256, "17c5ac1f-f866-40d3-95d8-b8f77867d3b0")
        meta.created = f"2026-11-24T15:37:{28 + began_s:02.0f}.000000Z"
        members.append(Member(f"r{which}", grouping.facts(meta), {}))
    found = order(members)
    assert not found.notes
    assert found.at["r1"] - found.at["r0"] == pytest.approx(4)


def test_labels_that_no_batch_made_give_no_order():
    meta = made_runs.describe(8, 2, "")
    for labels in ({"number": "5"}, {"batch_id": "1", "number": "five"}, {"batch_id": "1"}, {"batch_id": "1", "number": "9" * 30}, [], "x"):
        assert grouping.facts(replace(meta, metadata={"labels": labels})).batch == ""
