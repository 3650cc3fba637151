# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot`: draws one or more runs into an image file."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer import printed
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain, force_option, show
from ktrxer.panels.arrange import ARRANGES
from ktrxer.panels.errors import PlotError, SettingError
from ktrxer.panels.settings import SETTINGS, YES, parse
from ktrxer.view.arguments import FORMATS, MOST_RUNS, STYLES, ViewError, read, write

if TYPE_CHECKING:
    from ktrxer.panels.model import PlotModel
    from ktrxer.panels.spec import Options

EXAMPLES = """\
examples:
  ktrxer plot rrul.ktrxer                              the first plot of the test, as rrul-all_scaled.svg
  ktrxer plot rrul.ktrxer --plot ping_cdf -o cdf.pdf
  ktrxer plot fifo.ktrxer fq_codel.ktrxer --plot totals -o both.png
  ktrxer plot rrul.ktrxer --plot ping --json            the same data as JSON
  ktrxer plot c2.json c2-cross.json -o capacity.svg     results of `ktrxer ppt plan --trailing RANGE --json`
  ktrxer plot *.ktrxer --all -D pictures --format png   every plot of each run's test, a file for each
  ktrxer plot rrul.ktrxer --plot ping_cdf --style column -o cdf.pdf   as wide as a column of a paper
  ktrxer plot rrul.ktrxer --plot ping --text            on a machine without a screen
  ktrxer plot rrul.ktrxer --plot ping --data-cutoff 5,20 --series 'UDP*' --bounds-y 0,50 -o part.svg
  ktrxer plot runs --effects cc,qdisc -o effects.svg   means of all combinations of a batch, with the lines of each factor
  ktrxer plot --list
The suffix _scaled ends the axis at the 99th percentile of the samples.
"""


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        return _list()
    if not options.run:
        parser().error("RUN is missing: a file NAME.ktrxer or NAME.flent.gz, or a directory NAME.ktrxer.part")
    if options.output is not None and (options.format or options.directory != Path()):
        parser().error("-o names the whole file; --format and -D are for files without -o")
    if options.text and (options.output is not None or options.format or options.all or options.json):
        parser().error("--text prints the plot; -o, --format, --all and --json are for files and numbers")
    if options.effects:
        return _effects(options)
    if options.all:
        return _all(options)
    plans = all(path.suffix == ".json" for path in options.run)
    if plans and (words := _of_one_picture(options)):
        parser().error(f"{words[0]} is for runs; a result of `ktrxer ppt plan` has only one plot")
    try:
        settings = parse(_settings(options))
    except SettingError as error:
        parser().error(f"--{error}")
    from ktrxer.panels import plots
    from ktrxer.store import StoreError
    from ktrxer.view import numbers

    try:
        if options.plot:
            plots.known(options.plot, _of_recipe(options.run[0], options.plot))
        _kind(options)
    except (ViewError, PlotError) as error:
        complain("plot", str(error))
        return USAGE
    try:
        plot, model, name = _planned(options.run) if plans else _stored(options, settings)
        if options.text:
            print(_text(model), end="")
            return VALID
        if options.json and options.output is None:
            printed.show(numbers.of_model(plot, model), line=True)
            return VALID
        _save(options, options.output or _target(options, name, plot), options.run, plot, model)
    except SettingError as error:
        complain("plot", f"--{error}")
        return USAGE
    except (StoreError, ViewError, PlotError) as error:
        complain("plot", str(error))
        return NO_RESULT
    return VALID


def _effects(options: argparse.Namespace) -> int:
    from ktrxer.commands.compare import Incomparable, Refusal
    from ktrxer.store import StoreError
    from ktrxer.view import effects, numbers

    if words := _of_one_picture(options):
        parser().error(f"--effects is a picture of its own; {words[0]} is for runs")
    try:
        _kind(options)
    except ViewError as error:
        complain("plot", str(error))
        return USAGE
    try:
        model = effects.model(options.run, [key for key in options.effects.split(",") if key], every=options.all)
        if options.text:
            print(_text(model), end="")
        elif options.json and options.output is None:
            printed.show(numbers.of_model("effects", model), line=True)
        else:
            _save(options, options.output or _target(options, "effects", options.effects), options.run, "effects", model)
    except Refusal as error:
        complain("plot", str(error))
        return USAGE
    except (Incomparable, StoreError, ViewError) as error:
        if str(error):
            complain("plot", str(error))
        return NO_RESULT
    return VALID


def _text(model: PlotModel) -> str:
    """The picture is as wide as the terminal, in its encoding."""
    from ktrxer.view import text

    drawn = text.draw(model, shutil.get_terminal_size().columns)
    encoding = sys.stdout.encoding or "utf-8"
    return drawn.encode(encoding, "replace").decode(encoding)


def _save(options: argparse.Namespace, path: Path, runs: Sequence[Path], plot: str, model: PlotModel) -> None:
    from ktrxer.view import figure, numbers

    kind, look = _kind(options), figure.LOOKS[options.style]

    def make(part: Path) -> None:
        if kind == "csv":
            part.write_bytes(numbers.csv_of(model))
        else:
            figure.save(model, part, kind, look)

    write(path, runs, options.force, make)
    if options.json:
        printed.show({"file": str(path), **numbers.outline(plot, model)}, line=True)
    else:
        show(path)


def _target(options: argparse.Namespace, run: str, plot: str) -> Path:
    """The name of a plot of a recipe's own is any text, from the file of the run."""
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in plot)[:60]
    return Path(options.directory, f"{run}-{plain}.{_kind(options)}")


def _all(options: argparse.Namespace) -> int:
    """Each plot of each run's test. A run that cannot be read, and a plot that cannot be made, leave the others as they are."""
    if words := ["-o"] if options.output else _of_one_picture(options):
        parser().error(f"--all draws each plot of one run as it is; {words[0]} is for one picture")
    if any(path.suffix == ".json" for path in options.run):
        parser().error("--all is for runs; a result of `ktrxer ppt plan` has only one plot")
    if not options.directory.is_dir():
        complain("plot", f"-D {options.directory}: No such file or directory")
        return USAGE
    from ktrxer.store import StoreError

    names: dict[Path, Path] = {}  # the run of each picture
    status = VALID
    for path in dict.fromkeys(options.run):
        try:
            _all_of(path, options, names)
        except (StoreError, ViewError) as error:
            complain("plot", str(error))
            status = NO_RESULT
    return status


def _all_of(path: Path, options: argparse.Namespace, names: dict[Path, Path]) -> None:
    from ktrxer.panels import picture, plots

    (run,) = read([path])
    problems, drawn = [], 0
    for plot in plots.of_test(run):
        try:
            model = picture.model([run], picture.Picture(plot))
        except PlotError as error:
            complain("plot", f"left out: {error}")
            continue
        target = _target(options, run.name, plot)
        try:
            if (other := names.setdefault(target, path)) != path:
                raise ViewError(f"{target}: is the picture of {other}; draw {path} to another folder (-D)")
            _save(options, target, options.run, plot, model)
        except ViewError as error:
            problems.append(str(error))
            continue
        drawn += 1
    if problems or not drawn:
        raise ViewError("\n".join(problems) or f"{path}: no plot of its test has samples")


def _of_recipe(path: Path, name: str) -> Collection[str]:
    """The plots of the recipe of that run; none for a name that needs no run, and for a run that cannot be read: its error follows."""
    from ktrxer.panels import plots
    from ktrxer.store import StoreError

    try:
        plots.known(name)
    except PlotError:
        try:
            return plots.of_recipe(read([path])[0])
        except (StoreError, ViewError):
            return ()
    return ()


def _stored(options: argparse.Namespace, settings: Options) -> tuple[str, PlotModel, str]:
    """The name of the plot, the plot model, the name of the first run."""
    from ktrxer.panels import picture, plots

    runs = read(options.run)
    plot = options.plot or plots.default(runs[0])
    wish = picture.Picture(plot, options.arrange, settings)
    picture.narrow(runs, wish)
    return plot, picture.model(runs, wish), runs[0].name


def _settings(options: argparse.Namespace) -> dict[str, list[str]]:
    return {one.name: getattr(options, one.name) for one in SETTINGS}


def _of_one_picture(options: argparse.Namespace) -> list[str]:
    """The options that are given and choose or change one picture."""
    given = [name for name, texts in _settings(options).items() if texts]
    return [f"--{name}" for name in [*(["plot"] if options.plot else []), *(["arrange"] if options.arrange != ARRANGES[0] else []), *given]]


def _planned(paths: list[Path]) -> tuple[str, PlotModel, str]:
    """The same for results of `ktrxer ppt plan --json`."""
    from ktrxer.panels import plan

    if len(paths) > MOST_RUNS:
        raise ViewError(f"{len(paths)} plans; at most {MOST_RUNS} can be shown together")
    return "capacity", plan.model(paths), paths[0].stem


def parser() -> argparse.ArgumentParser:
    parser = command_line("plot", "Draws stored runs.", EXAMPLES)
    what = "NAME.ktrxer, NAME.ktrxer.part or NAME.flent.gz, or results NAME.json of `ktrxer ppt plan`; several are drawn over each other"
    parser.add_argument("run", nargs="*", type=Path, metavar="RUN", help=what)
    parser.add_argument("--plot", metavar="NAME", help="name of the plot; --list prints all names (default: the first plot of the test)")
    parser.add_argument(
        "--arrange", choices=ARRANGES, default=ARRANGES[0],
        help="several runs: over each other, beside each other with the same axes, or as one (by-name: of names that differ in a number)",
    )  # fmt: skip
    factors = "runs and directories by several properties, as cc,qdisc: means of all combinations; with --all also runs that are not valid"
    parser.add_argument("--effects", metavar="KEY,KEY", help=factors)
    parser.add_argument("--all", action="store_true", help="every plot that a run's test names, each run by itself, as files RUN-PLOT.svg")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="FILE.svg, .pdf, .png, or .csv with each sample (default: RUN-PLOT.svg)"
    )
    parser.add_argument("-D", "--directory", type=Path, default=Path(), metavar="DIR", help="where files without -o go (default: here)")
    parser.add_argument("--format", choices=FORMATS, help="of files without -o (default: svg)")
    parser.add_argument(
        "--style", choices=STYLES, default=STYLES[0],
        help="for a screen, or for a paper as wide as a column or a page: small letters with their font, no title and no notes",
    )  # fmt: skip
    settings = parser.add_argument_group("settings of the picture")
    for one in SETTINGS:
        value = {"action": "append", "metavar": one.metavar} if one.metavar else {"action": "append_const", "const": YES}
        settings.add_argument(f"--{one.name}", dest=one.name, default=[], help=one.help, **value)  # type: ignore[arg-type]
    force_option(parser)
    parser.add_argument("--json", action="store_true", help="print a description as JSON; without -o with all numbers and no image")
    parser.add_argument("--text", action="store_true", help="draw with letters, for a terminal without a screen")
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
    """The format, from the suffix of the file name."""
    if options.output is None:
        return options.format or FORMATS[0]
    kind = options.output.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ViewError(f"{options.output}: unknown format; the name must end in .{', .'.join(FORMATS)}")
    return str(kind)
