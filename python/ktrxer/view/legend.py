# SPDX-License-Identifier: MIT OR Apache-2.0
"""A legend of lines above a plot, as lines and texts in columns. matplotlib's own legend nests five boxes around each name, and computes
the extents of each box for each of its parents. The measures are those of matplotlib's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

BESIDE, BELOW, BORDER = 0.8, 0.5, 0.1  # between a line and its name, between two rows, around the legend: as parts of the font size
ORDER = 5  # of its parts, above the curves


def draw(axes: Axes, lines: Sequence[Line2D], place: tuple[float, float], columns: int, marks: float, longer: float) -> None:
    """`place`: the lower left corner as parts of the axes; `marks` and `longer`: factors for the size of marks and for the
    length of lines."""
    import matplotlib
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Affine2D, ScaledTranslation

    settings = matplotlib.rcParams
    whole: Any = axes.transAxes
    figure: Any = axes.figure
    points: Any = Affine2D().scale(1 / 72) + figure.dpi_scale_trans + ScaledTranslation(*place, whole)
    names = [axes.text(0, 0, str(line.get_label()), fontsize=settings["legend.fontsize"], transform=points, zorder=ORDER) for line in lines]
    size: Any = names[0].get_fontsize()
    long = settings["legend.handlelength"] * size * longer
    extents = [name.get_window_extent() for name in names]
    pixel = 72 / figure.dpi
    row = max(one.height for one in extents) * pixel + BELOW * size
    last = BORDER * size + max(whole.transform(place)[1] - one.y0 for one in extents) * pixel  # the base line of the last row
    most = -(-len(lines) // columns)
    x = BORDER * size
    for part in np.array_split(np.arange(len(lines)), min(columns, len(lines))):
        for at, i in enumerate(part):
            y = last + (most - 1 - at) * row
            line = Line2D([x, x + long / 2, x + long], np.full(3, y + 0.35 * size))
            line.update_from(lines[i])
            line.set(transform=points, clip_on=False, zorder=ORDER, markevery=[1], markersize=lines[i].get_markersize() * marks, label="_")
            axes.add_artist(line)
            names[i].set_position((x + long + BESIDE * size, y))
        x += long + (BESIDE + settings["legend.columnspacing"]) * size + max(extents[i].width for i in part) * pixel
