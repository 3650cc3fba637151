# SPDX-License-Identifier: MIT OR Apache-2.0
"""Synthetic runs whose truth is known: what the load adds, and where. For the tests of panels and headlines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ktrxer.store import Host, Meta, Phase, Run, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST_UP

S, MS = 10**9, 10**6
DELAY_S = 4  # idle time before and after the load


def run(
    directory: Path,
    name: str = "run",
    *,
    up_ms: float = 0,
    down_ms: float = 0,
    own_ms: float | None = 0,
    far_ms: float | None = 0,
    loss: float = 0,
    idle_loss: float = 0,
    base_ms: float = 10,
    clock_ms: float = 0.05,
    verdict: Any = "valid",
    reasons: list[str] | None = None,
    classes: tuple[str, ...] = ("BE", "EF"),
    one_way: bool = True,
    seconds: int = 28,
    seed: int = 1,
    rate_mbit: float = 20,
    late_us: float = 5,
    test: str = "rrul",
    dead_s: tuple[float, float] = (0, 0),
    **more: Any,
) -> Run:
    """Probes every 10 ms in each class, one flow in each direction. `up_ms` is the delay on the path up, without this host's own queue
    (`own_ms`); None for a queue that was not measured. No probe is answered in the time `dead_s`."""
    rng = np.random.default_rng(seed)
    load = DELAY_S, seconds - DELAY_S
    meta = Meta(
        id=name, test=test, title=more.pop("title", name), created="2026-11-23T06:00:00Z", host=Host("near"), targets=["far"],
        zero=Zero(0, 1_795_000_000 * S + seed * 3600 * S), length_ns=seconds * S,
        phases=[Phase("idle_before", 0, load[0] * S), Phase("load", load[0] * S, load[1] * S), Phase("idle_after", load[1] * S, seconds * S)],
        runners=[Runner(0, "stamp", "stamp", ["ktrxer", "stamp"], "far", "ended", 0, end={"own_qdisc": "fq_codel"}, interval_ns=10 * MS),
                 Runner(1, "flow", "flow", ["ktrxer", "flow"], "far", "ended", 0, interval_ns=100 * MS)],
        verdict=verdict, reasons=reasons or [], **more,
    )  # fmt: skip
    for klass in classes:
        meta.series.append(Series(len(meta.series), f"Ping (ms) UDP {klass}", "latency", "ms", 0, klass=klass, group="Ping (ms)"))
    for way in ("up", "down"):
        meta.series.append(Series(len(meta.series), f"TCP {way}load BE", "bytes", "Mbit/s", 1, 0, way, "BE", f"TCP {way}load"))  # type: ignore[arg-type]
    writer = RunWriter(directory, meta, name)
    for series in meta.of_kind("latency"):
        count = seconds * 100
        at = np.arange(count) * 10 * MS
        loaded = (at >= load[0] * S) & (at < load[1] * S)

        def delay(idle_ms: float, load_ms: float, loaded: np.ndarray = loaded, count: int = count) -> np.ndarray:
            noise = rng.exponential(0.1 + 0.02 * load_ms, count) - 0.1 - 0.02 * load_ms
            return (np.maximum(0.001, idle_ms + np.where(loaded, load_ms + noise, rng.exponential(0.02, count))) * MS).astype(np.int64)

        own = delay(0.005, own_ms or 0)
        far = delay(0.005, far_ms or 0)
        up = delay(base_ms / 2, up_ms) + own
        down = delay(base_ms / 2, down_ms) + far
        lost = rng.random(count) < np.where(loaded, loss, idle_loss)
        lost |= (at >= dead_s[0] * S) & (at < dead_s[1] * S)
        ok = ~lost

        def column(values: np.ndarray, there: bool = True, ok: np.ndarray = ok) -> list[int | None]:
            return [int(value) if known and there else None for value, known in zip(values, ok, strict=True)]

        bound = np.full(count, int(clock_ms * MS))
        writer.append("latency", {
            "series": [series.id] * count, "t_ns": at.tolist(), "seq": list(range(count)),
            "state": np.where(lost, LOST_UP, ANSWERED).tolist(), "lateness_ns": [int(late_us * 1000)] * count,
            "rtt_ns": column(up + down), "up_ns": column(up, one_way), "down_ns": column(down, one_way),
            "up_bound_ns": column(bound, one_way), "down_bound_ns": column(bound, one_way),
            "own_queue_ns": column(own, own_ms is not None), "far_queue_ns": column(far, far_ms is not None),
        })  # fmt: skip
    at = np.arange(load[0] * S, load[1] * S + 1, 100 * MS)
    for series in meta.of_kind("bytes"):
        counted = ((at - at[0]) * rate_mbit / 8000).astype(np.int64)
        for end in (0, 1):
            n = len(at)
            writer.append("bytes", {"series": [series.id] * n, "t_ns": at.tolist(), "end": [end] * n, "bytes": counted.tolist(),
                                    "bound_ns": [None] * n})  # fmt: skip
    return open_run(writer.finish())
