# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs as a comparison has them: figures and facts, without samples."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import synthetic as made_runs
from ktrxer.analyse import grouping
from ktrxer.analyse.figure import Figure
from ktrxer.analyse.grouping import Facts, Group, Member
from ktrxer.store import Zero

START = datetime.fromisoformat("2026-11-21T10:00:00+00:00")
P95 = Figure("udp.rtt.load.p95", "UDP round trip, loaded, p95", "ms", 0.0, "lower", True)
RATE = Figure("rate.tcp_upload", "TCP upload, mean rate", "Mbit/s", 0.0, "higher", True)


def member(name: str, minute: float, title: str = "", verdict: str = "valid", kernel: str = "6.18.0", **figures: float) -> Member:
    return Member(name, facts_at(minute, title=title, verdict=verdict, kernel=kernel), {key.replace("__", "."): value for key, value in figures.items()})


def facts_at(
    minute: float, *, title: str = "", verdict: str = "valid", kernel: str = "6.18.0", wrong_s: float = 0, boot: str | None = "one", number: int = 0
) -> Facts:
    """Of a run that was made at this minute, by a clock that was wrong by `wrong_s` then."""
    meta = made_runs.describe(8, 2, title)
    shown = START + timedelta(minutes=minute, seconds=wrong_s)
    zero = Zero(round((1000 + minute * 60) * 1e9), round(shown.timestamp() * 1e9), 200, boot)
    labels = {"labels": {"batch": "b", "batch_id": "1", "number": str(number), "try": "1"}} if number else {}
    meta = replace(meta, created=shown.isoformat(), verdict=verdict, host=replace(meta.host, kernel=kernel), zero=zero, metadata=meta.metadata | labels)
    return grouping.facts(meta)


def group(name: str, p95: list[float], minutes: list[float], rate: float = 48) -> Group:
    members = [
        member(f"{name}{i}", at, udp__rtt__load__p95=value, rate__tcp_upload=rate * (1 + 0.001 * (i % 3)))
        for i, (value, at) in enumerate(zip(p95, minutes, strict=True))
    ]
    return Group(name, members)
