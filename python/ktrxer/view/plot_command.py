# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot`: draws one or more runs into an image file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.commands.common import BAD, USAGE, VALID, Parser, complain, few_collections, force_option
from ktrxer.panels.arrange import ARRANGES, LOGS, PARTS
from ktrxer.view.arguments import MOST_RUNS, ViewError, read, write

if TYPE_CHECKING:
    from ktrxer.panels.model import PlotModel

EXAMPLES = """\
examples:
  ktrxer plot rrul.ktrxer                              the first plot of the test, as rrul-all_scaled.svg
  ktrxer plot rrul.ktrxer --plot ping_cdf -o cdf.pdf
  ktrxer plot fifo.ktrxer fq_codel.ktrxer --plot totals -o both.png
  ktrxer plot rrul.ktrxer --plot ping --json            the same data as JSON
  ktrxer plot c2.json c2-cross.json -o capacity.svg     results of `ktrxer ppt plan --trailing RANGE --json`
  ktrxer plot --list
The suffix _scaled ends the axis at the 99th percentile of the samples.
"""


def main(arguments: list[str]) -> int:
    with few_collections():
        return _main(arguments)


def _main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        return _list()
    if not options.run:
        parser().error("RUN is missing: a file NAME.ktrxer or NAME.flent.gz, or a directory NAME.ktrxer.part")
    plans = all(path.suffix == ".json" for path in options.run)
    if plans and (options.plot or options.part or options.log or options.arrange != ARRANGES[0]):
        parser().error("--plot, --arrange, --part and --log are for runs; a result of `ktrxer ppt plan` has only one plot")
    from ktrxer.panels import plots
    from ktrxer.panels.errors import PlotError
    from ktrxer.store import StoreError
    from ktrxer.view import numbers

    try:
        if options.plot:
            plots.known(options.plot, _of_recipe(options.run[0], options.plot))
        kind = _kind(options)
    except (ViewError, PlotError) as error:
        complain("plot", str(error))
        return USAGE
    try:
        plot, model, name = _planned(options.run) if plans else _stored(options)
        if options.json and options.output is None:
            print(json.dumps(numbers.of_model(plot, model), allow_nan=False))
            return VALID
        path = options.output or Path(f"{name}-{plot}.svg")
        from ktrxer.view import figure

        write(path, options.run, options.force, lambda part: figure.save(model, part, kind))
        print(json.dumps({"file": str(path), **numbers.outline(plot, model)}) if options.json else path)
    except (StoreError, ViewError, PlotError) as error:
        complain("plot", str(error))
        return BAD
    return VALID


def _of_recipe(path: Path, name: str) -> Collection[str]:
    """The plots of the recipe of that run; none for a name that needs no run, and for a run that cannot be read: its error follows."""
    from ktrxer.panels import plots
    from ktrxer.panels.errors import PlotError
    from ktrxer.store import StoreError

    try:
        plots.known(name)
    except PlotError:
        try:
            return plots.of_recipe(read([path])[0])
        except (StoreError, ViewError):
            return ()
    return ()


def _stored(options: argparse.Namespace) -> tuple[str, PlotModel, str]:
    """The name of the plot, the plot model, the name of the first run."""
    from ktrxer.panels import picture, plots

    runs = read(options.run)
    plot = options.plot or plots.default(runs[0])
    wish = picture.Picture(plot, options.arrange, options.part or "", options.log or "")
    return plot, picture.model(runs, wish), runs[0].name


def _planned(paths: list[Path]) -> tuple[str, PlotModel, str]:
    """The same for results of `ktrxer ppt plan --json`."""
    from ktrxer.panels import plan

    if len(paths) > MOST_RUNS:
        raise ViewError(f"{len(paths)} plans; at most {MOST_RUNS} can be shown together")
    return "capacity", plan.model(paths), paths[0].stem


def parser() -> argparse.ArgumentParser:
    parser = Parser("plot", "Draws stored runs.", EXAMPLES)
    parser.add_argument(
        "run",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="NAME.ktrxer, NAME.ktrxer.part or NAME.flent.gz, or results NAME.json of `ktrxer ppt plan`; several are drawn over each other",
    )
    parser.add_argument("--plot", metavar="NAME", help="name of the plot; --list prints all names (default: the first plot of the test)")
    parser.add_argument(
        "--arrange", choices=ARRANGES, default=ARRANGES[0],
        help="several runs: over each other, beside each other with the same axes, or as one (by-name: of names that differ in a number)",
    )  # fmt: skip
    parser.add_argument("--part", choices=PARTS, help="which part of the runs (default: that of the plot)")
    parser.add_argument("--log", choices=LOGS, help="make this axis logarithmic")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file: FILE.svg, .pdf or .png (default: RUN-PLOT.svg)")
    force_option(parser)
    parser.add_argument("--json", action="store_true", help="print a description as JSON; without -o with all numbers and no image")
    parser.add_argument("--list", action="store_true", help="print the names of all plots")
    return parser


def _list() -> int:
    from ktrxer.panels.plots import summaries

    found = summaries()
    width = max(map(len, found))
    for name, summary in found.items():
        print(f"{name:<{width}}  {summary}")
    print("\nNAME_scaled is the same plot without outliers.")
    return VALID


def _kind(options: argparse.Namespace) -> str:
    """The image format, from the suffix of the file name."""
    from ktrxer.view.figure import FORMATS

    if options.output is None:
        return "svg"
    kind = options.output.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ViewError(f"{options.output}: unknown image format; the name must end in .{', .'.join(FORMATS)}")
    return str(kind)
