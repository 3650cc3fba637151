# SPDX-License-Identifier: MIT OR Apache-2.0
"""Colours that people with any colour vision can distinguish, on white and on dark backgrounds.

Six hues (blue, brick, green, pink, gold, indigo). A search chose their saturation and brightness for the largest distance between any two
in the worst of normal vision and simulated protanopia, deuteranopia and tritanopia, with a contrast to the background of at least 3:1 (WCAG
2.1, 1.4.11). tests/python/test_panels_palette.py checks both.
"""

from __future__ import annotations

from collections.abc import Sequence

INK = 0  # for sums and limits, drawn above the single series
GREY = 1

LIGHT: tuple[str, ...] = ("#1b1f24", "#7a828c", "#015fd5", "#9f3605", "#0b9c5a", "#d75eb5", "#b28f01", "#3e338d")
DARK: tuple[str, ...] = ("#e6eaef", "#8b949e", "#326fc0", "#da6236", "#23cd86", "#d180b0", "#edd549", "#a9a3ef")
LIGHT_GROUND, DARK_GROUND = "#ffffff", "#181c21"

FIRST = 2  # index of the first colour for single series
COUNT = len(LIGHT) - FIRST
# The second four are for several runs with many series: a run has one colour there.
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 3), (1, 4), (6, 2, 2, 2, 2, 2), (3, 6))
FEW_DASHES = 4  # that a short sample of a line shows

# A direction has the same colour in every panel, also where the other direction is missing.
DIRECTIONS = {"down": FIRST, "up": FIRST + 1}

# A class has the same colour in every panel and every run.
CLASSES = {"BE": 0, "CS0": 0, "BK": 1, "CS1": 1, "CS5": 2, "VI": 2, "AF41": 2, "EF": 3, "VO": 3, "CS6": 3, "ICMP": 4}

Look = tuple[int, tuple[float, ...]]


def free(wish: Look, taken: set[Look]) -> Look:
    """The look, or the same colour with another dash, or the next colour: the first that no other series of the panel has. It is added to
    `taken`."""
    colors = [FIRST + (wish[0] - FIRST + i) % COUNT for i in range(COUNT)] if wish[0] >= FIRST else [wish[0]]
    every = [wish, *((color, dash) for color in colors for dash in DASHES)]
    found = next((look for look in every if look not in taken), wish)
    taken.add(found)
    return found


def looks(wishes: Sequence[str | None]) -> list[Look]:
    """A colour and a dash for each series of a panel; `wishes` are the classes of the series. The first 24 are distinct."""
    chosen: list[Look | None] = [None] * len(wishes)
    taken: set[Look] = set()
    for i, wish in enumerate(wishes):
        if wish is None or wish not in CLASSES:
            continue
        look = (FIRST + CLASSES[wish], DASHES[0])
        if look not in taken:
            chosen[i] = look
            taken.add(look)
    everything = [(FIRST + color, dash) for dash in DASHES for color in range(COUNT)]
    free = [look for look in everything if look not in taken] or everything
    used = 0
    made: list[Look] = []
    for had in chosen:
        if had is None:
            # Start again if no combination is left: then only the legend distinguishes the series.
            had = free[used] if used < len(free) else everything[used % len(everything)]
            used += 1
        made.append(had)
    return made
