# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a picture of matplotlib shows beside its curves, for tests of places."""

from __future__ import annotations

from typing import Any

from ktrxer.view import legend


def of_legend(axes: Any) -> list[Any]:
    """The names in the legend of these axes."""
    own = axes.get_legend()
    return [*(own.get_texts() if own else []), *(text for text in axes.texts if text.get_zorder() == legend.ORDER)]


def boxes(drawn: Any, renderer: Any) -> list[tuple[str, Any]]:
    """Text and extents of each title, label and number of the axes, and of each legend."""
    found = []
    for axes in drawn.axes:
        labels = [axis.label for axis in (axes.xaxis, axes.yaxis) if axis.get_visible()]
        own = axes.get_legend()
        others = [text for text in axes.texts if own is None or text.get_zorder() != legend.ORDER]
        words = [text for text in (axes._left_title, *labels, *others) if text.get_text().strip()]
        found += [(text.get_text(), text.get_window_extent(renderer)) for text in words]
        found += [("legend", own.get_window_extent(renderer))] if own else []
    return found
