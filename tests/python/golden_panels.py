# SPDX-License-Identifier: MIT OR Apache-2.0
"""The data of a panel of each kind, for golden files: six runs of known seeds, three over a short queue and three over a long one.

    PYTHONPATH=python python tests/python/golden_panels.py      writes tests/python/golden/panels.json again, after a wanted change
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ktrxer.panels import plots
from ktrxer.panels.build import build
from ktrxer.panels.model import Axis, Panel
from ktrxer.panels.spec import Pick, Spec
from ktrxer.store import Run
from panel_runs import run

GOLDEN = Path(__file__).parent / "golden" / "panels.json"
POINTS = 9  # of each column: the first, the last, and those between at equal distances

UDP = (Pick("Ping (ms) UDP BE"), Pick("Ping (ms) UDP EF"))
RATE = Pick("TCP upload sum")
# By its kind, and where a kind has more than one form, by the form.
SPECS = {
    "series": Spec("series", "s", UDP, events=True),
    "band": Spec("band", "s", UDP[:1]),
    "cdf": Spec("cdf", "s", UDP, part="load"),
    "ccdf": Spec("ccdf", "s", UDP, part="load"),
    "histogram": Spec("histogram", "s", UDP[:1], part="load"),
    "box": Spec("box", "s", UDP, part="load"),
    "violin": Spec("violin", "s", UDP[:1], part="load"),
    "bar": Spec("bar", "s", UDP, part="load", combine="each"),
    "line": Spec("line", "s", UDP[:1], part="load", combine="each"),
    "qq": Spec("qq", "s", UDP[:1], part="load"),
    "ellipse": Spec("ellipse", "s", (RATE, UDP[0]), part="load"),
    "heat": Spec("heat", "s", UDP[:1]),
    "difference": Spec("difference", "s", UDP[:1], part="load", combine="each"),
    "stack": Spec("stack", "s", panels=("two axes", "cdf")),
    "two axes": Spec("series", "s", (RATE, replace(UDP[0], axis=2))),
    "small panels": Spec("series", "s", UDP[:1], multiples="run"),
}
OF_TWO = ("qq",)  # compares two runs
OF_ONE = ("series", "heat", "two axes", "stack", "band")
REPORT = ("lateness", "host-queues")  # panels of a report that have no kind


def runs(place: Path) -> list[Run]:
    return [
        run(place, f"{name}-{i}", title="", up_ms=delay, loss=0.02, seed=i, seconds=12) for name, delay in (("short", 10), ("long", 100)) for i in (1, 2, 3)
    ]


def panels(made: list[Run]) -> dict[str, list[Panel]]:
    found = {}
    for name in SPECS:
        chosen = made[:1] if name in OF_ONE else [made[0], made[3]] if name in OF_TWO else made
        found[name] = build(name, SPECS, chosen)[0]
    whole = {panel.key: panel for panel in plots.panels_of(made[3], plots.REPORT)}
    return found | {name: [whole[name]] for name in REPORT}


def _column(values: Any) -> list[float | None] | None:
    if values is None:
        return None
    flat = np.asarray(values, float).ravel()
    some = flat[np.linspace(0, len(flat) - 1, min(POINTS, len(flat))).round().astype(int)] if len(flat) else flat
    return [None if np.isnan(value) else float(f"{value:.6g}") for value in (*some, np.nansum(flat))]


def _axis(axis: Axis | None) -> list[Any] | None:
    return None if axis is None else [axis.label, axis.unit, axis.scale, list(axis.names)]


def data(panel: Panel) -> dict[str, Any]:
    """What is drawn: each column as its number of values, some of them, and their sum."""
    return {
        "title": panel.title,
        "axes": [_axis(panel.x), _axis(panel.y), _axis(panel.y2)],
        "notes": list(panel.notes),
        "bands": [[band.start, band.end, band.kind] for band in panel.bands],
        "events": [[row.label, row.kind, len(row.x), _column(row.x)] for row in panel.event_rows],
        "series": [
            {"label": one.label, "style": one.style, "axis": one.axis, "values": len(one.x)}
            | {name: _column(getattr(one, name)) for name in ("x", "y", "low", "high", "z") if getattr(one, name) is not None}
            for one in panel.series
        ],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        made = {name: [data(panel) for panel in found] for name, found in panels(runs(Path(place))).items()}
    GOLDEN.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}" for name, found in made.items()) + "\n}\n")


if __name__ == "__main__":
    main()
