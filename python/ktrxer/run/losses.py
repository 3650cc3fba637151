# SPDX-License-Identifier: MIT OR Apache-2.0
"""Losses of a session by direction: how many the process itself has counted, and which probes they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.loss import Split, directions
from ktrxer.store.columns import DUPLICATE, LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Meta, Series


@dataclass(frozen=True)
class Session:
    """The accounts of the probes of one series, from the last object of their process."""

    sent: int
    too_late: int
    split: Split
    at_server: int  # requests that the server refused or dropped, of all its clients: up to so many losses up are none of the path


def session_of(meta: Meta, series: Series) -> Session | None:
    """None: the process has not ended by itself, or counts no losses by direction."""
    end = _end(meta, series)
    at_server = [end.get(name, 0) for name in ("server_refused", "server_dropped")]
    classes = end.get("classes")
    if classes is not None:
        mine = [one.id for one in meta.of_kind("latency") if one.runner == series.runner]
        end = classes[mine.index(series.id)] if len(classes) == len(mine) else {}
    if not {"sent", "lost", "lost_unknown"} <= end.keys():
        return None
    # No direction at all is known, if the reflector does not count.
    sent, lost, up, down, unknown = (end.get(name, 0) for name in ("sent", "lost", "lost_up", "lost_down", "lost_unknown"))
    if min(sent, lost, up, down, unknown, *at_server) < 0:
        return None
    # Schema 1 counts the late ones as lost.
    return Session(sent, end.get("too_late", lost - up - down - unknown), Split(up, down, unknown), sum(at_server))


def _end(meta: Meta, series: Series) -> dict[str, Any]:
    runner = meta.runner_of(series)
    return runner.result if runner is not None else {}


def placed(meta: Meta, series: Series, rows: Mapping[str, NDArray[Any]], certain: bool) -> NDArray[np.uint8]:
    """The states of the probes of one series, each loss with its direction, if that is known (statistics/loss.py). `certain`: without the
    directions of probes that may be no losses of the path."""
    end, session = _end(meta, series), session_of(meta, series)
    made = np.asarray(rows["state"], np.uint8).copy()
    if session is not None:
        made[np.isin(made, (LOST_UP, LOST_DOWN))] = LOST
    first = made != DUPLICATE
    made[first] = directions(
        rows["seq"][first], made[first], rows["far_seq"][first], end.get("reflector_stateful"),
        bool(end.get("duplicates_up")), session.split if session is not None else None, certain,
    )  # fmt: skip
    if certain and session is not None and session.at_server:
        made[made == LOST_UP] = LOST
    return made
