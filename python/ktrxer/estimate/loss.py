# SPDX-License-Identifier: MIT OR Apache-2.0
"""The direction in which each probe was lost, from the count that a stateful reflector puts into its answers (RFC 8762, section 4.3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE

REACH = 100  # probes: up to this distance a reordered probe may affect the counts of others


def directions(
    seq: NDArray[Any], state: NDArray[Any], far_seq: NDArray[Any], stateful: bool | None = None, doubled_up: bool = False
) -> NDArray[np.uint8]:
    """New states, from the reflector's counts that no answer carries. These are the counts of probes whose answers were lost. Between two
    answers:

    - as many such counts as lost probes: all were lost down;
    - none: all were lost up;
    - fewer: only their number is known, and the states do not change.

    The states also do not change near reordered probes: a count smaller than the one before, or more missing counts than lost probes. If
    the
    answer to one of two reordered probes was lost, neither sign appears, and a direction may be wrong.
    `far_seq` is NaN where an answer or its count is missing. `stateful`: whether the reflector counts; None if this is unknown.
    `doubled_up`: some probes arrived twice, so a missing count may be that of a copy and is no evidence of a loss down."""
    made = np.asarray(state, np.uint8).copy()
    order = np.argsort(seq, kind="stable")
    s, st, far = np.asarray(seq, np.int64)[order], made[order], np.asarray(far_seq, np.float64)[order]
    known = np.nonzero(np.isin(st, (ANSWERED, TOO_LATE)) & ~np.isnan(far))[0]
    # A reflector that copies the probe's number cannot be distinguished from one that counts and received every probe.
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
