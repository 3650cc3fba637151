# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ends of the phases: the last round trip before the load, and the drain of its queue."""

from __future__ import annotations

import numpy as np
import pytest
from ktrxer.run.phases import as_measured
from ktrxer.store import Host, Meta, Phase, RunWriter, Series, Zero, open_run

S, MS = 10**9, 10**6


def run_of(tmp_path, trip_ns, phases):
    """Probes each 10 ms; trip_ns(t_ns) is the round trip of each."""
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), phases[-1].to_ns)
    meta.phases, meta.series = phases, [Series(0, "Ping (ms) ICMP", "latency", "ms")]
    tmp_path.mkdir(exist_ok=True)
    writer = RunWriter(tmp_path, meta)
    at = np.arange(0, meta.length_ns, 10 * MS)
    writer.append("latency", {"series": [0] * len(at), "t_ns": at.tolist(), "seq": list(range(len(at))), "state": [0] * len(at),
                              "rtt_ns": [int(trip_ns(t)) for t in at]})
    return open_run(writer.finish())


PHASES = [Phase("idle_before", 0, 2 * S), Phase("load", 2 * S, 6 * S), Phase("idle_after", 6 * S, 10 * S)]


def queue(t):
    """A queue of two seconds, which drains after the load."""
    return 20 * MS + (2 * S if 2 * S <= t < 6 * S else max(0, 8 * S - t) if t >= 6 * S else 0)


@pytest.mark.parametrize("phases", [PHASES, PHASES[1:]])
def test_the_queue_of_the_load_is_not_idle(tmp_path, phases):
    made = as_measured(run_of(tmp_path, queue, phases))
    drain = next(phase for phase in made if phase.name == "drain")
    assert drain.from_ns == 6 * S and drain.to_ns == pytest.approx(8 * S, abs=20 * MS)
    assert made[-1] == Phase("idle_after", drain.to_ns, 10 * S)


def test_without_a_queue_there_is_no_drain(tmp_path):
    spikes = run_of(tmp_path, lambda t: 20 * MS + (300 * MS if t == 9 * S else 0), PHASES)
    assert as_measured(spikes)[1:] == PHASES[1:], "a spike three seconds after the load is not its queue"


@pytest.mark.parametrize("trip_ms", [1, 20, 700])
def test_probes_on_their_way_when_the_load_begins_are_not_idle(tmp_path, trip_ms):
    """Those of the last round trip meet the queue."""
    late = 2 * S - trip_ms * MS
    run = run_of(tmp_path, lambda t: trip_ms * MS + (500 * MS if late < t < 6 * S else 0), PHASES)
    idle, *others = as_measured(run)
    assert idle.name == "idle_before" and idle.from_ns == 0
    assert late - max(MS, trip_ms * MS // 8) <= idle.to_ns <= late
    assert others == PHASES[1:], "the load begins as planned"


def test_a_path_that_is_longer_than_the_idle_time_has_none(tmp_path):
    for trip in (1900 * MS, 2500 * MS):
        made = as_measured(run_of(tmp_path / str(trip), lambda t: trip, PHASES))  # noqa: B023
        assert [phase.name for phase in made] == ["load", "idle_after"]


def test_without_answers_the_phases_are_those_of_the_plan(tmp_path):
    assert as_measured(run_of(tmp_path, lambda t: 20 * MS, [Phase("load", 0, S)])) == [Phase("load", 0, S)]
    idle = [Phase("idle_before", 0, S)]
    assert as_measured(run_of(tmp_path / "idle", lambda t: 20 * MS, idle)) == idle


def test_a_queue_that_never_empties_leaves_no_idle_time(tmp_path):
    made = as_measured(run_of(tmp_path, lambda t: 20 * MS + (2 * S if t >= 2 * S else 0), PHASES))
    assert [phase.name for phase in made] == ["idle_before", "load", "drain"] and made[-1].to_ns == 10 * S
