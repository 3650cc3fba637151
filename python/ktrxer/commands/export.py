# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer export`: runs as Flent's data files."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.commands.common import USAGE, VALID, Parser, attempt, complain, exists, force_option
from ktrxer.store import one_line
from ktrxer.units import duration

if TYPE_CHECKING:
    from ktrxer.store import Run

ENDINGS = (".flent", ".flent.gz", ".flent.bz2", ".flnt", ".json", ".json.gz", ".json.bz2")
EXAMPLES = """\
examples:
  ktrxer export rrul-2026-11-21T153000.ktrxer
  ktrxer export run.ktrxer -o run.flent.gz && flent -p all_scaled run.flent.gz
Flent finds its plots by the test's name, so it draws runs of tests that it has.
"""


def parser() -> Parser:
    parser = Parser("export", "Writes runs as Flent data files of version 4.", EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="NAME.ktrxer or NAME.ktrxer.part")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=f"for one run; ends in {', '.join(ENDINGS)}")
    parser.add_argument("-D", "--directory", default=Path(), metavar="DIR", type=Path, help="where the files go (default: here)")
    parser.add_argument("--step", type=duration, default=0.2, metavar="D", help="of Flent's grid (200ms)")
    force_option(parser)
    return parser


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.output is not None and len(options.runs) > 1:
        parser().error("-o is for one run; -D takes many")
    if options.output is not None and not options.output.name.endswith(ENDINGS):
        parser().error(f"-o {options.output}: must end in one of: {', '.join(ENDINGS)}")
    if not 0.001 <= options.step <= 3600:
        parser().error(f"--step {options.step:g}s: expected 1ms to 1h")
    if not options.directory.is_dir():
        complain("export", f"{options.directory}: no such folder")
        return USAGE
    status = VALID
    for source in options.runs:
        status = max(status, attempt("export", source, partial(_export, source, options)))
    return status


def _export(source: Path, options: argparse.Namespace) -> None:
    from ktrxer.commands.opening import open_any
    from ktrxer.flent import FlentError, container, writing

    run: Run = open_any(source)
    target = options.output or options.directory / f"{run.name}.flent.gz"
    if target.exists() and not options.force:
        raise FlentError(exists(target))
    made = writing.document(run, options.step)
    made.metadata["DATA_FILENAME"] = target.name
    value: dict[str, Any] = {
        "version": made.version,
        "metadata": made.metadata,
        "x_values": made.x,
        "results": made.results,
        "raw_values": made.raw,
    }
    container.write(target, value)
    print(one_line(f"{target}: {len(made.raw)} series, {sum(map(len, made.raw.values()))} samples"))
    for note in made.notes:
        print(f"  {one_line(note)}")
