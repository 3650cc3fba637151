# SPDX-License-Identifier: MIT OR Apache-2.0
"""The error bound of a headline figure. Apart from bounds.py, which computes it, because lists and comparisons need no numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from ktrxer.units import delay

NAMES = {
    "idle_p50": "the idle p50", "loaded_p50": "the loaded p50", "added_p50": "the delay that load adds", "loss": "the loss",
    "rate_up": "the rate up", "rate_down": "the rate down", "rate_both": "the rate of both directions",
}  # fmt: skip
UNITS = {"us": "us", "percent": "%", "Mbit/s": "Mbit/s"}


@dataclass(frozen=True)
class Bound:
    """An object `summary_bound` (contract/experiments/summary.toml)."""

    figure: str
    probes: str
    unit: str
    value: float | None
    bound: float | None
    tolerance: float
    cause: str = "none"
    low: float | None = None
    high: float | None = None

    @property
    def holds(self) -> bool:
        return self.bound is not None and self.bound <= self.tolerance

    @property
    def name(self) -> str:
        return NAMES[self.figure] + (f" of {self.probes} probes" if self.probes else "")

    def as_json(self) -> dict[str, Any]:
        names = [one.name for one in fields(Bound)]
        return {name: round(one, 3) if isinstance(one := getattr(self, name), float) else one for name in names}

    def text(self, amount: float | None) -> str:
        if amount is None or not math.isfinite(amount):
            return "unknown"
        return delay(amount / 1e3) if self.unit == "us" else f"{amount:.3g} {UNITS[self.unit]}"


def read(stored: Any) -> list[Bound]:
    """Those of a file of any origin."""
    made = []
    for one in stored if isinstance(stored, list) else []:
        if not isinstance(one, dict) or str(one.get("figure")) not in NAMES or str(one.get("unit")) not in UNITS:
            continue
        value, bound, allowed, low, high = (number(one.get(name)) for name in ("value", "bound", "tolerance", "low", "high"))
        cause, probes = (text if isinstance(text := one.get(name), str) else "" for name in ("cause", "probes"))
        if allowed is not None:
            made.append(Bound(str(one["figure"]), probes, str(one["unit"]), value, bound, allowed, cause or "none", low, high))
    return made


def number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None


def widest(bounds: Iterable[Bound]) -> Bound | None:
    """The bound that takes most of its tolerance."""
    known = [one for one in bounds if one.bound is not None]
    return max(known, key=lambda one: (one.bound or 0) / one.tolerance if one.tolerance else 0, default=None)
