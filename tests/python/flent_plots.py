# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the Python of .venv-flent: prints, as JSON, the plots of each test of the real Flent, each with its kind and the series that it selects
from the test's data sets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import flent
from flent import settings as flent_settings
from flent.util import Glob

COLUMNS = {"val": "", "value": ""}  # the series itself
PARTS = {None: "whole", (5, -5): "load", (0, 0): "whole", (5, 0): "from load"}


def resolved(plots: dict[str, Any], name: str) -> dict[str, Any]:
    """A plot with the keys of its parent."""
    plot = dict(plots[name])
    parent = plot.pop("parent", None)
    return {**resolved(plots, parent), **plot} if parent is not None else plot


def selected(series: dict[str, Any], names: list[str]) -> list[list[Any]]:
    data = series["data"]
    found = [name for name in names if name in set(Glob.expand_list([data], names))] if isinstance(data, Glob) else [data]
    common = (int(series.get("axis", 1)), COLUMNS.get(series.get("raw_key"), series.get("raw_key") or ""), int(float(series.get("smoothing") or 0)), series.get("combine_mode") or "mean")
    return [[name, *common] for name in found]


def described(plots: dict[str, Any], name: str, names: list[str]) -> dict[str, Any]:
    plot = resolved(plots, name)
    cutoff = plot.get("cutoff")
    return {
        "type": plot["type"],
        "part": PARTS[tuple(cutoff) if cutoff is not None else None],
        "group_by": plot.get("group_by"),
        "scaled": plot.get("scaling") is not None,
        "subplots": plot.get("subplots", []),
        "series": [one for series in plot.get("series", ()) for one in selected(series, names)],
    }


def main() -> None:
    base = flent_settings.parser.parse_args(args=[], namespace=flent_settings.Settings(flent_settings.DEFAULT_SETTINGS))
    made = {}
    for path in sorted((Path(flent.__file__).parent / "tests").glob("*.conf")):
        settings = base.copy()
        settings.HOSTS, settings.HOST = ["a", "b", "c", "d"], "a"
        settings.load_test(path.stem, informational=True)
        names = list(settings.DATA_SETS)
        made[path.stem] = {"names": names, "plots": {name: described(settings.PLOTS, name, names) for name in settings.PLOTS}}
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
