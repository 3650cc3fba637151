# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs that belong together, and how their series become one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ktrxer.panels.model import Floats
from ktrxer.store import Run

# name          runs whose file names differ only in a number (of the repetition) are a group
# batch         runs of a batch are a group
# series        every run is in one group: only the series are told apart
# both          the name of a group is `A-B`: A is the group, B is the place in it
# run           every run is alone
GroupBy = Literal["name", "batch", "series", "both", "run"]

# pooled        all samples of the runs of a group together
# averaged      the mean of the runs, at each time
# each          one number from each run (reduce.py)
Combine = Literal["pooled", "averaged", "each"]


@dataclass(frozen=True)
class Group:
    name: str
    runs: tuple[Run, ...]
    place: str = ""  # with `both`: the second part of the name

    @property
    def label(self) -> str:
        return f"{self.name} (n={len(self.runs)})" if len(self.runs) > 1 else self.name


def stems(names: Sequence[str], drop: Sequence[str] = ()) -> list[str]:
    """File names without what they have in common at their beginning (back to the last `-`), without the parts that match `drop`, and
    without the first number that stands alone, which is that of the repetition. Names of which nothing is left have what they share."""
    first, last = (min(names), max(names)) if len(names) > 1 else ("", "")
    common = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    cut = first.rfind("-", 0, common) + 1
    made = []
    for name in names:
        rest = name[cut:]
        for pattern in drop:
            rest = re.sub(pattern, "", rest)
        rest = re.sub(r"(^|[-_.])\d+(?=$|[-_.])", "", rest, count=1).strip("-_.")
        made.append(rest or name[:cut].strip("-_.") or name)
    return made


def grouped(runs: Sequence[Run], by: GroupBy, drop: Sequence[str] = ()) -> list[Group]:
    """The groups have the order of their first runs."""
    if by == "run":
        return [Group(name, (run,)) for name, run in zip(distinct([run.meta.title or run.name for run in runs], runs), runs, strict=True)]
    if by == "series":
        return [Group("", tuple(runs))] if runs else []
    names = [_batch(run) for run in runs] if by == "batch" else stems([run.name for run in runs], drop)
    found: dict[str, list[Run]] = {}
    for name, run in zip(names, runs, strict=True):
        found.setdefault(name, []).append(run)
    if by == "both":
        parts = {name: name.partition("-") for name in found}
        return [Group(parts[name][0], tuple(members), parts[name][2]) for name, members in found.items()]
    return [Group(name, tuple(members)) for name, members in found.items()]


def _batch(run: Run) -> str:
    """The labels of the batch and its group, or the batch of Flent, or the run's own name."""
    labels, flent = (run.meta.metadata.get(name) for name in ("labels", "flent"))
    parts: list[str] = []
    if isinstance(labels, dict):
        parts = [part for name in ("batch", "group") if isinstance(part := labels.get(name), str) and part]
    if not parts and isinstance(flent, dict):
        parts = [part for name in ("BATCH_TITLE", "BATCH_UUID") if isinstance(part := flent.get(name), str) and part][:1]
    return " ".join(parts)[:200] or run.name


def distinct(titles: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Labels that tell the runs apart: their titles, or their file names if the titles are not distinct."""
    if len(set(titles)) == len(titles):
        return list(titles)
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [f"{name} ({i + 1})" for i, name in enumerate(names)]


def averaged(parts: Sequence[tuple[Floats, Floats]], step: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Times, and the mean, the minimum and the maximum over the runs of each run's mean in windows of `step` seconds. A window is NaN
    if a run has samples before and after the window and none in it: otherwise neighbouring windows would have means of different runs."""
    there = [(t[np.isfinite(y)], y[np.isfinite(y)]) for t, y in parts]
    there = [(t, y) for t, y in there if len(t)]
    if not there or step <= 0:
        return np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    first = min(int(np.floor(t.min() / step)) for t, _ in there)
    count = max(int(np.floor(t.max() / step)) for t, _ in there) - first + 1
    rows = np.full((len(there), count), np.nan)
    absent = np.zeros(count, bool)
    for row, (t, y) in enumerate(there):
        number = np.floor(t / step).astype(np.int64) - first
        counted = np.bincount(number, minlength=count)
        has = counted > 0
        rows[row, has] = (np.bincount(number, y, count) / np.maximum(counted, 1))[has]
        inner = np.zeros(count, bool)
        inner[number.min() : number.max() + 1] = True
        absent |= inner & ~has
    some = ~np.isnan(rows).all(axis=0) & ~absent
    mean, low, high = (np.full(count, np.nan) for _ in range(3))
    mean[some], low[some], high[some] = np.nanmean(rows[:, some], 0), np.nanmin(rows[:, some], 0), np.nanmax(rows[:, some], 0)
    return np.asarray((first + np.arange(count) + 0.5) * step, np.float64), mean, low, high
