# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot model: the numbers and text of a plot, independent of the program that draws it.

A panel has one x axis, one or two y axes, each with a label and a unit, and series with their own columns. NaN in y is a gap in the line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# line     samples, joined
# points   samples, not joined
# step     y[i] from x[i] to x[i + 1]; the last sample only ends the last step
# box      five samples at one x (narrow if its width is below one): the ends of its line, the ends of its box, and the median in the middle
# bar      one sample from zero; `low` and `high` are its interval
# outline  a closed curve: an ellipse, a violin
# heat     a matrix z: x has the edges of its columns, y the edges of its rows
Style = Literal["line", "step", "points", "box", "bar", "outline", "heat"]
EventKind = Literal["lost", "drop", "mark", "retransmit"]
TIME = "time"  # the link of all panels over time


@dataclass(frozen=True)
class Axis:
    label: str
    unit: str
    scale: Literal["linear", "log"] = "linear"
    zero: bool = True  # the axis begins at zero
    most: float | None = None  # the axis ends here at first; outliers lie above
    least: float | None = None  # the axis begins here at first; outliers lie below
    names: tuple[str, ...] = ()  # names of the positions 0, 1, 2, ... instead of numbers


@dataclass(frozen=True)
class Band:
    """A phase of the run, drawn behind the samples."""

    start: float
    end: float
    label: str
    kind: Literal["idle", "load"]


@dataclass(frozen=True)
class EventRow:
    """Events, as signs in a row of their own above the plot: they have a time and no value of the y axis. `counts`: events at each time."""

    key: str  # of the series that they belong to
    label: str
    kind: EventKind
    x: Floats
    color: int = 0
    counts: Floats | None = None


@dataclass(frozen=True)
class Series:
    key: str  # the same key in two panels means the same flow or probe
    label: str
    style: Style
    x: Floats
    y: Floats
    color: int = 0  # index in the palette (palette.py)
    dash: tuple[float, ...] = ()
    width: float = 1.25
    low: Floats | None = None  # lower edge of a band or an interval around y
    high: Floats | None = None
    z: Floats | None = None  # only of a heat map
    axis: Literal[1, 2] = 1  # of y: 2 is the right one
    hidden: bool = False  # not drawn at first
    hint: str = ""

    @property
    def samples(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.y if self.z is None else self.z)))

    def times(self, factor: float) -> Series:
        """The same series in another unit of y."""
        low, high = (None if column is None else column * factor for column in (self.low, self.high))
        return self if factor == 1.0 else replace(self, y=self.y * factor, low=low, high=high)


@dataclass(frozen=True)
class Panel:
    key: str
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    link: str = TIME  # panels of one link share their x axis and cursor; a panel with "" is independent
    bands: tuple[Band, ...] = ()
    notes: tuple[str, ...] = ()
    log: Literal["x", "y"] = "y"  # the axis that the page can switch to a logarithmic scale
    y2: Axis | None = None  # the right axis
    event_rows: tuple[EventRow, ...] = ()
    folded: str = ""  # why a report shows only the title at first
    legend: bool = True  # the names of the series are shown
    keyed: bool = False  # also where the x axis has names, because they are not those of the series


@dataclass(frozen=True)
class PlotModel:
    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = field(default=())
    columns: int = 1  # of panels side by side: small multiples; panels of one link share their axes
