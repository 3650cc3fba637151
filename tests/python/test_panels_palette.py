# SPDX-License-Identifier: MIT OR Apache-2.0
"""The colours: enough contrast to the background, and distinct for every kind of colour vision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ktrxer.panels import palette

# Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1.0, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}


def linear(color: str) -> np.ndarray:
    srgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    t = xyz / [0.95047, 1, 1.08883]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize(("colors", "ground"), [(palette.LIGHT, palette.LIGHT_GROUND), (palette.DARK, palette.DARK_GROUND)])
def test_each_colour_stands_out_from_its_ground(colors: tuple[str, ...], ground: str) -> None:
    for color in colors:
        low, high = sorted((luminance(color), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3, color


@pytest.mark.parametrize("colors", [palette.LIGHT, palette.DARK])
@pytest.mark.parametrize("vision", VISION)
def test_no_two_colours_look_alike(colors: tuple[str, ...], vision: str) -> None:
    # CIE 1976: 2.3 is just noticeable side by side; crossing lines need many times that.
    seen = {color: lab(VISION[vision] @ linear(color)) for color in (colors[palette.INK], *colors[palette.FIRST :])}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in itertools.combinations(seen, 2)}
    worst = min(distances, key=distances.__getitem__)
    assert distances[worst] >= 20, (worst, distances[worst])


def test_the_two_palettes_fit_each_other() -> None:
    assert len(palette.LIGHT) == len(palette.DARK) == len(set(palette.LIGHT)) == len(set(palette.DARK))


def test_a_class_looks_the_same_everywhere() -> None:
    assert palette.looks(["BE", "BK", "CS5", "EF"])[3] == palette.looks(["ICMP", "EF"])[1] == palette.looks(["EF"])[0]


def test_series_of_one_class_are_told_apart() -> None:
    looks = palette.looks(["BE", "BE", None, "BE", "EF"])
    assert len(set(looks)) == 5
    assert len(set(palette.looks([None] * 24))) == 24
    assert len(palette.looks([None] * 1000)) == 1000
    assert palette.looks([]) == []
