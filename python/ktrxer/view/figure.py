# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws the plot model as a vector or pixel image, by the public interface of matplotlib. pyplot is not used, because it keeps each figure
until it is closed. The import of matplotlib takes longer than a plot, so many plots are drawn by one process."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ktrxer.imports import refused
from ktrxer.panels import palette
from ktrxer.panels.model import Axis, EventRow, Floats, Panel, PlotModel, Series
from ktrxer.statistics.distribution import envelope
from ktrxer.view import legend, ticks
from ktrxer.view.arguments import STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAD, LINE = 0.62, 0.17  # inches
LEFT, RIGHT, BETWEEN = 0.675, 0.18, 0.675  # inches beside the panels: for the numbers and the name of the y axis
# Limit of points of a vector image. More points make it slow to open and no finer on paper: 9 inches at 600 dpi are 5400 dots.
VECTOR_POINTS = 8000
# Limit of names in a legend. Colours and dashes repeat long before, and matplotlib spends more time on hundreds of names than on the lines.
MOST_NAMES = 60


@dataclass(frozen=True)
class Look:
    """How large a picture is, and whether it explains itself."""

    width: float  # inches
    panel: float = 2.6  # height of a panel, with the room for its title
    font: float = 8.5  # points
    words: bool = True  # the title of the picture, and notes; a figure in a paper has a caption instead
    dpi: int = 120  # of PNG, and of thousands of marks in a vector image
    settings: tuple[tuple[str, Any], ...] = ()  # of matplotlib

    @property
    def room(self) -> float:
        """How much text a line has, as a part of that of SCREEN."""
        return self.width / 9 * 8.5 / self.font


SCREEN = Look(9.0)
# Widths of the two-column formats of IEEE and ACM (3.5 and 3.33, 7.16 and 7.0 inches): LaTeX's \includegraphics[width=\linewidth] changes
# the size of letters by less than a twentieth. Letters are outlines in SVG, so that no other font replaces theirs; PDF contains its font.
_PRINT: tuple[tuple[str, Any], ...] = (
    ("axes.titlesize", 7.5),
    ("legend.fontsize", 6.5),
    ("legend.columnspacing", 0.9),
    ("svg.fonttype", "path"),
)
LOOKS = dict(zip(STYLES, (SCREEN, Look(3.5, 1.9, 7, False, 300, _PRINT), Look(7.16, 2.1, 7, False, 300, _PRINT)), strict=True))

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

# matplotlib draws the text of PNG files. One font name suffices, because matplotlib searches all fonts of the machine for each further
# name. Text without hinting takes a third less time.
DRAWN_TEXT: dict[str, Any] = {"font.sans-serif": ["DejaVu Sans"], "text.hinting": "none"}
METADATA: dict[str, Any] = {"svg": {"Date": None, "Creator": "ktrxer"}, "pdf": {"CreationDate": None, "Creator": "ktrxer"}}


def save(model: PlotModel, path: Path, kind: str, look: Look = SCREEN) -> None:
    """Write a picture of that kind (arguments.FORMATS). OSError if it cannot be written."""
    import matplotlib

    settings = STYLE | {"font.size": look.font} | dict(look.settings)
    drawn = kind != "svg" or settings["svg.fonttype"] == "path"
    with matplotlib.rc_context(cast("Any", settings | DRAWN_TEXT if drawn else settings)):
        figure = draw(model, vector=kind != "png", look=look)
        if kind == "png":
            figure.set_dpi(look.dpi)
            canvas: Any = figure.canvas
            canvas.draw()
            path.write_bytes(png(np.asarray(canvas.buffer_rgba()), look.dpi))
        else:
            figure.savefig(path, format=kind, dpi=look.dpi, metadata=METADATA.get(kind, {}))


def png(dots: NDArray[np.uint8], dpi: int) -> bytes:
    """A PNG file (ISO 15948) of rows with red, green, blue and one ignored byte. Each row is stored as its difference to the row above,
    which is mostly zero, so fast compression suffices."""
    height, width = dots.shape[:2]
    flat = dots[:, :, :3].reshape(height, 3 * width)
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 2  # the filter "Up"
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    per_metre = round(dpi / 0.0254)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        (b"IDAT", zlib.compress(rows.data, 1)),
        (b"IEND", b""),
    )
    packed = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@dataclass(frozen=True)
class _Cell:
    """The room of a panel, in inches: from above downwards the title, the legend, the rows of events, the plot, the
    labels of the x axis, the notes."""

    panel: Panel
    look: Look
    titled: bool
    event_rows: float
    legend: float
    names: float
    notes: list[str]

    @property
    def above(self) -> float:
        return self.legend * LINE + (0.32 if self.titled else 0.16) + self.event_rows

    @property
    def plot(self) -> float:
        return self.look.panel - 0.32

    @property
    def below(self) -> float:
        return 0.48 + self.names + 0.145 * len(self.notes)

    @property
    def height(self) -> float:
        return self.above + self.plot + self.below


def _cell(panel: Panel, columns: float, look: Look, titled: bool) -> _Cell:
    names = max((len(name.splitlines()) for name in _names(panel, columns)), default=1) * 0.14
    notes = _wrapped(list(panel.notes), int(145 / columns)) if look.words else []
    return _Cell(panel, look, titled, _strip(len(panel.event_rows)), _legend_lines(panel, columns), names, notes)


def draw(model: PlotModel, *, vector: bool, look: Look = SCREEN) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # Pictures of three dimensions, of which there are none, take a tenth of the import.
    warnings.filterwarnings("ignore", "Unable to import Axes3D")
    with refused("mpl_toolkits"):
        from matplotlib.figure import Figure

    side = max(1, min(model.columns, len(model.panels)))
    columns = side / look.room  # of the text that a panel has room for, as a part of that of one panel on a screen
    cells = [_cell(panel, columns, look, look.words or len(model.panels) > 1) for panel in model.panels]
    rows = [cells[i : i + side] for i in range(0, len(cells), side)]
    headed = look.words and bool(model.title or model.subtitle)
    head = HEAD if headed else 0.05
    total = head + sum(max(cell.height for cell in row) for row in rows)
    figure = Figure(figsize=(look.width, total), dpi=look.dpi, facecolor="white")
    FigureCanvasAgg(figure)
    if headed:
        at = LEFT / look.width
        figure.text(at, 1 - 0.26 / total, _short(model.title, 72), fontsize=13, fontweight="bold", va="baseline")
        figure.text(at, 1 - 0.45 / total, _short(model.subtitle, 105), fontsize=8.5, color="#59636e", va="baseline")
    top = total - head
    shared: dict[str, Axes] = {}
    links = {panel.link for panel in model.panels}
    spans = {link: np.concatenate([_span(panel) for panel in model.panels if panel.link == link]) for link in links}
    made: list[tuple[Axes, Panel]] = []
    for row in rows:
        above = max(cell.above for cell in row)
        for place, cell in enumerate(row):
            panel, bottom = cell.panel, top - above - cell.plot
            right = 0.45 if panel.y2 is not None else 0.0
            width = (look.width - LEFT - RIGHT - BETWEEN * (side - 1)) / side
            left = (LEFT + place * (width + BETWEEN)) / look.width
            part = (width - right) / look.width
            axes = figure.add_axes((left, bottom / total, part, cell.plot / total), sharex=shared.get(panel.link))
            if panel.link:
                shared.setdefault(panel.link, axes)
            _panel(axes, panel, vector, cell.plot, columns, spans[panel.link] if panel.link else _span(panel))
            # The position is explicit: to choose one itself, matplotlib draws all elements above the axes.
            if cell.titled:
                axes.set_title(_short(panel.title, int(110 / columns)), y=1.0, pad=cell.above * 72 - 13)
            _legend(axes, panel, cell, columns)
            if cell.notes:
                under = (bottom - 0.32 - cell.names) / total
                figure.text(left, under, "\n".join(cell.notes), fontsize=7, color="#59636e", va="top", linespacing=1.35)
            made.append((axes, panel))
        top -= max(above - cell.above + cell.height for cell in row)
    for axes, panel in made:
        if panel.y2 is None:
            plain = panel.x.scale != "log" and not panel.x.names, panel.y.scale != "log"
            ticks.draw(axes, x=plain[0], y=plain[1], grid=all(one.style != "heat" for one in panel.series))
    return figure


def _legend(axes: Axes, panel: Panel, cell: _Cell, columns: float) -> None:
    from matplotlib.lines import Line2D

    handles = [handle for one in axes.figure.axes if one.bbox.bounds == axes.bbox.bounds for handle in one.get_legend_handles_labels()[0]]
    if (panel.x.names and not panel.keyed) or not panel.legend or not handles:
        return
    above = 1 + (0.15 + cell.event_rows) / cell.plot
    points = [one.width for one in panel.series if one.style == "points"]
    further = len(handles) - MOST_NAMES
    if further > 0:
        handles = [*handles[:MOST_NAMES], Line2D([], [], linestyle="none", label=f"and {further} further series")]
    lines = [one for one in handles if isinstance(one, Line2D)]
    if len(lines) == len(handles):
        marks = max(1.0, 3 / min(points)) if points else 1.0
        legend.draw(axes, lines, (-0.008, above), _columns(panel, columns), marks, 2.0 if _long(panel) else 1.0)
        return
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(-0.008, above), ncols=_columns(panel, columns), borderaxespad=0.0, borderpad=0.1,
        markerscale=max(1.0, 3 / min(points)) if points else 1.0,
    )  # fmt: skip


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _wrapped(notes: list[str], width: int) -> list[str]:
    import textwrap

    return [line for note in notes for line in textwrap.wrap(note, width)][:10]


def _names(panel: Panel, columns: float) -> list[str]:
    """The names of the places on the x axis, wrapped to the distance of the places, in at most three lines."""
    import textwrap

    width = max(8, int(100 / columns / max(1, len(panel.x.names))))
    return ["\n".join(textwrap.wrap(_short(name, 3 * width), width)[:3]) for name in panel.x.names]


def _listed(panel: Panel) -> list[Series]:
    """The series of the legend: those with a label."""
    return [one for one in panel.series if one.label]


def _columns(panel: Panel, columns: float) -> int:
    longest = max((len(_short(series.label, 44)) for series in _listed(panel)), default=1)
    return max(1, min(8, int(118 / columns / (longest + (10 if _long(panel) else 7)))))


def _long(panel: Panel) -> bool:
    """Whether the legend has so many dashes that its lines are long."""
    return len({one.dash for one in _listed(panel)}) > palette.FEW_DASHES


def _legend_lines(panel: Panel, columns: float) -> int:
    without = (panel.x.names and not panel.keyed) or not panel.legend
    return 0 if without else -(-min(len(_listed(panel)), MOST_NAMES + 1) // _columns(panel, columns))


def _strip(rows: int) -> float:
    """Height in inches of the rows of events above the plot: a row for each, because an event has a time and no value."""
    return min(0.09 * rows, 0.6)


def _panel(axes: Axes, panel: Panel, vector: bool, height: float, columns: float, span: Floats) -> None:
    for band in panel.bands:
        if band.kind == "load":
            axes.axvspan(band.start, band.end, color="#3c5a82", alpha=0.075, linewidth=0, zorder=0)
    right = axes.twinx() if panel.y2 is not None else None
    if right is not None:
        right.grid(visible=False)
        right.spines["right"].set_visible(True)
    for series in panel.series:
        color = palette.LIGHT[series.color]
        # matplotlib leaves a name that begins with an underscore out of the legend.
        label = _short(series.label, 44) or "_"
        label = "\u200b" + label if label.startswith("_") and series.label else label
        dash: Any = (0, series.dash) if series.dash else "solid"
        where = right if right is not None and series.axis == 2 else axes
        _STYLES[series.style](where, series, {"color": color, "label": label}, dash, vector)
        if series.low is not None and series.high is not None and series.style in ("line", "step"):
            at = slice(None) if not vector else envelope(series.y, VECTOR_POINTS)
            step: Any = "post" if series.style == "step" else None
            where.fill_between(series.x[at], series.low[at], series.high[at], color=color, alpha=0.18, linewidth=0, step=step)
    axes.autoscale_view()
    if right is not None:
        right.autoscale_view()
    _events(axes, panel.event_rows, height)
    _x_scale(axes, panel, columns, span)
    _y_scale(axes, panel.y, [one for one in panel.series if one.axis == 1 or right is None])
    if right is not None and panel.y2 is not None:
        _y_scale(right, panel.y2, [one for one in panel.series if one.axis == 2])
    left, right_end = axes.get_xlim()
    for band in panel.bands:
        room = (min(band.end, right_end) - max(band.start, left)) / (right_end - left) * axes.bbox.width / axes.figure.dpi * 72
        if room < 4.2 * len(band.label):  # points: the next label would stand on this one
            continue
        both: Any = ("data", "axes fraction")
        place = (band.start, 1 + _strip(len(panel.event_rows)) / height)
        axes.annotate(band.label, place, xytext=(3, 2), textcoords="offset points", xycoords=both, fontsize=7, color="#59636e")


_SIGNS = {"lost": "x", "drop": "v", "mark": "^", "retransmit": "+"}


def _events(axes: Axes, event_rows: Sequence[EventRow], height: float) -> None:
    for place, row in enumerate(event_rows):
        level = np.full(len(row.x), 1 + _strip(len(event_rows)) * (len(event_rows) - place - 0.5) / len(event_rows) / height)
        axes.plot(
            row.x, level, _SIGNS[row.kind], color=palette.LIGHT[row.color], markersize=3, markeredgewidth=0.7,
            transform=axes.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    for kind in dict.fromkeys(row.kind for row in event_rows):
        places = [place for place, row in enumerate(event_rows) if row.kind == kind]
        middle = len(event_rows) - (places[0] + places[-1]) / 2 - 0.5
        axes.annotate(
            kind, (0, 1 + _strip(len(event_rows)) * middle / len(event_rows) / height), xytext=(-4, 0), textcoords="offset points",
            xycoords="axes fraction", fontsize=7, color="#59636e", ha="right", va="center",
        )  # fmt: skip


def _named(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label


def _logarithmic(ticks: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _span(panel: Panel) -> Floats:
    """The finite ends of what a panel shows on its x axis."""
    columns = [series.x for series in panel.series] + [np.array([band.start, band.end]) for band in panel.bands]
    ends = [column[np.isfinite(column)] for column in columns]
    return np.concatenate([np.empty(0), *(np.array([column.min(), column.max()]) for column in ends if len(column))])


def _x_scale(axes: Axes, panel: Panel, columns: float, span: Floats) -> None:
    """`span`: the ends of all panels with the same x axis."""
    axes.set_xlabel(_named(panel.x))
    if panel.x.names:
        axes.set_xticks(range(len(panel.x.names)), _names(panel, columns))
        axes.set_xlim(-0.6, len(panel.x.names) - 0.4)
        return
    if panel.x.scale == "log":
        axes.set_xscale("log", nonpositive="mask")
        _logarithmic(axes.xaxis)
        span = span[span > 0]
    if len(span):
        low, high = float(span.min()), float(span.max())
        # A curve over a quantity has a margin; a series over time begins and ends at the border.
        edge = 0.0 if panel.link or panel.x.scale == "log" else (high - low) / 40
        low = min(low, 0.0) if panel.x.zero else low - edge
        low, high = panel.x.least if panel.x.least is not None else low, panel.x.most if panel.x.most is not None else high + edge
        axes.set_xlim(low, high if high > low else low + 1)


def _y_scale(axes: Axes, axis: Axis, series: Sequence[Series]) -> None:
    axes.set_ylabel(_named(axis))
    if axis.scale == "log":
        axes.set_yscale("log", nonpositive="mask")
        _logarithmic(axes.yaxis)
    elif axis.zero:
        low = min((float(np.nanmin(s.y)) for s in series if s.z is None and s.samples), default=0.0)
        if low >= 0:  # matplotlib's margin is a share of the range of the values, which is nothing where they are nearly equal
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.04 * float(axes.dataLim.y1)) or 1)
    if axis.least is not None:
        axes.set_ylim(bottom=axis.least)
    if axis.most is not None:
        axes.set_ylim(top=axis.most)


def _line(axes: Axes, series: Series, look: dict[str, Any], dash: Any, vector: bool) -> None:
    x, y = _thin(series, vector)
    _curve(axes, x, y, linestyle=dash, linewidth=series.width * 0.75, **look)
    # Draw a single sample between two gaps as a dot.
    gap = np.concatenate([[True], np.isnan(y), [True]])
    alone = gap[:-2] & gap[2:] & ~gap[1:-1]
    if alone.any():
        axes.plot(x[alone], y[alone], linestyle="none", marker=".", markersize=2, color=look["color"])


def _step(axes: Axes, series: Series, look: dict[str, Any], dash: Any, _vector: bool) -> None:
    _curve(axes, series.x, series.y, drawstyle="steps-post", linestyle=dash, linewidth=series.width * 0.8, **look)


def _curve(axes: Axes, x: Floats, y: Floats, **look: Any) -> None:
    """axes.plot without its search for formats and units, and with the ends of the curve in place of all of its points for the
    limits of the axes: a third of the time of hundreds of curves."""
    from matplotlib.lines import Line2D

    axes.add_artist(Line2D(x, y, **look))
    finite = np.isfinite(x) & np.isfinite(y)
    if finite.any():
        columns = x[finite], y[finite]
        axes.update_datalim(np.transpose([[one.min(), one.max(), one[one > 0].min(initial=one.max())] for one in columns]))


def _points(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, vector: bool) -> None:
    x, y = _thin(series, vector)
    # Draw thousands of marks as an image inside the vector file; axes and text stay vectors.
    many = vector and len(x) > 200
    axes.plot(x, y, linestyle="none", marker="o", markersize=series.width * 0.75, markeredgewidth=0, rasterized=many, alpha=0.7, **look)
    _interval(axes, series, look["color"])


def _interval(axes: Axes, series: Series, color: str) -> None:
    if series.low is None or series.high is None:
        return
    for x, low, high in zip(series.x, series.low, series.high, strict=True):
        axes.vlines(x, low, high, color=color, linewidth=1.2, zorder=3)
        for end in (low, high):
            axes.hlines(end, x - 0.06, x + 0.06, color=color, linewidth=1.2, zorder=3)


def _box(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, _vector: bool) -> None:
    if len(series.y) != 5:
        return
    at, color = float(series.x[0]), look["color"]
    axes.vlines(at, series.y[0], series.y[4], color=color, linewidth=1.2)
    half = 0.25 if series.width >= 1 else 0.06
    axes.bar(at, series.y[3] - series.y[1], 2 * half, series.y[1], facecolor="white", edgecolor=color, linewidth=1.4, zorder=2)
    axes.hlines(series.y[2], at - half, at + half, color=color, linewidth=2, zorder=3)
    for end in (series.y[0], series.y[4]):
        axes.hlines(end, at - 0.4 * half, at + 0.4 * half, color=color, linewidth=1.2)


def _bar(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, _vector: bool) -> None:
    axes.bar(
        series.x, series.y, 0.6, facecolor=look["color"], alpha=0.55, edgecolor=look["color"], linewidth=1.0, label=look["label"], zorder=2
    )
    _interval(axes, series, palette.LIGHT[palette.INK])


def _outline(axes: Axes, series: Series, look: dict[str, Any], dash: Any, _vector: bool) -> None:
    axes.fill(series.x, series.y, facecolor=look["color"], alpha=0.15, linewidth=0)
    axes.plot(series.x, series.y, linestyle=dash, linewidth=series.width, **look)


def _heat(axes: Axes, series: Series, look: dict[str, Any], _dash: Any, _vector: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    if series.z is None:
        return
    # The scale goes from the paper to the colour of the series; it is a square root, so that a small share stays visible.
    shades = LinearSegmentedColormap.from_list("share", ["#ffffff", look["color"], palette.LIGHT[palette.INK]])
    top = float(np.nanmax(series.z))
    axes.pcolormesh(
        series.x, series.y, np.ma.masked_invalid(series.z), cmap=shades, norm=PowerNorm(0.5, 0, top or 1), rasterized=True, zorder=0.5
    )
    axes.grid(visible=False)


_STYLES: dict[str, Callable[[Axes, Series, dict[str, Any], Any, bool], None]] = {
    "line": _line,
    "step": _step,
    "points": _points,
    "box": _box,
    "bar": _bar,
    "outline": _outline,
    "heat": _heat,
}


def _thin(series: Series, vector: bool) -> tuple[Floats, Floats]:
    # The minimum and the maximum of the samples on one dot are visible, and no others.
    at = envelope(series.y, VECTOR_POINTS if vector else int(2.4 * SCREEN.width * SCREEN.dpi))
    return series.x[at], series.y[at]
