# SPDX-License-Identifier: MIT OR Apache-2.0
"""A pause that ends when the path is as idle as it was before the last load."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ktrxer.store import StoreError, open_run
from ktrxer.store.columns import ANSWERED
from ktrxer.units import delay

PROBES = 20
INTERVAL = "20ms"
FACTOR, FLOOR_MS = 1.25, 0.5  # above the idle median: still the same path


def idle_ms(path: Path) -> tuple[str, float] | None:
    """The far host of a run, and the median round trip of its ICMP or UDP probes before the load."""
    try:
        run = open_run(path)
    except StoreError:
        return None
    phase = run.meta.phase("idle_before")
    if phase is None or not run.meta.targets:
        return None
    found = [np.empty(0)]
    for series in run.meta.of_kind("latency"):
        arrays = run.arrays(series)
        inside = (arrays["state"] == ANSWERED) & (arrays["t_ns"] >= phase.from_ns) & (arrays["t_ns"] < phase.to_ns)
        found.append(arrays["rtt_ns"][inside] / 1e6)
    values = np.concatenate(found)
    values = values[~np.isnan(values)]
    return (run.meta.targets[0], float(np.median(values))) if len(values) else None


def wait_until_idle(ktrxer: str, last: Path, limit_s: float, stopped: Callable[[], bool]) -> str:
    """Sends probes until their median is near that of the last run's idle phase. A sentence where the limit came first, else empty."""
    known = idle_ms(last)
    if known is None:
        return f"{last.name} has no idle phase before its load, so there was no pause"
    host, idle = known
    limit = idle * FACTOR + FLOOR_MS
    end = time.monotonic() + limit_s
    now: float | None = None
    while not stopped():
        now = _median_ms(ktrxer, host)
        if now is not None and now <= limit:
            return ""
        if time.monotonic() >= end:
            seen = delay(now) if now is not None else "not answered"
            return f"the path to {host} was not idle again after {limit_s:g} s: round trip {seen}, before the last load {delay(idle)}"
        time.sleep(0.2)
    return ""


def _median_ms(ktrxer: str, host: str) -> float | None:
    words = [ktrxer, "ping", host, "--count", str(PROBES), "--interval", INTERVAL, "--json"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False)
        made = json.loads(done.stdout)
        value = made["rtt_us"]["p50"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return None
    return float(value) / 1e3 if isinstance(value, int | float) else None
