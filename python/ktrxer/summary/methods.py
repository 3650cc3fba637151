# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of the methods that estimate: figures with their bounds, and the routers of the traced routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import median
from ktrxer.store import Run
from ktrxer.store.columns import STAGES

MS = 1e6
LOADED = STAGES.index("loaded")


@dataclass(frozen=True)
class Estimate:
    """The bounds are those of the method: an interval of confidence, or the range of what varies. None: the method has none."""

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    direction: str | None = None


@dataclass(frozen=True)
class Hop:
    """Round trips without load, and under load where the trace loaded the path."""

    name: str  # of the series
    hop: int
    address: str
    answers: int
    min_ms: float | None
    p50_ms: float | None
    loaded_p50_ms: float | None = None


def estimates(run: Run) -> list[Estimate]:
    """The last one of each series."""
    made = []
    for series in run.meta.of_kind("range"):
        arrays = run.arrays(series)
        if len(arrays["t_ns"]):
            value, low, high = (float(arrays[name][-1]) for name in ("value", "low", "high"))
            made.append(Estimate(series.name, series.unit, _known(value), _known(low), _known(high), series.direction))
    return made


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def hops(run: Run) -> list[Hop]:
    made = []
    for series in run.meta.of_kind("hop"):
        arrays = run.arrays(series)
        under_load = arrays["stage"] == LOADED
        known = ~np.isnan(arrays["rtt_ns"])
        routers = dict.fromkeys(sorted(zip(arrays["hop"].tolist(), arrays["address"].tolist(), strict=True)))
        for hop, address in routers:
            mine = (arrays["hop"] == hop) & (arrays["address"] == address)
            idle, loaded = (arrays["rtt_ns"][mine & known & when] / MS for when in (~under_load, under_load))
            made.append(Hop(
                series.name, int(hop), str(address), int(mine.sum()), _least(idle), _median(idle), _median(loaded),
            ))  # fmt: skip
    return made


def _least(values: NDArray[np.float64]) -> float | None:
    return float(values.min()) if len(values) else None


def _median(values: NDArray[np.float64]) -> float | None:
    return median(values) if len(values) else None
