# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plot as JSON: its outline, or with each sample. A plot as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from ktrxer.panels.model import Floats, PlotModel, Series


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
    """The object has each sample; null for a missing value."""
    made = outline(plot, model)
    for one_outline, panel in zip(made["panels"], model.panels, strict=True):
        for one, series in zip(one_outline["series"], panel.series, strict=True):
            one["x"], one["y"] = _finite(series.x), _finite(series.y)
            for name, column in (("low", series.low), ("high", series.high)):
                if column is not None:
                    one[name] = _finite(column)
            if series.z is not None:  # x has the edges of its columns, y those of its rows
                one["share"] = [_finite(row) for row in series.z]
            one["lost"] = [at for row in panel.event_rows if (row.key, row.kind) == (series.key, "lost") for at in row.x.tolist()]
        one_outline["events"] = [
            {"kind": row.kind, "name": row.label, "x": _finite(row.x)} | ({} if row.counts is None else {"count": _finite(row.counts)})
            for row in panel.event_rows
            if row.kind != "lost"
        ]
    return made


def _finite(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


HEADER = ("panel", "series", "x", "x unit", "y", "y unit", "low", "high", "share")


def csv_of(model: PlotModel) -> bytes:
    """All that the picture draws, nothing left out. A lost probe has no y; another event has the number of such events at that time. `low`
    and `high` are the ends of a band or an interval. Only a square of a heat map has a share; x and y are its middle."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for panel in model.panels:
        for series in panel.series:
            unit = panel.y2.unit if series.axis == 2 and panel.y2 is not None else panel.y.unit
            head = [_formula(panel.title), _formula(series.label)]
            if series.z is not None:
                writer.writerows([*head, x, panel.x.unit, y, unit, "", "", share] for x, y, share in _squares(series))
                continue
            ends = (repeat("") if column is None else map(_known, column.tolist()) for column in (series.low, series.high))
            samples = zip(series.x.tolist(), map(_known, series.y.tolist()), *ends, strict=False)
            writer.writerows([*head, x, panel.x.unit, y, unit, low, high, ""] for x, y, low, high in samples)
        for row in panel.event_rows:
            if row.kind != "lost":  # lost probes are samples of their series
                counts = [1.0] * len(row.x) if row.counts is None else row.counts.tolist()
                head = [_formula(panel.title), _formula(row.label)]
                events = zip(row.x.tolist(), counts, strict=True)
                writer.writerows([*head, x, panel.x.unit, count, "events", "", "", ""] for x, count in events)
    return out.getvalue().encode("utf-8", "replace")


def _known(value: float) -> float | str:
    return "" if value != value else value


def _squares(series: Series) -> Iterator[tuple[float, float, float]]:
    assert series.z is not None
    middles_x, middles_y = ((edges[1:] + edges[:-1]) / 2 for edges in (series.x, series.y))
    for y, row in zip(middles_y.tolist(), series.z.tolist(), strict=True):
        for x, share in zip(middles_x.tolist(), row, strict=True):
            yield x, y, share


def _formula(text: str) -> str:
    """A spreadsheet executes text that begins like a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
