# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lost probes by direction: in each phase, and in the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.facts import counts_losses
from ktrxer.run import losses
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.store.meta import Phase, Series

WHOLE = "whole run"
PHASES = (("idle", ("idle_before", "idle_after")), ("load", ("load",)), ("drain", ("drain",)))


@dataclass(frozen=True)
class Loss:
    name: str  # of the phase
    sent: int
    lost: int
    lost_up: int
    lost_down: int
    too_late: int = 0  # answered after the time-out; not counted as lost

    @property
    def unknown(self) -> int:
        """Lost in a direction that is not known."""
        return self.lost - self.lost_up - self.lost_down


def of_phases(run: Run) -> list[Loss]:
    times = [sorted(_times(run, phase) for phase in run.meta.phases if phase.name in phases) for _, phases in PHASES]
    total = np.zeros((len(PHASES), 5), np.int64)
    for series in _counting(run):
        t, (state, spare) = run.arrays(series)["t_ns"], _placed(run, series)
        total += _as_the_session(np.array([_numbers(_counted(t, state, some), spare) for some in times]), run, series)
    return [Loss(name, *row) for (name, _), row in zip(PHASES, total.tolist(), strict=True) if row[0]]


def _times(run: Run, phase: Phase) -> tuple[int, int]:
    """Probes of the last round trip before the load are in no phase. They meet the load, so their losses are those of the load."""
    before = run.meta.phase("idle_before") if phase.name == "load" else None
    return min(before.to_ns, phase.from_ns) if before is not None else phase.from_ns, phase.to_ns


def _counting(run: Run) -> list[Series]:
    return [series for series in run.meta.of_kind("latency") if counts_losses(run, series)]


def _counted(t: NDArray[np.int64], state: NDArray[np.int64], times: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """The probes of these times by state."""
    counts, end = np.zeros(TOO_LATE + 1, np.int64), 0
    for start, after in np.searchsorted(t, times).reshape(-1, 2).tolist():
        counts += np.bincount(state[max(start, end) : after], minlength=TOO_LATE + 1)
        end = max(end, after)  # phases of a file of unknown origin may overlap
    return counts


def _as_the_session(numbers: NDArray[np.int64], run: Run, series: Series) -> NDArray[np.int64]:
    """The session knows the direction of losses that have no place in the order of the samples: if all of them were in one phase, that
    phase has the directions of the whole run. A part has no more losses of unknown direction than the whole."""
    session = losses.session_of(run.meta, series)
    lost = numbers[:, 1]
    if session is not None and np.count_nonzero(lost) == 1:
        split, phase = session.split, int(lost.argmax())
        if split.up + split.down + split.unknown == lost[phase]:
            numbers[phase, 2:4] = split.up, split.down
    return numbers


def unplaced(parts: Sequence[Loss], whole: Loss | None) -> int:
    """Losses that have a direction in the whole run, but are of unknown direction in its parts, because their phase is not known."""
    return max(0, sum(one.unknown for one in parts) - whole.unknown) if whole is not None and len(parts) > 1 else 0


def of_run(run: Run) -> Loss | None:
    """The accounts of the processes, where they have them, because a session sees more than the samples: copies, and probes after the last
    measured one. Else those of the samples."""
    total = np.zeros(5, np.int64)
    for series in _counting(run):
        session = losses.session_of(run.meta, series)
        if session is not None:
            split = session.split
            total += (session.sent, split.up + split.down + split.unknown, split.up, split.down, session.too_late)
        else:
            total += _numbers(np.bincount(run.arrays(series)["state"].astype(np.int64), minlength=TOO_LATE + 1), (0, 0))
    return Loss(WHOLE, *total.tolist()) if total[0] else None


def _numbers(counts: NDArray[np.int64], spare: Sequence[int]) -> list[int]:
    lost, late = int(counts[[LOST, LOST_UP, LOST_DOWN]].sum()), int(counts[TOO_LATE])
    up, down = (max(0, int(counts[state]) - more) for state, more in zip((LOST_UP, LOST_DOWN), spare, strict=True))
    return [int(counts[ANSWERED]) + late + lost, lost, up, down, late]


def _placed(run: Run, series: Series) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """States, and how many of the losses up and down in any phase may be no losses of the path."""
    rows, session = run.arrays(series), losses.session_of(run.meta, series)
    state = rows["state"].astype(np.int64)
    if session is None:
        return state, (0, 0)
    reported = session.split.up, session.split.down
    # The file has certain states only, and a file of an earlier version fewer of them.
    if all(np.count_nonzero(state == way) >= most for way, most in zip((LOST_UP, LOST_DOWN), reported, strict=True)):
        return state, (0, 0)
    state = losses.placed(run.meta, series, rows, certain=False).astype(np.int64)
    up, down = (max(0, int((state == way).sum()) - most) for way, most in zip((LOST_UP, LOST_DOWN), reported, strict=True))
    return state, (max(up, session.at_server), down)
