# SPDX-License-Identifier: MIT OR Apache-2.0
"""The settings of a user for the axes and the legend of a panel, the same for panels with and without a specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ktrxer.panels import shapes
from ktrxer.panels.errors import SettingError
from ktrxer.panels.model import TIME, Axis, Floats, Panel, Series
from ktrxer.panels.spec import Bounds, Log, Options

FREE: Bounds = (None, None)


def over_time(panel: Panel) -> bool:
    return panel.link == TIME or (panel.x.label, panel.x.unit) == ("Time", "s")


def has_outliers(panel: Panel) -> bool:
    """A plot over time of samples; those of a heat map are counted in its squares."""
    return over_time(panel) and any(one.z is None for one in panel.series)


def has_log_x(panel: Panel) -> bool:
    """The x axis has values, neither times nor names."""
    return not panel.x.names and not over_time(panel)


def changed(panel: Panel, options: Options, scaling: tuple[float, float] | None = None, log: Log = "") -> Panel:
    """`scaling` and `log`: those of the plot, where the user gives none that fits."""
    if options.scaling is not None and has_outliers(panel):
        scaling = options.scaling
    if scaling is not None:
        panel = _without_outliers(panel, *scaling)
    log = options.log if options.log and (options.log == "y" or has_log_x(panel)) else log
    x, y, y2 = panel.x, panel.y, panel.y2
    if log == "y":
        y = replace(y, scale="log", zero=False)
    if log == "x":
        x = replace(x, scale="log", zero=False)
    if options.zero is not None:
        y, y2 = _zero(y, options.zero), None if y2 is None else _zero(y2, options.zero)
    return bounded(replace(panel, x=x, y=y, y2=y2, legend=panel.legend and options.legend), options)


def labelled(panel: Panel, options: Options) -> Panel:
    """The units stay."""
    x, y = panel.x, panel.y
    return replace(panel, x=replace(x, label=options.label_x or x.label), y=replace(y, label=options.label_y or y.label))


def bounded(panel: Panel, options: Options) -> Panel:
    """A panel without a sample between the bounds keeps its axis, with a note: an empty panel would look like a run without samples."""
    for name, bounds in (("bounds-x", options.bounds_x), ("bounds-y", options.bounds_y)):
        if bounds == FREE or (name == "bounds-x" and panel.x.names):
            continue
        if not _inside(panel, name, bounds):
            note = f"No sample lies within {name}, so the axis is its usual one."
            panel = panel if note in panel.notes else replace(panel, notes=(*panel.notes, note))
        elif name == "bounds-x":
            panel = replace(panel, x=_between(panel.x, bounds, name))
        else:
            panel = replace(panel, y=_between(panel.y, bounds, name))
    return panel


def check(panels: Sequence[Panel], options: Options) -> None:
    """SettingError: a setting changes none of the panels."""
    if not panels:
        return
    if options.log == "x" and not any(has_log_x(panel) for panel in panels):
        raise SettingError("log: the x axis of this plot has times or names and cannot be logarithmic; valid: y")
    if options.scaling is not None and not any(has_outliers(panel) for panel in panels):
        raise SettingError("scaling: fits plots of samples over time, and this plot is none; bounds-y fits all plots")
    if options.bounds_x != FREE and all(panel.x.names for panel in panels):
        raise SettingError("bounds-x: the x axis of this plot has names instead of numbers; bounds-y fits")
    for name, bounds in (("bounds-x", options.bounds_x), ("bounds-y", options.bounds_y)):
        if bounds != FREE and not any(_inside(panel, name, bounds) for panel in panels):
            values = np.concatenate([_values(panel, name) for panel in panels])
            lie = f"they lie from {values.min():.4g} to {values.max():.4g}" if len(values) else "there is none"
            raise SettingError(f"{name}: no sample of this plot lies there; {lie}")


def _zero(axis: Axis, zero: bool) -> Axis:
    return replace(axis, scale="linear", zero=True, least=None) if zero else replace(axis, zero=False)


def _values(panel: Panel, name: str) -> Floats:
    if name == "bounds-x":
        columns = [one.x for one in panel.series] if not panel.x.names else []
    else:
        columns = [column for one in panel.series if one.axis == 1 for column in (one.y, one.low, one.high) if column is not None]
    return shapes.known(np.concatenate([np.empty(0), *columns]))


def _inside(panel: Panel, name: str, bounds: Bounds) -> bool:
    values = _values(panel, name)
    low, high = (-np.inf if bounds[0] is None else bounds[0]), (np.inf if bounds[1] is None else bounds[1])
    return bool(((values >= low) & (values <= high)).any())


def _between(axis: Axis, bounds: Bounds, name: str) -> Axis:
    """An end without a bound stays where it was, unless it lies beyond the other one."""
    low, high = bounds
    if axis.scale == "log" and any(one is not None and one <= 0 for one in bounds):
        raise SettingError(f"{name}: a logarithmic axis has only values above zero")
    least = low if low is not None else axis.least if axis.least is None or high is None or axis.least < high else None
    most = high if high is not None else axis.most if axis.most is None or low is None or axis.most > low else None
    return replace(axis, least=least, most=most, zero=axis.zero and low is None and (high is None or high > 0))


def _without_outliers(panel: Panel, first: float, last: float) -> Panel:
    y = panel.y
    columns = [_samples(one) for one in panel.series if one.axis == 1]
    found = shapes.limits(columns, first, last)
    if found is None:
        return panel
    low, high = found
    outside = sum(int(((column < low) | (column > high)).sum()) for column in columns)
    if not outside:
        return panel
    y = replace(y, least=low if not y.zero or low < 0 else None, most=high, zero=y.zero and low >= 0)
    whole = sum(int(np.isfinite(column).sum()) for column in columns)
    note = f"Scaled to the samples from p{first:g} to p{last:g}; {outside:,} of {whole:,} lie outside the axis."
    return replace(panel, y=y, notes=(*panel.notes, note))


def _samples(one: Series) -> Floats:
    return one.y[:-1] if one.style == "step" else one.y
