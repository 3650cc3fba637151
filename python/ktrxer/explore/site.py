# SPDX-License-Identifier: MIT OR Apache-2.0
"""A directory of runs as one page that needs no server: the page of the explorer with the table, and the metadata and plots of each run.
The page has a bounded size: of many runs, or of long ones, each series is drawn with fewer samples."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs

from ktrxer.explore.answers import Answers, Refused
from ktrxer.explore.library import Unknown
from ktrxer.panels import picture, plots
from ktrxer.panels.errors import PlotError
from ktrxer.panels.model import PlotModel
from ktrxer.panels.picture import Picture
from ktrxer.view import pack, page
from ktrxer.view.report import Readable

MOST_BYTES = 64 << 20  # of the page
FRAME = 1000  # of the elements of a run, its name and a reason
LEAST_SHARE = 2000  # of a run: what a page says of it without plots
MOST_SAMPLES, LEAST_SAMPLES = 20_000, 500  # of a series
FURTHER = ("ping_band", "ping_ccdf", "ping_histogram", "ping_violin")  # plots that each run has beside those of its test


def build(answers: Answers, view: str, most: int = MOST_BYTES) -> tuple[str, list[str]]:
    """The page, and a sentence for each run that has no plots in it. `view`: what the page shows at first; its columns are in the table.
    Refused: no run has one of these columns."""
    table = answers.runs({"columns": list(dict.fromkeys(parse_qs(view).get("column", [])))})
    rows = table["rows"]
    about = answers.about({})
    left = most - len(page.site({"about": about, "table": table, "view": view}, [])) - FRAME * len(rows)
    if left < LEAST_SHARE * len(rows):
        raise Refused(f"{len(rows):,} runs do not fit into a page of {most / 2**20:.3g} MB: export directories of fewer runs")
    stored, columns, problems = [], [], []
    exported: set[str] = set()
    for at, row in enumerate(rows):
        one, packed, names = _run(answers, row[0], left // (len(rows) - at))
        inside = base64.b64encode(packed).decode("ascii")
        left -= len(inside) + _size(one)
        exported.update(names)
        stored.append(one | {"element": f"run-{at}"})
        columns.append((f"run-{at}", inside))
        if one["problem"]:
            problems.append(f"{row[0]}: {one['problem']}")
    about |= {
        "directory": answers.library.directory.resolve().name,
        "arranges": [],
        "settings": [],
        "plots": [plot for plot in _summaries(about["plots"], exported) if plot[0] in exported],
        "keys": table["columns"],
    }
    return page.site({"about": about, "table": table, "stored": stored, "view": view}, columns), problems


def without(view: str, columns: Collection[str]) -> str:
    """`view` without these columns."""
    return "&".join(part for part in view.split("&") if not any(one in columns for one in parse_qs(part).get("column", [])))


def _summaries(known: list[list[str]], exported: set[str]) -> list[list[str]]:
    """The summaries of plots, with those of a recipe and scaled ones, which have none of their own."""
    names = {name for name, _ in known}
    return [*known, *([name, "of the run's test"] for name in sorted(exported - names))]


def _run(answers: Answers, name: str, share: int) -> tuple[dict[str, Any], bytes, list[str]]:
    """The part of a run that the page has, its columns, and the names of its plots, in at most `share` bytes."""
    try:
        found = answers.library.run(name)
        metadata = answers.metadata({"runs": [name]})["runs"][0]
    except (Refused, Unknown) as error:
        return {"name": name, "metadata": None, "problem": _below(answers, str(error))}, b"", []
    metadata["damage"] = damage = [_below(answers, one) for one in found.damage]
    if _size(metadata) > share // 2:
        metadata |= {"metadata": {"left out": "the page would become too large"}, "repeat": "", "facts": metadata["facts"][:4]}
    if _size(metadata) > share // 2:
        metadata |= {"label": name[:200], "reasons": [], "damage": [], "facts": []}
    models = _models(found)
    problem = "" if models else "it has no samples to plot"
    room = (share - _size(metadata)) * 3 // 4  # base64
    samples = MOST_SAMPLES
    while models and len(packed := _packed(name, damage, models, samples)) > room:
        if samples > LEAST_SAMPLES:
            samples //= 2
        else:
            models = dict(list(models.items())[: len(models) // 2])
            problem = "" if models else "its plots would make the page too large: export fewer runs"
    return {"name": name, "metadata": metadata, "problem": problem}, packed if models else b"", list(models)


def _size(value: Any) -> int:
    return len(page.json_for_html(value))


def _models(found: Readable) -> dict[str, PlotModel]:
    """The plots of the run's test first."""
    made = {}
    for plot in dict.fromkeys([*plots.of_test(found.run), *plots.PLOTS, *FURTHER]):
        try:
            made[plot] = picture.model([found.run], Picture(plot))
        except PlotError:
            continue
    return made


def _below(answers: Answers, text: str) -> str:
    """Removes the place of the directory on this machine."""
    return text.replace(f"{answers.library.directory}/", "")


def _packed(name: str, damage: list[str], models: dict[str, PlotModel], samples: int) -> bytes:
    """Plots that show the same column share it."""
    pool = pack.Pool()
    made = {
        plot: {
            "title": model.title,
            "subtitle": model.subtitle,
            "columns": model.columns,
            "panels": [pack.panel(panel, pool, samples) for panel in model.panels],
            "command": shlex.join(["ktrxer", "plot", PurePosixPath(name).name, "--plot", plot, "-o", f"{plot}.svg"]),
        }
        for plot, model in models.items()
    }
    return pool.answer({"plots": made, "first": next(iter(models)), "problems": damage})
