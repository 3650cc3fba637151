# SPDX-License-Identifier: MIT OR Apache-2.0
"""In which direction each probe was lost, by the count that a stateful reflector puts into its answers (RFC 8762, section 4.3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE

REACH = 100  # probes: so far from a place of overtaking its effect on the counts may reach


def directions(
    seq: NDArray[Any], state: NDArray[Any], far_seq: NDArray[Any], stateful: bool | None = None, doubled_up: bool = False
) -> NDArray[np.uint8]:
    """New states. The counts that no answer carries are those of the probes whose answers were lost. Between two answers there are as many
    of them as lost probes: all were lost down. None: all were lost up. Some: only their number is known, and the states stay as they were.

    They also stay where probes overtook each other: a smaller count after a larger one, or more counts without an answer than lost probes.
    Overtaking leaves no such trace when the answer of one of the two probes was lost: then a direction may be wrong.
    `far_seq` has NaN where there was no answer, or no count; `stateful`: whether the reflector counts at all, None when that is not known;
    `doubled_up`: probes arrived twice, so a count without an answer may be a copy's, and proves no loss down."""
    made = np.asarray(state, np.uint8).copy()
    order = np.argsort(seq, kind="stable")
    s, st, far = np.asarray(seq, np.int64)[order], made[order], np.asarray(far_seq, np.float64)[order]
    known = np.nonzero(np.isin(st, (ANSWERED, TOO_LATE)) & ~np.isnan(far))[0]
    # One that copies the probe's own number looks like one that counts and had every probe: then nothing can be told.
    if stateful is None:
        stateful = not np.array_equal(far[known], s[known])
    if not stateful or len(known) < 2:
        return made
    lost = st == LOST
    losses = np.concatenate([[0], np.cumsum(lost)])  # before each row
    a, b = known[:-1], known[1:]
    gone = losses[b] - losses[a]
    free = np.diff(far[known].astype(np.int64)) - 1
    overtaken = s[b][(free < 0) | (free > gone)]
    if far[known[0]] > losses[known[0]]:
        overtaken = np.concatenate([s[known[:1]], overtaken])
    overtaken = np.sort(overtaken)
    clean = np.searchsorted(overtaken, s[a] - REACH) == np.searchsorted(overtaken, s[b] + REACH, side="right")
    whole = (s[b] - s[a] - 1 == gone) & (gone > 0) & clean
    for k in np.nonzero(whole & ((free == 0) | (free == gone)))[0].tolist():
        if free[k] == 0:
            made[order[a[k] + 1 : b[k]]] = LOST_UP
        elif not doubled_up:
            made[order[a[k] + 1 : b[k]]] = LOST_DOWN
    return made
