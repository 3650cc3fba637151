# SPDX-License-Identifier: MIT OR Apache-2.0
"""Directories of runs for the figures of the explorer (web/measure.mjs).

    PYTHONPATH=python python tests/python/explore_figures.py DIRECTORY

sixty    one run of 60 series
million  one run of a million samples in four series
many     10,000 runs
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import panel_runs

RUNS = 10_000
SAMPLES = 1_000_000
CLASSES = ("BE", "BK", "VI", "VO")


def make(directory: Path) -> None:
    for name in ("sixty", "million", "many"):
        (directory / name).mkdir(parents=True)
    panel_runs.run(directory / "sixty", "sixty", seconds=60, classes=tuple(f"C{i}" for i in range(60)))
    panel_runs.run(directory / "million", "million", seconds=SAMPLES // 100 // len(CLASSES), classes=CLASSES, up_ms=80)
    one = panel_runs.run(directory / "many", "run-0", seconds=9, classes=("BE",), one_way=False)
    for i in range(1, RUNS):  # copies, because links would have one entry in the cache
        shutil.copy(one.path, directory / "many" / f"run-{i}.ktrxer")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
