# SPDX-License-Identifier: MIT OR Apache-2.0
"""The drain of the queue between load and idle."""

from __future__ import annotations

import numpy as np
import pytest
from ktrxer.run.phases import with_drain
from ktrxer.store import Host, Meta, Phase, RunWriter, Series, Zero, open_run

S, MS = 10**9, 10**6


def run_of(tmp_path, trip_ns, phases):
    """Probes each 10 ms; trip_ns(t_ns) is the round trip of each."""
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), phases[-1].to_ns)
    meta.phases, meta.series = phases, [Series(0, "Ping (ms) ICMP", "latency", "ms")]
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
    made = with_drain(run_of(tmp_path, queue, phases))
    drain = next(phase for phase in made if phase.name == "drain")
    assert drain.from_ns == 6 * S and drain.to_ns == pytest.approx(8 * S, abs=20 * MS)
    assert made[-1] == Phase("idle_after", drain.to_ns, 10 * S)


def test_without_a_queue_there_is_no_drain(tmp_path):
    spikes = run_of(tmp_path, lambda t: 20 * MS + (300 * MS if t == 9 * S else 0), PHASES)
    assert with_drain(spikes) == PHASES, "a spike three seconds after the load is not its queue"


def test_a_queue_that_never_empties_leaves_no_idle_time(tmp_path):
    made = with_drain(run_of(tmp_path, lambda t: 20 * MS + (2 * S if t >= 2 * S else 0), PHASES))
    assert [phase.name for phase in made] == ["idle_before", "load", "drain"] and made[-1].to_ns == 10 * S
