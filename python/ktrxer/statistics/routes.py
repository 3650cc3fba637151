# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stopping points of `ktrxer trace`, and the queues of `ktrxer trace --load`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ktrxer.statistics import native


def mda_probes(hops: int, failure: float = 0.05) -> int:
    """How many probes with different flow identifiers exclude another next hop after hops - 1 were seen, but for `failure`."""
    count: int = native.function("mda_probes")(native.uint32(hops), ctypes.c_double(failure))
    if count < 0:
        native.fail(count, f"{hops} next hops, a failure of {failure}: hops from 2 to 256, a failure between 0 and 1")
    return count


@dataclass(frozen=True)
class HopQueue:
    """Times are medians, uncertainties have a level of 99 %. Figures are None where too few probes had an answer."""

    idle_answers: int
    loaded_answers: int
    fills: bool  # the queue between the hop `after` and this one
    idle_ns: int | None = None
    loaded_ns: int | None = None
    added_ns: int | None = None
    added_uncertainty_ns: int | None = None
    after: int | None = None  # the last known hop before this one
    queue_ns: int | None = None
    queue_uncertainty_ns: int | None = None


@dataclass(frozen=True)
class HopQueues:
    hops: tuple[HopQueue, ...]  # hops[0] is the host that probes
    fullest: int | None  # the hop in front of which the queue with the largest delay is, 0: the own queue; None: no queue fills


def hop_queues(idle_ns: npt.ArrayLike, loaded_ns: npt.ArrayLike, own: tuple[npt.ArrayLike, npt.ArrayLike] | None = None) -> HopQueues:
    """The queue of a path that fills under load, by round trips without the load and with it: a row for each hop, a column for each
    repetition; negative: no answer. `own`: delays in the queue of the host that probes, without the load and with it."""
    tables = [_table(values, None if own is None else own[loaded]) for loaded, values in enumerate((idle_ns, loaded_ns))]
    if len(tables[0]) != len(tables[1]):
        raise ValueError(f"{len(tables[0]) - 1} hops without the load, {len(tables[1]) - 1} with it")
    hops = len(tables[0])
    arguments: list[object] = []
    for table in tables:
        arguments += [native.numbers(table, np.int64)[0], ctypes.c_size_t(table.shape[1])]
    found = native.call("hop_queues", *arguments, native.uint32(hops), native.uint32(own is not None), most=1 + FIGURES * hops)
    first, *queues = native.groups(found, "idle_answers")
    return HopQueues(tuple(native.result(HopQueue, queue) for queue in queues), int(first[0][1]) if first else None)


FIGURES = 10  # of a hop


def _table(values: npt.ArrayLike, own: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    """The rows of the hops, behind that of the host that probes."""
    hops = np.asarray(values)
    if hops.ndim != 2 or not hops.shape[0]:
        raise ValueError(f"the times of hops are rows, one for each hop, not an array of the shape {hops.shape}")
    first = np.zeros(hops.shape[1], np.int64) if own is None else np.asarray(own)
    if first.shape != hops.shape[1:]:
        raise ValueError(f"{hops.shape[1]} repetitions of the hops, own delays of the shape {first.shape}")
    table = np.vstack([first, hops]) if hops.dtype.kind in "iu" and first.dtype.kind in "iu" else hops
    native.numbers(table, np.int64)  # refuses floating point
    return table.astype(np.int64)
