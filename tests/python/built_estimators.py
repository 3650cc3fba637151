# SPDX-License-Identifier: MIT OR Apache-2.0
"""A fixture of tests that call the estimators in C: the library of the build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ktrxer.statistics import native

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def built() -> None:
    try:
        native.library()
    except native.NoEstimatorsError as error:
        missing(ROOT / "build", str(error))


def missing(build: Path, error: str) -> None:
    """A build that should have made the library and did not is a failure. The Python part alone, without a build, has nothing to test here."""
    if not (build / "build.ninja").exists():
        pytest.skip(f"the Python part alone: no build in {build}: {error}")
    options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    if next(one["value"] for one in options if one["name"] == "python"):
        pytest.fail(f"{build} was configured, but has no library: {error}")
    pytest.skip(f"{build} is configured without the Python part (-Dpython=false): {error}")
