# SPDX-License-Identifier: MIT OR Apache-2.0
"""Events of a run that have a time and no value: packets that a queue dropped or marked, segments that were sent again. They come from
counters, so each row has the time of the sample after the event, and the number of events since the sample before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ktrxer.panels import palette
from ktrxer.panels.model import EventKind, EventRow, Floats
from ktrxer.panels.parts import S, key_of
from ktrxer.store import Run

MOST_ROWS = 12
QUEUE_EVENTS: tuple[tuple[str, EventKind], ...] = (("drops", "drop"), ("marks", "mark"))  # column and kind


def rises(t_ns: NDArray[np.int64], counts: Floats) -> tuple[Floats, Floats]:
    """The times at which a counter has risen, and the rise. A counter that falls was restarted: the fall is no event."""
    known = ~np.isnan(counts)
    t, counted = t_ns[known], counts[known]
    rise = np.diff(counted)
    return t[1:][rise > 0] / S, rise[rise > 0]


def event_rows(run: Run) -> list[EventRow]:
    """One row for each kind and each queue, and one for each flow that sent again; at most MOST_ROWS."""
    made: list[EventRow] = []
    sources: list[tuple[str, str, EventKind, NDArray[np.int64], Floats]] = []
    for series in run.meta.of_kind("qdisc"):
        arrays = run.arrays(series)
        for column, kind in QUEUE_EVENTS:
            sources.append((key_of(series), series.name, kind, arrays["t_ns"], np.asarray(arrays[column], np.float64)))
    for series in run.meta.of_kind("tcp_info"):
        arrays = run.arrays(series)
        at_sender = arrays["end"] == (0 if series.direction == "up" else 1)
        rows = at_sender if at_sender.any() else np.ones(len(at_sender), bool)
        sources.append((key_of(series), series.name, "retransmit", arrays["t_ns"][rows], arrays["retransmits"][rows]))
    looks = palette.looks([None] * len(sources))
    for (key, label, kind, t_ns, counts), (color, _) in zip(sources, looks, strict=True):
        x, rise = rises(t_ns, counts)
        if len(x):
            made.append(EventRow(key, f"{label}: {kind}", kind, x, color, rise))
    return made[:MOST_ROWS]
