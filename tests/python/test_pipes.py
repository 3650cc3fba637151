# SPDX-License-Identifier: MIT OR Apache-2.0
"""When the pipes of a run are read, and figures that are computed without the slow function of numpy."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest
from ktrxer.run import pipes
from ktrxer.run.pipes import LONG_NS, PAUSE_NS, SHORT_NS, Pipes
from ktrxer.statistics.latency import quantile


def active(*, has_times: bool = True, much: bool = False, some: bool = False, opened: tuple[int, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(has_times=has_times, process=SimpleNamespace(much=much, some=some or much, open=set(opened)))


def pause(made: Pipes, *actives: SimpleNamespace, watched: bool = False) -> int:
    made.were_read(0, actives, watched=watched)
    return made.next_ns


def test_pipes_with_little_output_are_read_once_a_second():
    made = Pipes()
    assert [pause(made, active()) for _ in range(4)] == [2 * PAUSE_NS, 4 * PAUSE_NS, LONG_NS, LONG_NS]
    assert pause(made, active(some=True)) == LONG_NS, "half of a buffer: no later than now"
    assert [pause(made, active(), active(much=True)) for _ in range(2)] == [PAUSE_NS, SHORT_NS], "a full one"
    assert pause(made, active()) == PAUSE_NS


@pytest.mark.parametrize(("times", "watched"), [(False, False), (True, True)])
def test_times_of_reading_stay_as_exact_as_before(times, watched):
    made = Pipes()
    assert {pause(made, active(), active(has_times=times), watched=watched) for _ in range(4)} == {PAUSE_NS}


def test_the_end_of_a_process_ends_the_wait_and_output_does_not():
    made = Pipes()
    read, write = os.pipe()
    made.add(active(opened=(read,)))
    try:
        made.next_ns = (now := time.monotonic_ns()) + 60 * pipes.S
        os.write(write, b"output")
        made.wait(now + pipes.S // 20, now)
        assert time.monotonic_ns() >= now + pipes.S // 20 and made.next_ns > now
        os.close(write)
        made.wait(now + 50 * pipes.S, now)
        assert time.monotonic_ns() < now + 40 * pipes.S and made.next_ns == 0
        assert [descriptor for _, descriptor in made.ready()] == [read]
    finally:
        made.remove(read)
        os.close(read)


def test_a_quantile_is_that_of_numpy():
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 10, 101):
        values = rng.exponential(1e6, count)
        for share in (0.1, 0.25, 0.5, 0.9, 0.99):
            assert quantile(values, share) == float(np.quantile(values, share))
