# SPDX-License-Identifier: MIT OR Apache-2.0
"""The direction in which each probe was lost, from the counts of a stateful reflector (methods/estimate/loss_directions.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics import native


@dataclass(frozen=True)
class Split:
    """The losses of one session by direction, as the session itself reports them at its end."""

    up: int
    down: int
    unknown: int


def directions(
    seq: NDArray[Any],
    state: NDArray[Any],
    far_seq: NDArray[Any],
    stateful: bool | None = None,
    doubled_up: bool = False,
    split: Split | None = None,
    withdraw: bool = True,
) -> NDArray[np.uint8]:
    """New states. `far_seq` is NaN where an answer or its count is missing. `stateful`: whether the reflector counts; None if this is
    unknown. `doubled_up`: some probes arrived twice, so a missing count may be that of a copy and is no evidence of a loss down.
    `split`: where all losses of a direction are known, the others are of the other direction. `withdraw`: if more losses of a direction
    have a place than the session reports, some of them are not of the path (the server refused the probes), and none is certain."""
    order = np.argsort(seq, kind="stable")
    rows = np.stack([np.asarray(seq, np.int64), np.where(np.isnan(far_seq), -1, far_seq).astype(np.int64), np.asarray(state, np.int64)], 1)
    rows = np.ascontiguousarray(rows[order])
    counts = np.asarray([split.up, split.down, split.unknown], np.int64) if split is not None else None
    native.count(
        "loss_directions", *native.numbers(rows, np.int64, width=3), native.uint32(2 if stateful is None else int(stateful)),
        native.uint32(doubled_up), native.uint32(withdraw), native.numbers(counts, np.int64)[0] if counts is not None else None,
    )  # fmt: skip
    made = np.empty(len(rows), np.uint8)
    made[order] = rows[:, 2]
    return made
