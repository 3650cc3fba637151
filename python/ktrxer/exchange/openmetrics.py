# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of runs as OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/): one gauge for each unit, a sample for each
figure of each run, at the time of the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ktrxer.store.errors import printable

# Each unit of figures: its name in OpenMetrics, which requires base units, and the factor.
UNITS: dict[str, tuple[str, float]] = {
    "ns": ("seconds", 1e-9), "us": ("seconds", 1e-6), "ms": ("seconds", 1e-3), "s": ("seconds", 1.0), "Mbit/s": ("bits_per_second", 1e6),
    "%": ("ratio", 0.01), "1/min": ("per_minute", 1.0),
}  # fmt: skip
HELP = {
    "seconds": "A delay of a run.", "bits_per_second": "A rate of a run.", "ratio": "A share of a run's probes, 0 to 1.",
    "per_minute": "Round trips per minute.", "": "A figure of a run in a unit of its own.",
}  # fmt: skip

Sample = tuple[Mapping[str, str], str, str, float, float | None]  # labels of the run, figure, unit, value, seconds since 1970


def text(samples: Iterable[Sample]) -> str:
    """The exposition with its `# EOF`. An infinite value is a quantile among lost probes."""
    families: dict[str, list[str]] = {}
    for labels, figure, unit, value, at in samples:
        base, factor = UNITS.get(unit, ("", 1.0))
        given = dict(labels) | {"figure": figure} | ({} if base else {"unit": unit})
        inside = ",".join(f'{name}="{escaped(word)}"' for name, word in given.items())
        when = f" {at:.3f}" if at is not None else ""
        families.setdefault(base, []).append(f"{_name(base)}{{{inside}}} {_number(value * factor)}{when}")
    lines = []
    for base in sorted(families):
        lines += [f"# TYPE {_name(base)} gauge", *([f"# UNIT {_name(base)} {base}"] if base else []), f"# HELP {_name(base)} {HELP[base]}"]
        lines += families[base]
    return "\n".join([*lines, "# EOF", ""])


def _name(base: str) -> str:
    return f"ktrxer_run_figure_{base}" if base else "ktrxer_run_figure"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)


def escaped(word: str) -> str:
    return printable(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
