# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plot as JSON: its outline, or with each sample. A plot as CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from ktrxer.panels.model import Floats, PlotModel


def outline(plot: str, model: PlotModel) -> dict[str, Any]:
    panels = [
        {
            "key": panel.key,
            "title": panel.title,
            "x": {"label": panel.x.label, "unit": panel.x.unit},
            "y": {"label": panel.y.label, "unit": panel.y.unit},
            "series": [{"name": series.label, "samples": series.samples} for series in panel.series],
            "notes": list(panel.notes),
        }
        for panel in model.panels
    ]
    return {"plot": plot, "title": model.title, "panels": panels}


def of_model(plot: str, model: PlotModel) -> dict[str, Any]:
    """With each sample; null for a missing value."""
    made = outline(plot, model)
    for one_outline, panel in zip(made["panels"], model.panels, strict=True):
        for one, series in zip(one_outline["series"], panel.series, strict=True):
            one["x"], one["y"] = _finite(series.x), _finite(series.y)
            one["lost"] = [at for row in panel.event_rows if (row.key, row.kind) == (series.key, "lost") for at in row.x.tolist()]
    return made


def _finite(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def csv_of(model: PlotModel) -> bytes:
    """Each sample of the picture, none left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["panel", "series", "x", "x unit", "y", "y unit"])
    for panel in model.panels:
        for series in panel.series:
            unit = panel.y2.unit if series.axis == 2 and panel.y2 is not None else panel.y.unit
            head = [_formula(panel.title), _formula(series.label)]
            if series.z is None:
                rows = zip(series.x.tolist(), series.y.tolist(), strict=False)
                writer.writerows([*head, x, panel.x.unit, "" if y != y else y, unit] for x, y in rows)
    return out.getvalue().encode("utf-8", "replace")


def _formula(text: str) -> str:
    """A spreadsheet executes text that begins like a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
