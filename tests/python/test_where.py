# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where load adds delay, and round trips that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest
from ktrxer.run.contradictions import contradictions
from ktrxer.statistics.one_way import one_way
from ktrxer.store import open_run
from ktrxer.summary import figures
from ktrxer.summary.text import late_of, lines, not_in_figures, places
from ktrxer.summary.where import DOWN, FAR, OWN, UP, parts
from ktrxer.units import share
from synthetic import synthetic

MS = 1_000_000


def columns(rtt, up, down, own, far):
    return {name: np.asarray(values, float) * MS for name, values in zip(
        ("rtt_ns", "up_ns", "down_ns", "own_queue_ns", "far_queue_ns"), (rtt, up, down, own, far), strict=True)}


IDLE = columns([10, 10], [5, 5], [5, 5], [0, 0], [0, 0])


@pytest.mark.parametrize(("loaded", "largest", "share"), [
    (columns([110, 110], [105, 105], [5, 5], [100, 100], [0, 0]), OWN, 1.0),
    (columns([110, 110], [105, 105], [5, 5], [0, 0], [0, 0]), UP, 1.0),
    (columns([110, 110], [5, 5], [105, 105], [0, 0], [100, 100]), FAR, 1.0),
    (columns([110, 110], [30, 30], [80, 80], [0, 0], [0, 0]), DOWN, 0.75),
])
def test_the_place_of_the_delay(loaded, largest, share):
    found = parts(IDLE, loaded, "tbf")
    assert (found[0].place, found[0].share) == (largest, pytest.approx(share))
    assert sum(part.added_ms for part in found) == pytest.approx(100)
    text = places(found)
    assert text.startswith(f"{100 * share:.1f} ms {largest}") and ("(tbf)" in text)


def test_a_queue_that_was_not_measured_is_part_of_its_direction():
    unknown = columns([110, 110], [105, 105], [5, 5], [np.nan, np.nan], [np.nan, np.nan])
    idle = columns([10, 10], [5, 5], [5, 5], [np.nan, np.nan], [np.nan, np.nan])
    assert [(part.place, part.added_ms) for part in parts(idle, unknown)] == [(UP, pytest.approx(100)), (DOWN, pytest.approx(0))]
    assert parts(idle, columns([110], [np.nan], [np.nan], [np.nan], [np.nan])) == [], "no direction is known"


def test_own_queues_do_not_widen_the_bound_of_one_way_delays():
    """Idle 1 ms in each direction, then 100 ms in this host's own queue: the uncertainty does not grow with that queue."""
    sent = np.arange(200) * 10 * MS
    own = np.where(np.arange(200) % 2, 100 * MS, 60 * MS).astype(float)  # never empty
    trip = 2 * MS + own
    far = sent + 5_000 * MS + 1 * MS + own.astype(np.int64)
    blind, aware = one_way(sent, trip, far), one_way(sent, trip, far, own, np.zeros(200))
    assert blind is not None and aware is not None
    assert aware.bound_ns.max() < 1.2 * MS < 20 * MS < blind.bound_ns.max()
    assert np.all(np.abs(aware.up_ns - (1 * MS + own)) <= aware.bound_ns + 1)
    assert np.allclose(aware.up_ns + aware.down_ns, trip)


def test_kinds_that_agree_and_kinds_that_do_not(tmp_path):
    agree = open_run(synthetic(tmp_path, seconds=24, delay=2, name="agree"))
    # Only the probes: the flows of the synthetic run have an independent round trip.
    assert not [one.text for one in contradictions(agree) if "ICMP" in one.text]
    apart = open_run(synthetic(tmp_path, seconds=24, delay=2, icmp_more_ms=45, name="apart"))
    (told,) = [one.text for one in contradictions(apart) if "ICMP" in one.text]
    assert "UDP and ICMP round trips of the same class contradict each other" in told and "ms" in told and "they take different paths, or" in told


def test_the_summary_has_the_line(tmp_path):
    run = open_run(synthetic(tmp_path, seconds=14, delay=2))
    summary = figures.summarise(run)
    assert [part.place for part in summary.where][:2] == [UP, DOWN]
    assert sum(part.share for part in summary.where) == pytest.approx(1, abs=0.05)


def test_what_is_late_and_what_is_in_no_figure_is_counted(tmp_path):
    run = open_run(synthetic(tmp_path, seconds=14, delay=2))
    for runner, late, after in zip((r for r in run.meta.runners if r.kind in ("stamp", "ping")), (7, 5), (1000.0, 100.0), strict=False):
        runner.end = (runner.end or {}) | {"late": late, "sent": 1000, "late_after_us": after, "untimed": 2}
    made = figures.summarise(run)
    assert late_of(made) in ("7 of 1000 late (by more than 1000 us)", "5 of 1000 late (by more than 100 us), 7 of 1000 late (by more than 1000 us)")
    assert made.left_out["without stamps"] in (2, 4)
    assert any(late_of(made) in line for line in lines(made)) and not_in_figures(made) in lines(made)


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(260, 8000, "3.25 %"), (1, 8000, "0.01 %"), (3, 100, "3 %"), (1, 7, "14 %"), (0, 1, "0 %"), (5, 10**7, "0.0001 %")]
)
def test_a_share_has_the_digits_that_its_count_can_have(part, whole, text):
    assert share(part, whole) == text


@pytest.mark.parametrize(("own_ms", "qdisc"), [(100, "of a lower device"), (0, "noqueue")])
def test_a_queue_below_a_device_without_one(own_ms, qdisc):
    """A bridge's own qdisc is noqueue, and the one of its port has the queue."""
    found = parts(IDLE, columns([110, 110], [105, 105], [5, 5], [own_ms] * 2, [0, 0]), "noqueue")
    assert next(part.qdisc for part in found if part.place == OWN) == qdisc
