# SPDX-License-Identifier: MIT OR Apache-2.0
"""Panel of the delays in the queues of the two hosts' own devices. They are part of each delay, but do not arise on the path."""

from __future__ import annotations

import numpy as np

from ktrxer.panels.latency import latencies, looks_of, probes_of
from ktrxer.panels.model import Axis, Panel, Series
from ktrxer.panels.parts import DELAYS, S, key_of, label_of, panel_over_time, unit_of
from ktrxer.store import Run

HOSTS = (("own_queue_ns", "this host", ()), ("far_queue_ns", "far host", (2.0, 2.0)))


def host_queues(run: Run) -> Panel | None:
    """The delay of each probe in this host's queue, and of its answer in the far host's queue, if these were measured."""
    found = latencies(run)
    looks = dict(zip((series.id for series in found), looks_of(found), strict=True))
    parts = [(host, dash, *one) for column, host, dash in HOSTS for one in probes_of(found, run, column)]
    if not parts:
        return None
    scale, unit = unit_of([value for *_, value in parts], DELAYS)
    drawn = []
    for host, dash, series, arrays, value in parts:
        there = ~np.isnan(value)
        drawn.append(
            Series(
                key_of(series) if host == HOSTS[0][1] else f"{key_of(series)}, {host}", f"{label_of(series)}, {host}", "line",
                arrays["t_ns"][there] / S, value[there] / scale, looks[series.id][0], dash, 1.0, hint=f"{series.name}, {host}",
            )
        )  # fmt: skip
    note = "From the entry into the packet scheduler to the driver. It is part of the round trip, and of the delay up or down."
    return panel_over_time(run, "host-queues", "Delay in the two hosts' own queues", Axis("Delay", unit), drawn, [note])
