# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plot of the results of `ktrxer ppt plan`: the apparent capacity against the ratio of the sizes of a compound probe's packets.

It corresponds to the figure of estimated capacity in the paper that methods/estimate/ppt.h cites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ktrxer.panels import palette
from ktrxer.panels.model import Axis, Panel, PlotModel, Series
from ktrxer.store import StoreError, checked, limits
from ktrxer.store.files import open_regular


@dataclass(frozen=True)
class Cross:
    link: int
    ahead: int
    between: int


@dataclass(frozen=True)
class Row:
    alpha: float
    apparent_capacity_bit_s: float


@dataclass(frozen=True)
class Plan:
    links_bit_s: list[int]
    cross: list[Cross]
    rows: list[Row]

    def label(self) -> str:
        links = ", ".join(f"{rate / 1e6:g}" for rate in self.links_bit_s)
        return f"{links} Mbit/s" + "".join(f" {one.link}:{one.ahead}:{one.between}" for one in self.cross)


def read(path: Path) -> Plan:
    try:
        with open_regular(path) as file:
            text = file.read(limits.META_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
    plan = checked.parse(Plan, checked.load(text, str(path)), str(path))
    if not plan.rows or not plan.links_bit_s:
        raise StoreError(f"{path}: has no rows; `ktrxer ppt plan` prints them with --trailing RANGE")
    return plan


def model(paths: Sequence[Path]) -> PlotModel:
    plans = [read(path) for path in paths]
    series = []
    for place, (color, dash) in zip(range(len(plans)), _looks(len(plans)), strict=True):
        rows = sorted(plans[place].rows, key=lambda row: row.alpha)
        x, y = np.array([row.alpha for row in rows]), np.array([row.apparent_capacity_bit_s / 1e6 for row in rows])
        series.append(Series(f"plan{place}", plans[place].label(), "line", x, y, color, dash))
    panel = Panel(
        "capacity",
        "Capacity of the end link, computed from the gap",
        Axis("size of the heading packet / size of the trailing packet", "", zero=False),
        Axis("apparent capacity", "Mbit/s"),
        tuple(series),
        link="",
        notes=(
            "The curve is flat at the end link's capacity where the trailing packet arrives without dispersion. "
            "2:1:1 is cross traffic: on link 2 one packet ahead of the heading packet, and one between both packets.",
        ),
    )
    return PlotModel("Compound probes on a path with known links", "computed, not measured", (panel,))


def _looks(count: int) -> list[tuple[int, tuple[float, ...]]]:
    return [(palette.FIRST + i % palette.COUNT, palette.DASHES[i // palette.COUNT % len(palette.DASHES)]) for i in range(count)]
