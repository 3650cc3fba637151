# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exact quantiles in the last objects of probers. A process has histograms in fixed memory (within 0.1 %); a run has the samples of most of
them. So that a figure has one value in one file, the quantiles of the samples replace those of the histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ktrxer.statistics.latency import delays, ranked
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Series

COLUMNS = {"rtt_us": "rtt_ns", "own_queue_us": "own_queue_ns", "far_queue_us": "far_queue_ns", "lateness_us": "lateness_ns"}


def exact_quantiles(run: Run) -> None:
    for runner in run.meta.runners:
        mine = [series for series in run.meta.of_kind("latency") if series.runner == runner.id]
        if not mine or not isinstance(runner.end, dict):
            continue
        end = runner.end | _exact(run, runner.end, mine)
        classes = end.get("classes")
        if isinstance(classes, list) and len(classes) == len(mine) and all(isinstance(one, dict) for one in classes):
            end["classes"] = [one | _exact(run, one, [series]) for one, series in zip(classes, mine, strict=True)]
        runner.end = end


def _exact(run: Run, end: dict[str, Any], members: Sequence[Series]) -> dict[str, Any]:
    """The distributions of which the file has each value: as many, with the same extremes."""
    made: dict[str, Any] = {}
    answered = [run.arrays(series)["state"] == ANSWERED for series in members]
    for field, name in COLUMNS.items():
        given = end.get(field)
        if not isinstance(given, dict) or (field == "lateness_us" and end.get("received") != end.get("sent")):
            continue  # the lateness of probes without an answer is in no row
        values = np.concatenate([run.arrays(series)[name][rows] for series, rows in zip(members, answered, strict=True)])
        values = values[~np.isnan(values)]
        found = delays(values)
        if found is None or (field == "rtt_us" and end.get("received") != found.count):
            continue
        if (_us(found.min), _us(found.max)) == (given.get("min"), given.get("max")):
            spread = ranked(values, 0.75) - ranked(values, 0.25)
            made[field] = given | {"p50": _us(found.p50), "iqr": _us(spread), "p95": _us(found.p95), "p99": _us(found.p99)}
    return made


def _us(ns: float) -> float:
    return round(ns / 1e3, 3)
