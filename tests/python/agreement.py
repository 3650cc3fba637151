# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures that stand in two places of one run: the last objects of its processes, its samples, and its summary. The same name means the same
number, to the last digit. Figures of a part of the run (a phase) are no more than those of the whole. No statement of the summary contradicts
a figure (ktrxer/summary/consistent.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ktrxer.run.losses import session_of
from ktrxer.store import Run, StoreError, open_run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.summary.figures import summarise
from ktrxer.summary.model import Summary

RUNS_MOST = 10  # of one test: the others of a large set are made by the same code


def of_test(folder: Path | None) -> list[str]:
    """Of the runs that a test has recorded in its folder. A file `hostile` has values that no path gives."""
    runs = [one for one in folder.rglob("*.ktrxer") if one.is_file() and one.stem != "hostile"] if folder is not None and folder.is_dir() else []
    return [text for one in runs[:RUNS_MOST] for text in of_file(one)]


def of_file(path: Path) -> list[str]:
    try:
        return list(disagreements(open_run(path)))
    except StoreError:  # a test of files that are none
        return []


def disagreements(run: Run, summary: Summary | None = None) -> Iterator[str]:
    summary = summary or summarise(run)
    shown = summary.as_json()
    probes = [runner for runner in run.meta.runners if runner.protocol is not None and isinstance(runner.end, dict)]
    stamps = [runner.end for runner in probes if runner.kind == "stamp" and runner.end is not None and "lost_unknown" in runner.end]
    latency = run.meta.of_kind("latency")

    def equal(what: str, *values: Any) -> Iterator[str]:
        if any(value != values[0] for value in values):
            yield f"{run.name}: {what}: {', '.join(map(repr, values))}"

    if latency and all(session_of(run.meta, series) is not None for series in latency):
        whole = shown["loss_of_run"]
        ends = {name: sum(end.get(name) or 0 for end in stamps) for name in ("sent", "lost_up", "lost_down", "too_late")}
        for name, value in ends.items():
            yield from equal(f"{name} by stamp and by the summary", value, whole[name])
        lost = sum(end["lost"] for end in stamps)
        unknown = sum(end["lost_unknown"] for end in stamps)
        yield from equal("lost by stamp and by the summary", lost, whole["lost"])
        yield from equal("lost in an unknown direction", unknown, whole["lost"] - whole["lost_up"] - whole["lost_down"])
        for name in ("lost_up", "lost_down", "lost"):
            if sum(one[name] for one in shown["loss"]) > whole[name]:
                yield f"{run.name}: {name} of the phases is more than {whole[name]}"
    accounts = (run.meta.accounts or {}).get("probes")
    if accounts and latency:
        states = np.concatenate([run.arrays(series)["state"] for series in latency])
        counted = {name: int(np.isin(states, of).sum()) for name, of in STATES.items()}
        yield from equal("accounts of the probes", {name: accounts[name] for name in counted}, counted)
    for runner in probes:
        mine = [series for series in latency if series.runner == runner.id]
        if mine and runner.end is not None and runner.status == "ended":
            yield from _samples(run, runner.name, runner.end, [run.arrays(series) for series in mine])
    late = [(end["late"], end["sent"]) for runner in probes if (end := runner.end) and {"late", "sent", "late_after_us"} <= {*end}]
    yield from (f"{run.name}: {text}" for text in summary.contradicted)
    yield from equal("late probes", (sum(one for one, _ in late), sum(sent for _, sent in late)),
                     (sum(one["count"] for one in shown["late"]), sum(one["sent"] for one in shown["late"])))


STATES = {"sent": (ANSWERED, LOST, LOST_UP, LOST_DOWN, TOO_LATE), "answered": (ANSWERED,), "lost": (LOST, LOST_UP, LOST_DOWN), "too_late": (TOO_LATE,)}


def _samples(run: Run, name: str, end: dict[str, Any], rows: list[Any]) -> Iterator[str]:
    """The distribution of the round trips: that of the process, and that of the rows."""
    trip = np.concatenate([one["rtt_ns"][one["state"] == ANSWERED] for one in rows])
    live = end.get("rtt_us")
    if not isinstance(live, dict) or end.get("received") != len(trip) or np.isnan(trip).any() or not len(trip):
        return  # some samples have no stamps, or were stopped on their way: the run says so
    ordered = np.sort(trip) / 1e3
    shares = {"min": 0.0, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    exact = {what: float(ordered[max(0, math.ceil(share * len(trip) - 1e-9) - 1)]) for what, share in shares.items()}
    for what, value in exact.items():
        if what in live and live[what] != round(value, 3):
            yield f"{run.name}: {name}: {what} of the round trip: {live[what]} us, {value} us"
