# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws the plot model as text, for a machine without a screen: each series has a sign of its own, each panel the ends of its axes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ktrxer.panels.latency import DASHES_OF_LOAD
from ktrxer.panels.model import Axis, Floats, Panel, PlotModel, Series
from ktrxer.store import one_line

SIGNS = "*o+x#@%&"
SHADES = " .:-=+*#%@"  # of a heat map
ROWS = 14  # of a panel
MARGIN = 10  # columns left of it, for numbers
LEAST_WIDTH, MOST_WIDTH = 40, 200


@dataclass(frozen=True)
class _Scale:
    """The scale from values to the places 0, 1, ... of rows or columns."""

    low: float
    high: float
    places: int
    log: bool

    def places_of(self, values: Floats) -> Floats:
        """NaN for a value outside."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            low, high, at = (np.log10(one) if self.log else np.asarray(one, float) for one in (self.low, self.high, values))
            found = np.rint((at - low) / (high - low) * (self.places - 1))
        return np.where((found >= 0) & (found < self.places), found, np.nan)


@dataclass
class _Grid:
    x: _Scale
    y: dict[int, _Scale]  # of the left axis (1) and the right one (2)
    cells: dict[tuple[int, int], str] = field(default_factory=dict)  # row from below, column

    def put(self, rows: Floats, columns: Floats, sign: str) -> None:
        known = np.isfinite(rows) & np.isfinite(columns)
        self.cells.update(dict.fromkeys(zip(rows[known].astype(int).tolist(), columns[known].astype(int).tolist(), strict=True), sign))

    def line(self, row: int) -> str:
        return "".join(self.cells.get((row, column), " ") for column in range(self.x.places)).rstrip()


def draw(model: PlotModel, width: int) -> str:
    width = max(LEAST_WIDTH, min(MOST_WIDTH, width))
    lines = [_cut(line, width) for line in (model.title, model.subtitle)] if model.title or model.subtitle else []
    for panel in model.panels:
        lines += [*([""] if lines else []), *_panel(panel, width)]
    return "\n".join(lines) + "\n"


def _cut(text: str, width: int) -> str:
    """Text of a run is one line without control characters."""
    return one_line(text, width)


def _panel(panel: Panel, width: int) -> list[str]:
    right = 2 if panel.y2 is not None else 1
    grid = _Grid(_x_scale(panel, width - MARGIN), {1: _y_scale(panel, panel.y, 1), 2: _y_scale(panel, panel.y2 or panel.y, right)})
    signs = {series.key: SIGNS[i % len(SIGNS)] for i, series in enumerate(one for one in panel.series if one.z is None)}
    for series in panel.series:
        _draw(grid, series, signs.get(series.key, ""))
    lines = [_cut(panel.title, width), _cut(f"{_named(panel.y)}{f'; right axis: {_named(panel.y2)}' if panel.y2 else ''}", width)]
    for one in panel.event_rows:
        events = _Grid(grid.x, {})
        events.put(np.zeros(len(one.x)), grid.x.places_of(one.x), "!")
        lines.append(f"{one.kind[: MARGIN - 2]:>{MARGIN - 2}}  {events.line(0)}".rstrip())
    for row in range(ROWS - 1, -1, -1):
        value = grid.y[1].high if row == ROWS - 1 else grid.y[1].low if row == 0 else None
        lines.append(f"{'' if value is None else f'{value:.4g}':>{MARGIN - 2}} |{grid.line(row)}")
    lines.append(" " * (MARGIN - 1) + "+" + "-" * grid.x.places)
    lines += _x_names(panel, grid.x)
    aside = " (right axis)" if panel.y2 is not None else ""
    named = [one for one in panel.series if one.label and one.key in signs]
    listed = [f"{signs[one.key]} {one.label}{aside if one.axis == 2 else ''}" for one in named]
    if listed and panel.legend and not panel.x.names:
        lines.append(_cut("   ".join(listed), 4 * width))
    return [*lines, *(_cut(note, 4 * width) for note in panel.notes if note != DASHES_OF_LOAD)]  # signs, not dashes


def _x_names(panel: Panel, scale: _Scale) -> list[str]:
    if panel.x.names:
        return [_cut(f"{' ' * MARGIN}{'   '.join(f'{i + 1}: {name}' for i, name in enumerate(panel.x.names))}", 4 * scale.places)]
    tiny = not scale.log and abs(scale.low) < (scale.high - scale.low) / 1000  # as the time of the first probe: less than a column
    low, high = "0" if tiny else f"{scale.low:.4g}", f"{scale.high:.4g}"
    return [" " * MARGIN + low + _cut(_named(panel.x), scale.places).center(max(0, scale.places - len(low) - len(high))) + high]


def _named(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label


def _x_scale(panel: Panel, places: int) -> _Scale:
    if panel.x.names:
        return _Scale(-0.5, len(panel.x.names) - 0.5, places, False)
    return _scale([one.x for one in panel.series], panel.x, places)


def _y_scale(panel: Panel, axis: Axis, number: int) -> _Scale:
    shown = [one for one in panel.series if one.axis == number or panel.y2 is None]
    return _scale([column for one in shown for column in (one.y, one.low, one.high) if column is not None], axis, ROWS)


def _scale(columns: list[Floats], axis: Axis, places: int) -> _Scale:
    log = axis.scale == "log"
    values = np.concatenate([np.empty(0), *columns])
    values = values[np.isfinite(values) & ((values > 0) if log else True)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (1.0, 2.0)
    low = min(low, 0.0) if axis.zero and not log else low
    low = axis.least if axis.least is not None else low
    high = axis.most if axis.most is not None else high
    return _Scale(low, high if high > low else (low * 10 if log else low + 1), places, log)


def _draw(grid: _Grid, series: Series, sign: str) -> None:
    scale = grid.y[series.axis]
    if series.z is not None:
        _heat(grid, series)
    elif series.style == "box" and len(series.y) == 5:
        (column,) = grid.x.places_of(series.x[:1])
        ends = scale.places_of(series.y)
        for low, high, mark in ((0, 4, "|"), (1, 3, "#"), (2, 2, "=")):
            rows = np.arange(ends[low], ends[high] + 1) if np.isfinite([ends[low], ends[high]]).all() else np.empty(0)
            for beside in (-1, 0, 1) if mark != "|" else (0,):
                grid.put(rows, np.full(len(rows), column + beside), mark)
    elif series.style == "bar":
        for column, top in zip(grid.x.places_of(series.x), scale.places_of(series.y), strict=True):
            rows = np.arange(0, top + 1) if top == top else np.empty(0)
            for beside in (-1, 0, 1):
                grid.put(rows, np.full(len(rows), column + beside), sign)
    else:
        if series.style in ("line", "step"):
            _between(grid, scale, series, sign)
        grid.put(scale.places_of(series.y), grid.x.places_of(series.x), sign)


def _between(grid: _Grid, scale: _Scale, series: Series, sign: str) -> None:
    """The columns between two samples. A gap of the series stays one."""
    columns, rows = grid.x.places_of(series.x), scale.places_of(series.y)
    if len(columns) > 2 * grid.x.places:  # each column has samples
        return
    for i in range(len(columns) - 1):
        ends = np.array([columns[i], columns[i + 1], rows[i], rows[i + 1]])
        if not np.isfinite(ends).all() or ends[1] - ends[0] < 2:
            continue
        between = np.arange(ends[0] + 1, ends[1])
        level = np.full(len(between), ends[2]) if series.style == "step" else np.rint(np.interp(between, ends[:2], ends[2:]))
        grid.put(level, between, sign)


def _heat(grid: _Grid, series: Series) -> None:
    """x has the edges of the columns of z, y those of its rows."""
    z = np.asarray(series.z)
    top = float(np.nanmax(z)) if np.isfinite(z).any() else 0.0
    for row in range(z.shape[0]):
        for column in range(z.shape[1]):
            if not z[row, column] > 0:
                continue
            shade = SHADES[min(len(SHADES) - 1, 1 + int(np.sqrt(z[row, column] / top) * (len(SHADES) - 2)))]
            ends = grid.x.places_of(series.x[column : column + 2])
            levels = grid.y[series.axis].places_of(series.y[row : row + 2])
            if np.isfinite(ends).all() and np.isfinite(levels).all():
                across = np.arange(ends[0], max(ends[1], ends[0] + 1))
                for level in np.arange(levels[0], max(levels[1], levels[0] + 1)):
                    grid.put(np.full(len(across), level), across, shade)
