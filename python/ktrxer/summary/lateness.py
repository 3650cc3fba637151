# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lateness of the first probe of each train."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import Delays, delays
from ktrxer.store import Run
from ktrxer.store.columns import DUPLICATE


def first_lateness(run: Run) -> Delays | None:
    """Lateness in us of the earliest probe of each train, if a train has several: the probes of one process with the same planned time. The
    other probes wait for the send calls of the earlier ones."""
    senders: dict[int | None, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        sent = ~np.isnan(arrays["lateness_ns"]) & (arrays["state"] != DUPLICATE)
        late = arrays["lateness_ns"][sent]
        runner = run.meta.runner_of(series)
        process = runner.process if runner is not None and runner.process is not None else series.runner
        senders.setdefault(process, []).append((arrays["t_ns"][sent] - late.astype(np.int64), late))
    firsts, trains = [np.empty(0)], False
    for columns in senders.values():
        planned, late = (np.concatenate(column) for column in zip(*columns, strict=True))
        times, train = np.unique(planned, return_inverse=True)
        first = np.full(len(times), np.inf)
        np.minimum.at(first, train, late)
        firsts.append(first)
        trains = trains or len(times) < len(late)
    return delays(np.concatenate(firsts) / 1e3) if trains else None
