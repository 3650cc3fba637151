# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plot as data: which series it selects, how it reduces, groups and combines them, and how it draws them. `build` makes panels of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.panels.groups import Combine, GroupBy

# series     over time
# cdf, ccdf  the share of samples at or below, or above, each value
# line       one number from each group over the second part of its name
# heat       where the samples of each part of the time lie
# difference the difference of two groups of runs, with its interval, for each pick
# stack      panels of other plots, one below the other on one time axis (`side`: beside each other)
Kind = Literal["series", "band", "cdf", "ccdf", "histogram", "box", "violin", "bar", "line", "qq", "ellipse", "heat", "difference", "stack"]

# The part of the run: all of it, the load, from the load's begin on, before the load, or two times in seconds (the end from the end of
# the run where it is not above zero).
Part = Literal["whole", "load", "from load", "idle"] | tuple[float, float]
Log = Literal["", "x", "y"]
Bounds = tuple[float | None, float | None]  # None: where the samples end


@dataclass(frozen=True)
class Pick:
    """Series of a run by name: `*` stops at a colon, `**` crosses it."""

    data: str
    label: str = ""  # "": the series' own
    column: str = ""  # a further column of the series: tcp_rtt, owd_up, ... (tracks.py)
    axis: Literal[1, 2] = 1
    reduce: str = "mean"  # of reduce.NAMES, where a plot needs one number from a run
    smooth: int = 0  # the mean of so many samples
    exclude: tuple[str, ...] = ()
    part: Part | None = None  # instead of that of the plot


@dataclass(frozen=True)
class Spec:
    kind: Kind
    summary: str
    picks: tuple[Pick, ...] = ()
    y: str = ""  # labels of the axes; "": from the series
    y2: str = ""
    part: Part = "whole"
    scaling: tuple[float, float] | None = None  # percentiles: the axis shows what lies between them
    combine: Combine | None = None  # None: the runs side by side
    by: GroupBy = "name"
    panels: tuple[str, ...] = ()  # of a stack: names of other plots
    side: bool = False  # of a stack: beside each other
    share_x: bool = True
    multiples: Literal["", "run", "series"] = ""  # a small panel for each of these
    log: Log = ""
    events: bool = False  # over time: rows of drops, marks and retransmits above the plot


@dataclass(frozen=True)
class Options:
    """The settings of a user for any plot. Equal options have equal hashes: the explorer keeps pictures by them."""

    part: Part | None = None
    scaling: tuple[float, float] | None = None
    by: GroupBy | None = None
    smooth: int = 0
    norm: float = 1.0  # values are divided by it
    zero: bool | None = None
    log: Log = ""
    bounds_x: Bounds = (None, None)
    bounds_y: Bounds = (None, None)
    label_x: str = ""  # "": that of the plot
    label_y: str = ""
    title: str | None = None  # None: that of the picture; "": none
    legend: bool = True
    same_axes: bool = True  # of small multiples, and of runs beside each other
    absolute_time: bool = False  # seconds of the day of each run instead of since its begin
    concatenate: bool = False  # runs one after the other instead of over each other
    only: tuple[str, ...] = ()  # names, labels and globs of series
    drop: tuple[str, ...] = ()  # the same: series that are not drawn
    drop_names: tuple[str, ...] = ()  # regular expressions: left out of file names before grouping
    relabel: tuple[tuple[str, str], ...] = ()  # text in labels, and what replaces it
    labels: tuple[str, ...] = ()  # of the runs, in their order
    count: bool = True  # the number of runs in the label of a group
