# SPDX-License-Identifier: MIT OR Apache-2.0
"""The gallery of the documentation (scripts/docs-gallery) has each type of plot, and each of its plots has samples."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from ktrxer.panels import flent_variants, picture, plots
from ktrxer.panels.spec import Kind
from ktrxer.view import figure

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "docs-gallery"
ELSEWHERE = {"line"}  # a quantity over a parameter: a batch of runs


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("docs_gallery", str(SCRIPT))
    spec = importlib.util.spec_from_loader("docs_gallery", loader)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["docs_gallery"] = made  # for its dataclass
    loader.exec_module(made)
    return made


def test_each_type_of_plot_is_shown(gallery: ModuleType) -> None:
    shown = {one.plot for some in gallery.GALLERY.values() for one in some}
    specs = flent_variants.SPECS | plots.OWN
    kinds = {specs[name].kind for name in shown if name in specs}
    assert kinds == set(get_args(Kind)) - ELSEWHERE
    assert {"oneway", "lateness", "qdisc", "ping"} <= shown


@pytest.mark.slow
def test_each_plot_has_samples_and_a_small_picture(gallery: ModuleType, tmp_path: Path) -> None:
    there = gallery.runs(tmp_path)
    for one in (one for some in gallery.GALLERY.values() for one in some):
        model = picture.model(there[one.runs], picture.Picture(one.plot, one.arrange))
        assert any(series.samples for panel in model.panels for series in panel.series), one
    figure.save(model, tmp_path / "x.png", "png", gallery.LOOK)
    assert (tmp_path / "x.png").stat().st_size < 100_000
