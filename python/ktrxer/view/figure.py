# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws the plot model as a vector or pixel image, by matplotlib. pyplot is not used, because it needs a display and doubles the start-up
time."""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from datetime import UTC
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ktrxer.estimate.distribution import envelope
from ktrxer.view import palette
from ktrxer.view.model import Floats, Panel, PlotModel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PANEL_HEIGHT, HEAD, FOOT = 9.0, 2.6, 0.62, 0.35  # inches
FORMATS = ("svg", "pdf", "png")
# Limit of points of a vector image. More points make it slow to open and no finer on paper: 9 inches at 600 dpi are 5400 dots.
VECTOR_POINTS = 8000

# SVG keeps text as text, which is searchable and small, in common fonts. A dollar sign in a title does not begin a formula. The files
# contain no date and no machine name, so that the same run gives the same bytes.
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ktrxer",
    "pdf.fonttype": 42,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#b8bec6",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e9ec",
    "grid.linewidth": 0.6,
    "xtick.color": "#59636e",
    "ytick.color": "#59636e",
    "axes.labelcolor": "#59636e",
    "text.color": "#1b1f24",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.2,
    "path.simplify": True,
    "path.simplify_threshold": 0.4,
    "agg.path.chunksize": 20000,
    "text.parse_math": False,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-9, 9),
}

# For PNG files matplotlib draws the text. One font name suffices, because matplotlib searches all fonts of the machine for each further
# name. Text without hinting takes a third less time.
DRAWN_TEXT: dict[str, Any] = {"font.sans-serif": ["DejaVu Sans"], "text.hinting": "none"}
DPI = 120  # of PNG: 1080 pixels wide

METADATA: dict[str, Any] = {"svg": {"Date": None, "Creator": "ktrxer"}, "pdf": {"CreationDate": None, "Creator": "ktrxer"}}


# Modules that matplotlib imports only for their side effects; axes in three dimensions.
SIDE_EFFECTS = ("matplotlib.dates", "matplotlib.category")
SETTERS, SPATIAL = "_update_set_signature_and_docstring", "mpl_toolkits.mplot3d"
# Modules for formulas, for files of TeX, for patterns of font names, and their parser generator.
ON_DEMAND = ("pyparsing", "matplotlib._fontconfig_pattern", "matplotlib._mathtext", "matplotlib.dviread")


class OnDemand(ModuleType):
    """Replaces a module while other modules import names from it. Each name is a function that imports the real module when it is
    called."""

    __version__ = "9999"  # of pyparsing: matplotlib checks that it is not too old

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*given: Any, **named: Any) -> Any:
            if sys.modules.get(self.__name__) is self:
                return None  # only during the import of matplotlib, which checks the patterns in its own defaults
            return getattr(import_module(self.__name__), name)(*given, **named)

        return call


def load(kind: str = "png") -> None:
    """Import matplotlib and its back end for a kind of file, without the parts that no plot needs. These take two thirds of the import
    time: axes in three dimensions, axes of dates and of words (with the library that parses dates), formulas (with the parser generator),
    and generated documentation of a thousand setters. The drawing does not change. If this import fails, the whole of matplotlib is
    imported."""
    if "matplotlib.figure" in sys.modules:
        return
    there = set(sys.modules)
    try:
        _load_lean(kind)
    except Exception:
        for name in set(sys.modules) - there:
            # Compiled modules stay, because their types cannot be created twice.
            if name.partition(".")[0] == "matplotlib" and not isinstance(sys.modules[name].__loader__, ExtensionFileLoader):
                del sys.modules[name]
        _load_whole(kind)


def _load_whole(kind: str) -> None:
    import_module("matplotlib.figure")
    import_module(f"matplotlib.backends.backend_{'agg' if kind == 'png' else kind}")


def _load_lean(kind: str) -> None:
    # With None in sys.modules an import of that name fails.
    instead: dict[str, Any] = {SPATIAL: None}
    instead |= {name: ModuleType(name) for name in SIDE_EFFECTS} | {name: OnDemand(name) for name in ON_DEMAND}
    instead[SIDE_EFFECTS[0]].UTC = UTC  # the only name of this module that the file writers use
    before = {name: sys.modules[name] for name in instead if name in sys.modules}
    kept: dict[tuple[Any, str], Any] = {}
    try:
        sys.modules.update(instead | {name: module for name, module in before.items() if name != SPATIAL})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            artist: Any = import_module("matplotlib.artist")
            writers = (artist, "kwdoc"), (artist.Artist, SETTERS)
            kept = {(owner, name): vars(owner)[name] for owner, name in writers if name in vars(owner)}
            for owner, name in kept:
                setattr(owner, name, (lambda *_: "") if name == "kwdoc" else classmethod(lambda _: None))
            _load_whole(kind)
    finally:
        for (owner, name), value in kept.items():
            setattr(owner, name, value)
        for name in instead:
            sys.modules.pop(name, None)
        sys.modules.update(before)


def save(model: PlotModel, path: Path, kind: str) -> None:
    """Write a file of that kind (FORMATS). OSError if it cannot be written."""
    load(kind)
    import matplotlib

    with matplotlib.rc_context(cast("Any", STYLE if kind == "svg" else STYLE | DRAWN_TEXT)):
        figure = draw(model, vector=kind != "png")
        if kind == "png":
            figure.set_dpi(DPI)
            canvas: Any = figure.canvas
            canvas.draw()
            path.write_bytes(png(np.asarray(canvas.buffer_rgba())))
        else:
            figure.savefig(path, format=kind, dpi=DPI, metadata=METADATA.get(kind, {}))


def png(dots: NDArray[np.uint8]) -> bytes:
    """A PNG file (ISO 15948) of rows with red, green, blue and one ignored byte. Each row is stored as its difference to the row above,
    which is mostly zero, so fast compression suffices."""
    height, width = dots.shape[:2]
    flat = dots[:, :, :3].reshape(height, 3 * width)
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 2  # the filter "Up"
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    per_metre = round(DPI / 0.0254)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        (b"IDAT", zlib.compress(rows.data, 1)),
        (b"IEND", b""),
    )
    packed = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def draw(model: PlotModel, *, vector: bool) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(model.panels)
    strips = [_strip(_lost_rows(panel)) for panel in model.panels]
    heights = [PANEL_HEIGHT + _legend_lines(panel) * 0.17 + strip for panel, strip in zip(model.panels, strips, strict=True)]
    notes = [_wrapped(list(panel.notes)) for panel in model.panels]
    names = [max((len(name.splitlines()) for name in _names(panel)), default=1) * 0.14 for panel in model.panels]
    rooms = [0.48 + deep + 0.145 * len(lines) for deep, lines in zip(names, notes, strict=True)]  # below each panel: labels, notes
    total = HEAD + sum(heights) + sum(rooms)
    figure = Figure(figsize=(WIDTH, total), facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(0.075, 1 - 0.26 / total, _short(model.title, 72), fontsize=13, fontweight="bold", va="baseline")
    figure.text(0.075, 1 - 0.45 / total, _short(model.subtitle, 105), fontsize=8.5, color="#59636e", va="baseline")
    top = total - HEAD
    shared: dict[str, Axes] = {}
    for i in range(count):
        panel, lines = model.panels[i], notes[i]
        legend = _legend_lines(panel) * 0.17 + 0.32 + strips[i]  # height above the axes
        height = heights[i] - legend
        bottom = top - legend - height
        axes = figure.add_axes((0.075, bottom / total, 0.905, height / total), sharex=shared.get(panel.link))
        if panel.link:
            shared.setdefault(panel.link, axes)
        _panel(axes, panel, vector, height)
        # The position is explicit: to choose one itself, matplotlib draws all elements above the axes.
        axes.set_title(panel.title, y=1.0, pad=legend * 72 - 13)
        if not panel.x.names and panel.series:
            above = 1 + (0.15 + strips[i]) / height
            axes.legend(loc="lower left", bbox_to_anchor=(-0.008, above), ncols=_columns(panel), borderaxespad=0.0, borderpad=0.1)
        if lines:
            figure.text(
                0.075, (bottom - 0.32 - names[i]) / total, "\n".join(lines), fontsize=7, color="#59636e", va="top", linespacing=1.35
            )
        top = bottom - rooms[i]
    return figure


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _wrapped(notes: list[str], width: int = 145) -> list[str]:
    import textwrap

    return [line for note in notes for line in textwrap.wrap(note, width)][:10]


def _names(panel: Panel) -> list[str]:
    """The names of the places on the x axis, wrapped to the distance of the places, in at most three lines."""
    import textwrap

    width = max(8, 100 // max(1, len(panel.x.names)))
    return ["\n".join(textwrap.wrap(_short(name, 3 * width), width)[:3]) for name in panel.x.names]


def _columns(panel: Panel) -> int:
    longest = max((len(_short(series.label, 44)) for series in panel.series), default=1)
    return max(1, min(8, int(118 / (longest + 7))))


def _legend_lines(panel: Panel) -> int:
    if panel.x.names:
        return 0
    return -(-len(panel.series) // _columns(panel))


def _lost_rows(panel: Panel) -> int:
    return sum(series.lost is not None and len(series.lost) > 0 for series in panel.series)


def _strip(rows: int) -> float:
    """Height in inches of the strip above the plot. It has a row of lost probes for each series, because a lost probe has no delay."""
    return min(0.09 * rows, 0.6)


def _panel(axes: Axes, panel: Panel, vector: bool, height: float) -> None:
    for band in panel.bands:
        if band.kind == "load":
            axes.axvspan(band.start, band.end, color="#3c5a82", alpha=0.075, linewidth=0, zorder=0)
    rows, row = _lost_rows(panel), 0
    for series in panel.series:
        color = palette.LIGHT[series.color]
        label = _short(series.label, 44)
        # matplotlib leaves a name that begins with an underscore out of the legend.
        label = "\u200b" + label if label.startswith("_") else label
        dash: Any = (0, series.dash) if series.dash else "solid"
        _STYLES[series.style](axes, series, {"color": color, "label": label}, dash, vector)
        if series.low is not None and series.high is not None:
            at = slice(None) if not vector else envelope(series.y, VECTOR_POINTS)
            step: Any = "post" if series.style == "step" else None
            axes.fill_between(series.x[at], series.low[at], series.high[at], color=color, alpha=0.18, linewidth=0, step=step)
        if series.lost is not None and len(series.lost):
            level = np.full(len(series.lost), 1 + _strip(rows) * (rows - row - 0.5) / rows / height)
            axes.plot(
                series.lost, level, "x", color=color, markersize=3, markeredgewidth=0.7, transform=axes.get_xaxis_transform(), clip_on=False
            )
            row += 1
    if rows:
        axes.annotate(
            "lost", (0, 1 + _strip(rows) / 2 / height), xytext=(-4, 0), textcoords="offset points", xycoords="axes fraction", fontsize=7,
            color="#59636e", ha="right", va="center",
        )  # fmt: skip
    _scales(axes, panel)
    for band in panel.bands:
        where: Any = ("data", "axes fraction")
        place = (band.start, 1 + _strip(rows) / height)
        axes.annotate(band.label, place, xytext=(3, 2), textcoords="offset points", xycoords=where, fontsize=7, color="#59636e")


def _scales(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter

    named = [f"{axis.label} ({axis.unit})" if axis.unit else axis.label for axis in (panel.x, panel.y)]
    axes.set_xlabel(named[0])
    axes.set_ylabel(named[1])
    if panel.x.names:
        axes.set_xticks(range(len(panel.x.names)), _names(panel))
        axes.set_xlim(-0.6, len(panel.x.names) - 0.4)
    else:
        span = [end for series in panel.series for end in (series.x[[0, -1]] if len(series.x) else ())]
        span += [end for band in panel.bands for end in (band.start, band.end)]
        span = [end for end in span if np.isfinite(end)]
        if span:
            low, high = min(span), max(span)
            low = min(low, 0.0) if panel.x.zero else low
            axes.set_xlim(low, high if high > low else low + 1)
    for axis, set_scale, ticks in ((panel.x, axes.set_xscale, axes.xaxis), (panel.y, axes.set_yscale, axes.yaxis)):
        if axis.scale == "log":
            set_scale("log", nonpositive="mask")
            ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ticks.set_minor_formatter(FuncFormatter(lambda *_: ""))
    if panel.y.scale == "linear" and panel.y.zero:
        low = min((float(np.nanmin(s.y)) for s in panel.series if s.samples), default=0.0)
        axes.set_ylim(bottom=None if low < 0 else 0)
    if panel.y.most is not None:
        axes.set_ylim(top=panel.y.most)


def _line(axes: Axes, series: Series, look: dict[str, Any], dash: Any, vector: bool) -> None:
    x, y = _thin(series, vector)
    axes.plot(x, y, linestyle=dash, linewidth=series.width * 0.75, **look)
    # Draw a single sample between two gaps as a dot.
    gap = np.concatenate([[True], np.isnan(y), [True]])
    alone = gap[:-2] & gap[2:] & ~gap[1:-1]
    if alone.any():
        axes.plot(x[alone], y[alone], linestyle="none", marker=".", markersize=2, color=look["color"])


def _step(axes: Axes, series: Series, look: dict[str, Any], dash: Any, _vector: bool) -> None:
    axes.plot(series.x, series.y, drawstyle="steps-post", linestyle=dash, linewidth=series.width * 0.8, **look)


def _points(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, vector: bool) -> None:
    x, y = _thin(series, vector)
    # Draw thousands of marks as an image inside the vector file; axes and text stay vectors.
    axes.plot(x, y, linestyle="none", marker="o", markersize=series.width * 0.75, markeredgewidth=0, rasterized=vector, alpha=0.7, **look)


def _box(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, _vector: bool) -> None:
    if len(series.y) != 5:
        return
    at, color = float(series.x[0]), look["color"]
    axes.vlines(at, series.y[0], series.y[4], color=color, linewidth=1.2)
    axes.bar(at, series.y[3] - series.y[1], 0.5, series.y[1], facecolor="white", edgecolor=color, linewidth=1.4, zorder=2)
    axes.hlines(series.y[2], at - 0.25, at + 0.25, color=color, linewidth=2, zorder=3)
    for end in (series.y[0], series.y[4]):
        axes.hlines(end, at - 0.1, at + 0.1, color=color, linewidth=1.2)


_STYLES: dict[str, Callable[[Axes, Series, dict[str, Any], Any, bool], None]] = {
    "line": _line,
    "step": _step,
    "points": _points,
    "box": _box,
}


def _thin(series: Series, vector: bool) -> tuple[Floats, Floats]:
    # Of the samples on one dot, only the minimum and the maximum are visible.
    at = envelope(series.y, VECTOR_POINTS if vector else int(2.4 * WIDTH * DPI))
    return series.x[at], series.y[at]
