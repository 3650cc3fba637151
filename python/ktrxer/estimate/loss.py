# SPDX-License-Identifier: MIT OR Apache-2.0
"""In which direction each probe was lost, by the count that a stateful reflector puts into its answers (RFC 8762, section 4.3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP


def directions(seq: NDArray[Any], state: NDArray[Any], far_seq: NDArray[Any], stateful: bool | None = None) -> NDArray[np.uint8]:
    """New states. Of the probes between two answered ones, the reflector counted those that were lost on the way back. All or none of them:
    then each is known; some: then only their number is, and they stay as they were. `far_seq` has NaN where there was no answer, or no
    count;
    `stateful`: whether the reflector counts at all, None when that is not known."""
    made = np.asarray(state, np.uint8).copy()
    order = np.argsort(seq, kind="stable")
    s, st, far = np.asarray(seq, np.int64)[order], made[order], np.asarray(far_seq, np.float64)[order]
    known = np.nonzero((st == ANSWERED) & ~np.isnan(far))[0]
    # One that copies the probe's own number looks like one that counts and had every probe: then nothing can be told.
    if stateful is None:
        stateful = not np.array_equal(far[known], s[known])
    if not stateful:
        return made
    for a, b in zip(known[:-1].tolist(), known[1:].tolist(), strict=True):
        lost = [k for k in range(a + 1, b) if st[k] == LOST]
        if not lost or s[b] - s[a] - 1 != len(lost):
            continue
        came = far[b] - far[a] - 1
        if came == 0:
            made[order[lost]] = LOST_UP
        elif came == len(lost):
            made[order[lost]] = LOST_DOWN
    return made
