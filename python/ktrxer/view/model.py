# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plot model: what is to be drawn, in numbers and words, and nothing about who draws it.

A panel has one x and one y axis, each with a label and a unit, and series with columns of their own. NaN in y is a gap: no line
crosses it. A `step` series holds y[i] from x[i] to x[i + 1]; its last sample only ends the last step. A `box` has five samples at one x:
the ends of its line, of its box, and the median in the middle.
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
    zero: bool = True  # begins at zero
    most: float | None = None  # ends here unless somebody asks for all: outliers lie above
    names: tuple[str, ...] = ()  # of the places 0, 1, 2, ... instead of numbers


@dataclass(frozen=True)
class Band:
    """A phase of the run, behind the samples."""

    start: float
    end: float
    label: str
    kind: Literal["idle", "load"]


@dataclass(frozen=True)
class Series:
    key: str  # the same in two panels: the same flow or probe
    label: str
    style: Style
    x: Floats
    y: Floats
    color: int = 0  # place in the palette (palette.py)
    dash: tuple[float, ...] = ()
    width: float = 1.25
    low: Floats | None = None  # a band about y
    high: Floats | None = None
    lost: Floats | None = None  # where (on x) there should be a value and none came
    hidden: bool = False  # at first
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
    link: str = TIME  # panels of one link share their x axis and cursor; "" stands alone
    bands: tuple[Band, ...] = ()
    notes: tuple[str, ...] = ()
    log: Literal["x", "y"] = "y"  # the axis whose scale a reader may want logarithmic


@dataclass(frozen=True)
class PlotModel:
    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = field(default=())
