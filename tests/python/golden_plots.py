# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small plot models with each style of series, and the structure of a drawn SVG, for golden images in tests/python/golden/.

    PYTHONPATH=python python tests/python/golden_plots.py      draws the golden images again, after a wanted change
"""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from ktrxer.panels.model import Axis, Band, EventRow, Panel, PlotModel, Series
from ktrxer.view import figure

GOLDEN = Path(__file__).parent / "golden"
SPDX = "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->"
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_LOOKS = ("fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity")


def _column(*values: float) -> np.ndarray:
    return np.array(values, float)


def curves() -> PlotModel:
    t = _column(0, 1, 2, 3, 4, 5)
    ping = Series("ping", "UDP", "line", t, _column(10, 11, np.nan, 80, 85, 12), 2, low=_column(9, 10, np.nan, 70, 75, 11), high=_column(12, 13, np.nan, 95, 99, 13))
    alone = Series("alone", "ICMP", "points", t, _column(12, 12, 13, 90, 88, 14), 4, (6, 3))
    rate = Series("rate", "download", "step", t, _column(0, 20, 19, 20, 18, 0), 3, width=2)
    window = Series("cwnd", "window", "line", t, _column(10, 20, 40, 80, 40, 60), 5, (2, 2), axis=2)
    time, load = Axis("Time", "s"), (Band(0, 2, "idle", "idle"), Band(2, 5, "load", "load"))
    return PlotModel(
        "A run & its <plots>",
        "rrul from near to far",
        (
            Panel("latency", "Round trip", time, Axis("Round trip", "ms"), (ping, alone), bands=load, notes=("UDP: 1 of 6 was lost.",),
                  event_rows=(EventRow("ping", "UDP", "lost", _column(2), 2), EventRow("queue", "queue", "drop", _column(3, 3.5), 3))),
            Panel("rate", "Download and its window", time, Axis("Throughput", "Mbit/s"), (rate, window), bands=load, y2=Axis("Window", "segments")),
            Panel("ccdf", "Tail", Axis("Round trip", "ms", "log", zero=False), Axis("Share above", "", "log", zero=False),
                  (Series("tail", "under load", "step", _column(10, 20, 50, 100), _column(1, 0.5, 0.1, 0.01), 2),), link="", log="x"),
        ),
    )  # fmt: skip


def shapes() -> PlotModel:
    names = Axis("", "", names=("fifo", "fq_codel"))
    square = _column(0, 1, 1, 0, 0)
    return PlotModel(
        "Shapes",
        "2 runs",
        (
            Panel("box", "Boxes", names, Axis("Round trip", "ms"),
                  (Series("a", "fifo", "box", np.zeros(5), _column(10, 60, 80, 90, 120), 2), Series("b", "fq_codel", "box", np.ones(5), _column(10, 11, 12, 14, 30), 3)), link=""),
            Panel("bar", "Bars", names, Axis("Sum", "Mbit/s"),
                  (Series("a", "fifo", "bar", _column(0), _column(40), 2, low=_column(38), high=_column(41)), Series("b", "fq_codel", "bar", _column(1), _column(39), 3)), link=""),
            Panel("ellipse", "Ellipse", Axis("Throughput", "Mbit/s"), Axis("Round trip", "ms"), (Series("a", "fifo", "outline", 20 + square, 5 + square, 4),), link=""),
            Panel("heat", "Heat map", Axis("Time", "s"), Axis("Round trip", "ms"),
                  (Series("a", "share", "heat", _column(0, 1, 2), _column(0, 10, 20), 2, z=np.array([[0, 0.5], [1, np.nan]])),), link=""),
        ),
        columns=2,
    )  # fmt: skip


# Letters are text here, not outlines, so that the files are small.
COLUMN = replace(figure.LOOKS["column"], settings=(*figure.LOOKS["column"].settings, ("svg.fonttype", "none")))
# File name: model, its panels, look.
IMAGES: dict[str, tuple[Callable[[], PlotModel], tuple[str, ...], figure.Look]] = {
    "delay": (curves, ("latency",), figure.SCREEN),
    "rate": (curves, ("rate",), figure.SCREEN),
    "tail": (curves, ("ccdf",), figure.SCREEN),
    "groups": (shapes, ("box", "bar"), figure.SCREEN),
    "areas": (shapes, ("ellipse", "heat"), figure.SCREEN),
    "column": (curves, ("latency",), COLUMN),
}


def model_of(name: str) -> PlotModel:
    make, keys, _ = IMAGES[name]
    whole = make()
    return replace(whole, panels=tuple(panel for panel in whole.panels if panel.key in keys))


def draw(name: str, path: Path) -> None:
    figure.save(model_of(name), path, "svg", IMAGES[name][2])


@dataclass(frozen=True)
class Part:
    """What a picture shows at one place: without ids and groups, which differ between releases of matplotlib."""

    what: str  # the kind of element, its colours and dashes, or its text
    numbers: tuple[float, ...]  # coordinates


def parts(path: Path) -> list[Part]:
    root = xml.etree.ElementTree.parse(path).getroot()
    shapes = {node.get("id"): node.get("d", "") for node in root.iter(f"{_SVG}path") if node.get("id")}
    defined = {id(inner) for node in root.iter() if node.tag in (f"{_SVG}defs", f"{_SVG}clipPath") for inner in node.iter()}
    found = [Part(f"svg {root.get('width')} x {root.get('height')}", ())]
    for node in root.iter():
        tag = str(node.tag).removeprefix(_SVG)
        if id(node) in defined:
            continue
        if tag == "path":
            found.append(Part(f"path {_look(node)}", _numbers(node.get("d", ""))))
        elif tag == "use":
            shape = shapes.get(node.get(_LINK, "").removeprefix("#"), "")
            found.append(Part(f"use {_look(node)}", (*_numbers(shape), float(node.get("x", 0)), float(node.get("y", 0)))))
        elif tag == "text":
            place = node.get("transform") or f"{node.get('x')} {node.get('y')}"
            found.append(Part(f"text {''.join(node.itertext())}", _numbers(place)))
        elif tag == "image":
            found.append(Part("image", _numbers(f"{node.get('width')} {node.get('height')}")))
    return found


def _rounded(text: str) -> str:
    return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)


def _look(node: xml.etree.ElementTree.Element) -> str:
    style = dict(part.split(":", 1) for part in _rounded(node.get("style", "")).replace(" ", "").split(";") if ":" in part)
    given = {name: style.get(name, node.get(name)) for name in _LOOKS}
    return " ".join(f"{name}={value}" for name, value in given.items() if value is not None)


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(one) for one in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text))


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name in IMAGES:
        path = GOLDEN / f"{name}.svg"
        draw(name, path)
        text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", path.read_text("utf-8"), flags=re.DOTALL)
        text = _rounded(re.sub(r"\n\s+|\n+", "\n", text))
        first, rest = text.split("\n", 1)
        path.write_text(f"{first}\n{SPDX}\n{rest}", "utf-8")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
