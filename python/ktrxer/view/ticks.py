# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ticks, the grid and the label of an axis with a linear scale, as two lines and some texts. matplotlib has an object with three lines
and two texts for each tick; these take a third of the time of a picture. The places and the texts of the ticks are matplotlib's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

TICKDOWN, TICKLEFT = cast("Any", (3, 0))  # of matplotlib.lines, which is slow to import

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ktrxer.panels.model import Floats


def draw(axes: Axes, *, x: bool, y: bool, grid: bool) -> None:
    """These axes replace those of matplotlib, where `x` and `y` are set. Call it when the limits are set."""
    if x:
        _axis(axes, 0, grid)
    if y:
        _axis(axes, 1, grid)


def _axis(axes: Axes, which: int, grid: bool) -> None:
    """`which`: 0 for x, 1 for y."""
    import matplotlib
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    axis: Any = (axes.xaxis, axes.yaxis)[which]
    places, texts = _ticks(axis, (axes.bbox.width, axes.bbox.height)[which])
    if axis.get_major_formatter().get_offset():  # a factor of all numbers, which stands at the end of the axis
        return
    settings: Any = matplotlib.rcParams
    name = ("xtick", "ytick")[which]
    size = settings[f"{name}.major.size"]
    pad = size + settings[f"{name}.major.pad"]
    along: Any = (axes.get_xaxis_transform, axes.get_yaxis_transform)[which]()
    figure: Any = axes.figure

    def at(along: Any, across: Any) -> tuple[Any, Any]:
        return (along, across) if which == 0 else (across, along)

    def outside(points: float) -> Any:
        return ScaledTranslation(*at(0.0, -points / 72), figure.dpi_scale_trans)

    def text(place: float, words: str, transform: Any, **look: Any) -> Any:
        return axes.text(*at(place, 0.0), words, {}, transform=transform, **look)

    if grid:
        # One line with gaps.
        lines = at(np.repeat(places, 3), np.tile([0.0, 1.0, np.nan], len(places)))
        axes.add_artist(
            Line2D(*lines, transform=along, zorder=0.5, color=settings["grid.color"], linewidth=settings["grid.linewidth"])
        )  # fmt: skip
    color = settings[f"{name}.color"]
    axes.add_artist(
        Line2D(
            *at(places, np.zeros(len(places))), transform=along, zorder=0.5, linestyle="none", marker=(TICKDOWN, TICKLEFT)[which],
            color=color, markersize=size, markeredgewidth=settings[f"{name}.major.width"], clip_on=False,
        )
    )  # fmt: skip
    beside = ({"ha": "center", "va": "top"}, {"ha": "right", "va": "center_baseline"})[which]
    words = [text(place, number, along + outside(pad), color=color, **beside) for place, number in zip(places.tolist(), texts, strict=True)]
    if axis.label.get_text():
        # All numbers are equally high, and the longest are the widest.
        long = max(map(len, texts), default=0)
        measured = words[:1] if which == 0 else [word for word in words if len(word.get_text()) == long]
        extents = [word.get_window_extent() for word in measured]
        room = max(((one.height, one.width)[which] for one in extents), default=0.0) * 72 / figure.dpi + pad + axis.labelpad
        turned: dict[str, Any] = {"va": "top"} if which == 0 else {"va": "bottom", "rotation": "vertical", "rotation_mode": "anchor"}
        text(0.5, axis.label.get_text(), axes.transAxes + outside(room), color=settings["axes.labelcolor"], ha="center", **turned)
    axis.set_visible(False)


def _ticks(axis: Any, pixels: float) -> tuple[Floats, Sequence[str]]:
    """The places in view, and their texts. matplotlib admits half a pixel."""
    places = axis.get_majorticklocs()
    texts = axis.get_major_formatter().format_ticks(places)
    low, high = sorted(axis.get_view_interval())
    slack = 0.5 * (high - low) / max(pixels, 1.0)
    seen = [low - slack <= place <= high + slack for place in places]
    return np.asarray(places, float)[seen], [text for text, one in zip(texts, seen, strict=True) if one]
