# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ratings of calls: the series of the group VoIP, each direction, idle and under load (statistics/voice.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics import voice
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.store.meta import Series
from ktrxer.summary import VOICE

MS = 1e6
Floats = NDArray[np.float64]
# Probes that say nothing about a direction: their packet was not sent in it, or arrived at an unknown time.
LEFT_OUT = {"up": (LOST_DOWN,), "down": (LOST_UP,)}


@dataclass(frozen=True)
class Voice:
    name: str
    direction: str
    phase: str  # idle, load; all: the whole run
    mos: float
    mos_low: float  # with the uncertainty of the one-way delay
    mos_high: float
    r: float
    delay_ms: float  # from mouth to ear
    loss: float  # share lost on the path
    late: float  # share that the jitter buffer drops
    packets: int
    unknown: int  # losses of unknown direction, which count in both
    codec: str
    buffer_ms: float


def ratings(run: Run) -> list[Voice]:
    made = []
    for series in run.meta.of_kind("latency"):
        if series.group == VOICE:
            loaded = run.meta.phase("load") is not None
            for phase, names in (("idle", ("idle_before",)), ("load", ("load",))) if loaded else (("all", ()),):
                made += [one for way in ("up", "down") if (one := _rating(run, series, way, phase, names)) is not None]
    return made


def _rating(run: Run, series: Series, way: str, phase: str, names: tuple[str, ...]) -> Voice | None:
    arrays = run.arrays(series)
    t, state = arrays["t_ns"], arrays["state"]
    used = np.isin(state, (ANSWERED, TOO_LATE, LOST, LOST_UP, LOST_DOWN)) & ~np.isin(state, LEFT_OUT[way])
    if names:
        inside = np.zeros(len(t), bool)
        for one in run.meta.phases:
            if one.name in names:
                inside |= (t >= one.from_ns) & (t < one.to_ns)
        used &= inside
    answered = np.isin(state, (ANSWERED, TOO_LATE))
    used &= ~(answered & np.isnan(arrays[f"{way}_ns"]))  # without a one-way delay
    order = np.argsort(arrays["seq"][used], kind="stable")
    delays = np.where(answered, arrays[f"{way}_ns"] / MS, np.nan)[used][order]
    if not len(delays) or np.isnan(delays).all():
        return None
    bounds = arrays[f"{way}_bound_ns"][used & answered] / MS
    bound = float(np.nanmax(bounds)) if len(bounds) and not np.isnan(bounds).all() else 0.0
    best = voice.call(delays)
    low, high = voice.call(delays + bound), voice.call(np.maximum(delays - bound, 0))
    assert best is not None and low is not None and high is not None
    count, heard = len(delays), best.playout
    return Voice(
        series.name, way, phase, best.rating.mos, low.rating.mos, high.rating.mos, best.rating.r, best.delay_ms, heard.lost / count,
        heard.late / count, count, int((state[used] == LOST).sum()), voice.G711_PLC.name, voice.BUFFER_MS,
    )  # fmt: skip
