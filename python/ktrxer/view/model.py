# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot model: the numbers and text of a plot, independent of the program that draws it.

A panel has one x and one y axis, each with a label and a unit, and series with their own columns. NaN in y is a gap in the line. A `step`
series has the value y[i] from x[i] to x[i + 1]; its last sample only ends the last step. A `box` has five samples at one x: the ends of
its line, the ends of its box, and the median.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Style = Literal["line", "step", "points", "box"]
TIME = "time"  # the link of all panels over time


@dataclass(frozen=True)
class Axis:
    label: str
    unit: str
    scale: Literal["linear", "log"] = "linear"
    zero: bool = True  # the axis begins at zero
    most: float | None = None  # the axis ends here at first; outliers lie above
    names: tuple[str, ...] = ()  # names of the positions 0, 1, 2, ... instead of numbers


@dataclass(frozen=True)
class Band:
    """A phase of the run, drawn behind the samples."""

    start: float
    end: float
    label: str
    kind: Literal["idle", "load"]


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
    low: Floats | None = None  # lower edge of a band around y
    high: Floats | None = None
    lost: Floats | None = None  # x values of lost probes
    hidden: bool = False  # not drawn at first
    hint: str = ""

    @property
    def samples(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.y)))


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


@dataclass(frozen=True)
class PlotModel:
    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = field(default=())
