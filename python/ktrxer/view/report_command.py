# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer report`: writes runs as one HTML page for any browser."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer import printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain, force_option, parse_groups, show
from ktrxer.commands.compare import Incomparable, Refusal
from ktrxer.commands.opening import open_any
from ktrxer.view.arguments import MOST_POINTS, ViewError, read, write

if TYPE_CHECKING:
    from ktrxer.view.report import Front

EXAMPLES = """\
examples:
  ktrxer report rrul.ktrxer                            writes rrul.html
  ktrxer report fifo.ktrxer fq_codel.ktrxer -o both.html
  ktrxer report fifo/ -- fq_codel/ -o groups.html      two groups of runs: differences with intervals, and a typical run of each
Of two groups, runs are left out as `ktrxer compare` leaves them out; see its --help for the statistics."""


def main(arguments: list[str]) -> int:
    options, second, two = parse_groups(parser(), arguments, "run")
    if two and not second:
        complain("report", "no RUN behind `--`: `A... -- B...` compares two groups of runs")
        return USAGE
    if options.names is not None and not second:
        complain("report", "--names: only two groups, `A... -- B...`, have names")
        return USAGE
    if options.output is not None and options.output.suffix in (".svg", ".pdf", ".png"):
        complain("report", f"-o {options.output}: a report is a page NAME.html; `ktrxer plot` draws {options.output.suffix}")
        return USAGE
    from ktrxer.store import StoreError
    from ktrxer.view import page, report

    try:
        if options.points and options.points < 100:
            raise ViewError("--points below 100 is too few to draw a curve; 0 keeps every sample")
        front = None
        if second:
            front, shown = _groups(options, second)
            runs = [open_any(path) for path in shown]
        else:
            runs = read(options.run)
        output = options.output if options.output is not None else Path("comparison.html" if second else f"{runs[0].name}.html")
        created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        title, data = report.build([report.readable(run) for run in runs], created, options.points, front)
        text = page.fill(title, data).encode("utf-8", "replace")  # a title may contain a lone surrogate, which UTF-8 cannot encode
        write(output, [*options.run, *second], options.force, lambda part: part.write_bytes(text))
    except Refusal as error:
        complain("report", str(error))
        return USAGE
    except Incomparable:
        return NO_RESULT
    except (StoreError, ViewError, page.PageError) as error:
        complain("report", str(error))
        return NO_RESULT
    if options.json:
        shown_runs = [{"title": one["title"], "damage": one["damage"]} for one in data["runs"]]
        printed.show({"file": str(output), "bytes": len(text), "runs": shown_runs}, line=True)
    else:
        for run in data["runs"]:
            for line in run["damage"]:
                complain("report", f"{run['title']}: {line}")
        show(output)
    return VALID


def _groups(options: argparse.Namespace, second: list[Path]) -> tuple[Front, list[Path]]:
    """The begin of a page of two groups, and the runs that it shows."""
    from ktrxer.analyse.compare import compare
    from ktrxer.analyse.grouping import GroupingError
    from ktrxer.commands.compare import Reader, comparable, show_left_out, two_groups
    from ktrxer.view import comparison

    read = Reader("report", False, [])
    try:
        a, b = two_groups(options.run, second, options.names, read)
        comparable("report", [a, b], [], every=False)
    except GroupingError as error:
        raise Refusal(str(error)) from None
    for group in (a, b):
        show_left_out("report", group)
    made = compare(a, b, read.known)
    return comparison.front(made, (a, b), open_any), [Path(comparison.typical(group, made).name) for group in (a, b)]


def parser() -> Parser:
    parser = command_line("report", "Writes runs as one HTML file with interactive plots that needs no network.", EXAMPLES)
    parser.add_argument(
        "run", nargs="+", type=Path, metavar="RUN",
        help="NAME.ktrxer, NAME.ktrxer.part or NAME.flent.gz; several are shown together; `A... -- B...` compares two groups",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.html", help="output file (default: RUN.html)")
    parser.add_argument(
        "--points", type=int, default=MOST_POINTS, metavar="N",
        help="draw a longer series with N samples and keep its extremes; 0: all samples (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--names", metavar="A,B", help="names of the two groups of `A... -- B...`")
    force_option(parser)
    parser.add_argument("--json", action="store_true", help="print a description of the page as JSON")
    return parser
