# SPDX-License-Identifier: MIT OR Apache-2.0
"""The promised figures of the module (docs/measurements/2026-11-22-module.md), on each device, from one boot: tests/lab/figures.py as a test. It takes minutes for each device."""

from __future__ import annotations

import signal
from typing import Any

import figures
import pytest
from ktrxer_lab.errors import Unavailable


def one(rows: list[figures.Row], **which: object) -> Any:
    found = [row for row in rows if all(row.get(key) == value for key, value in which.items())]
    assert len(found) == 1, (which, found)
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", figures.DEVICES)
def test_figures_of_the_module(name: str) -> None:
    signal.alarm(0)  # a boot of many measurements, with its own limit
    try:
        rows = figures.measure(name, None, ("--loads", "0,12000,24000", "--count", "201", "--payloads", "28,1428", "--runs", "3"), 1500.0)
    except Unavailable as reason:
        pytest.skip(str(reason))
    print("\n".join([*figures.table_e2({name: rows}), *figures.table_rest({name: rows})]))
    assert figures.verdicts({name: rows}) == []

    def rate(sender: str, payload: int) -> float:
        return float(one(rows, what="E1", load="idle", payload=payload, sender=sender)["kpps"])

    for raw in ("raw", "raw socket"):
        assert rate("module", 28) >= 3 * rate(raw, 28) and rate("module", 1428) >= rate(raw, 1428)
        pair = {sender: one(rows, what="O3", load="idle", sender=sender)["median"] for sender in ("module", raw)}
        assert pair["module"] <= pair[raw] / 5, pair
    assert name != "pc" or rate("module", 28) >= 0.8 * rate("pktgen", 28)
    for gap_us in (0, 10, 100, 1000, 10_000, 100_000):
        off = one(rows, what="E6", load="idle", gap_us=gap_us)
        assert off["size_median"] <= 1.0 and off["size_p95"] <= 1.0, off
