# SPDX-License-Identifier: MIT OR Apache-2.0
"""The data of a panel of each kind are those of the golden file: a change in how samples are selected, reduced, grouped or combined is seen."""

from __future__ import annotations

import json
import typing
from pathlib import Path
from typing import Any

import golden_panels
import pytest
from ktrxer.panels.model import Panel
from ktrxer.panels.spec import Kind

pytestmark = pytest.mark.slow
EXPECTED: dict[str, Any] = json.loads(golden_panels.GOLDEN.read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Panel]]:
    return golden_panels.panels(golden_panels.runs(tmp_path_factory.mktemp("runs")))


def different(golden: Any, found: Any, at: str = "") -> str:
    """The place of the first difference; "": none. Numbers are equal to one in ten thousand."""
    if isinstance(golden, dict) and isinstance(found, dict) and golden.keys() == found.keys():
        return next((said for key in golden if (said := different(golden[key], found[key], f"{at}.{key}"))), "")
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        return next((said for i, one in enumerate(golden) if (said := different(one, found[i], f"{at}[{i}]"))), "")
    if isinstance(golden, float | int) and isinstance(found, float | int):
        return "" if found == pytest.approx(golden, rel=1e-4, abs=1e-9) else f"{at}: {golden} became {found}"
    return "" if golden == found else f"{at}: {golden!r} became {found!r}"


def test_each_kind_has_golden_data(made: dict[str, list[Panel]]) -> None:
    assert {spec.kind for spec in golden_panels.SPECS.values()} == set(typing.get_args(Kind))
    assert EXPECTED.keys() == made.keys() and all(EXPECTED.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_the_data_of_a_panel_are_the_golden_ones(made: dict[str, list[Panel]], name: str) -> None:
    """After a wanted change: `PYTHONPATH=python python tests/python/golden_panels.py`, and read the difference."""
    assert different(EXPECTED[name], json.loads(json.dumps([golden_panels.data(panel) for panel in made[name]]))) == ""


def test_a_changed_value_is_a_difference(tmp_path: Path) -> None:
    """Another seed of one run, and one sample that is left out."""
    assert different(EXPECTED["cdf"], EXPECTED["ccdf"])
    series = EXPECTED["series"][0]
    assert different([series], [series | {"series": [one | {"values": one["values"] - 1} for one in series["series"]]}])
    other = golden_panels.runs(tmp_path)[1:2]
    found = golden_panels.build("heat", golden_panels.SPECS, other)[0]
    assert "became" in different(EXPECTED["heat"], [golden_panels.data(panel) for panel in found])
