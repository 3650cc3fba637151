# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer export`: runs in the formats of other programs."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.arguments import Parser, duration, outside
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, attempt, command_line, complain, exists, force_option
from ktrxer.store import StoreError, files, one_line
from ktrxer.units import seconds

if TYPE_CHECKING:
    from ktrxer.exchange.tables import Form, Written
    from ktrxer.flent.document import Document
    from ktrxer.store import Run

ENDINGS = (".flent", ".flent.gz", ".flent.bz2", ".flnt", ".json", ".json.gz", ".json.bz2")
FORMATS = {
    "flent": "Flent's data files of version 4: NAME.flent.gz",
    "csv": "NAME.TABLE.csv for each table of samples",
    "parquet": "NAME.TABLE.parquet for each table of samples",
    "org": "NAME.org: a table of Org mode with the series on one grid of times, as Flent's org_table",
    "openmetrics": "the figures of all runs as one text, on standard output or to -o FILE",
    "frictionless": "CSV tables and datapackage.json, which describes them",
    "croissant": "Parquet tables and croissant.json, which describes them",
}
DESCRIPTIONS = {"frictionless": ("csv", "datapackage.json"), "croissant": ("parquet", "croissant.json")}
EXAMPLES = """\
examples:
  ktrxer export rrul-2026-11-21T153000.ktrxer
  ktrxer export run.ktrxer -o run.flent.gz && flent -p all_scaled run.flent.gz
  ktrxer export --format csv *.ktrxer -D tables
  ktrxer export --format openmetrics runs/*.ktrxer -o figures.txt
  ktrxer export --format croissant runs/*.ktrxer -D published --title 'Queues of access lines' --license CC-BY-4.0
""" + "".join(f"Format {name}: {text}.\n" for name, text in FORMATS.items()) + """\
Flent finds its plots by the test's name, so it draws runs of tests that it has. `ktrxer runs --parquet` writes a data set for queries.
"""  # fmt: skip


def parser() -> Parser:
    parser = command_line("export", "Writes runs as files for other programs.", EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="NAME.ktrxer or NAME.ktrxer.part")
    parser.add_argument("--format", choices=list(FORMATS), default="flent", metavar="FORMAT", help=f"{', '.join(FORMATS)} (flent)")
    one = f"of openmetrics, or of one run of org or flent ({', '.join(ENDINGS)})"
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=one)
    parser.add_argument("-D", "--directory", default=Path(), metavar="DIR", type=Path, help="where the files go (default: here)")
    parser.add_argument("--step", type=duration, metavar="D", help="of the grid of flent and org (200ms, or that of the imported file)")
    parser.add_argument("--title", default="", metavar="TEXT", help="of the description of a data set")
    parser.add_argument("--license", default="", metavar="SPDX", help="of the data set, as CC-BY-4.0")
    force_option(parser)
    return parser


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.output is not None and options.format not in ("flent", "openmetrics", "org"):
        parser().error(f"-o is for one file; --format {options.format} writes several, to -D DIR")
    if options.output is not None and options.format in ("flent", "org"):
        if len(options.runs) > 1:
            parser().error("-o is for one run; -D takes many")
        if options.format == "flent" and not options.output.name.endswith(ENDINGS):
            parser().error(f"-o {options.output}: must end in one of: {', '.join(ENDINGS)}")
    if options.step is not None and not 0.001 <= options.step <= 3600:
        parser().error(f"--step: {outside(f'{options.step:g}s', options.step < 1, '1ms to 1h')}")
    if options.license and not re.fullmatch(r"[A-Za-z0-9.+-]{1,60}", options.license):
        parser().error(f"--license {options.license}: expected an SPDX identifier, as CC-BY-4.0")
    if not options.directory.is_dir():
        complain("export", f"{options.directory}: No such file or directory")
        return USAGE
    if options.format == "openmetrics":
        return _openmetrics(options)
    if options.format in ("flent", "org"):
        status = VALID
        for source in options.runs:
            status = max(status, attempt("export", source, partial(_flent if options.format == "flent" else _org, source, options)))
        return status
    return _tables(options)


def _on_grid(source: Path, ending: str, options: argparse.Namespace) -> tuple[Run, Path, Document]:
    """The run, the file that it becomes, and its series on Flent's grid of times."""
    from ktrxer.commands.opening import open_any
    from ktrxer.flent import writing

    run: Run = open_any(source)
    target = options.output or options.directory / f"{run.name}{ending}"
    if target.exists() and not options.force:
        raise StoreError(exists(target))
    return run, target, writing.document(run, options.step)


def _flent(source: Path, options: argparse.Namespace) -> None:
    from ktrxer.flent import container

    _, target, made = _on_grid(source, ".flent.gz", options)
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


def _org(source: Path, options: argparse.Namespace) -> None:
    """The table of Flent's formatter org_table."""
    from ktrxer.exchange import org

    run, target, made = _on_grid(source, ".org", options)
    text = org.table(run.meta.test, made.x, made.results)
    files.replace(target, lambda beside: beside.write_text(text, encoding="utf-8"))
    print(one_line(f"{target}: {len(made.results)} series, {len(made.x)} rows"))


def _tables(options: argparse.Namespace) -> int:
    """CSV or Parquet tables, and their description if the format has one."""
    from ktrxer.exchange import tables

    form, description = DESCRIPTIONS.get(options.format, (options.format, ""))
    target = options.directory / description
    if description and target.exists() and not options.force:
        complain("export", exists(target))
        return NO_RESULT
    written: list[Written] = []
    status = VALID
    for source, name in tables.file_names(options.runs):
        status = max(status, attempt("export", source, partial(_tables_of, source, name, form, options, written)))
    if description and written:
        status = max(status, attempt("export", target, partial(_describe, target, options, written)))
    return status


def _tables_of(source: Path, name: str, form: Form, options: argparse.Namespace, written: list[Written]) -> None:
    from ktrxer.commands.opening import open_any
    from ktrxer.exchange import tables

    made = tables.write(open_any(source), name, form, options.directory, options.force)
    for one in made:
        print(one_line(f"{one.path}: {one.rows} rows"))
    written += made


def _describe(target: Path, options: argparse.Namespace, written: list[Written]) -> None:
    from ktrxer.exchange import description

    title = options.title or f"Network measurements by ktrxer, {len(options.runs)} runs"
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    about = description.About(options.title or options.directory.resolve().name, title, options.license, now)
    made = description.frictionless(about, written) if options.format == "frictionless" else description.croissant(about, written)
    text = json.dumps(made, indent=2) + "\n"
    files.replace(target, lambda beside: beside.write_text(text))
    print(one_line(f"{target}: {len(written)} files"))


def _openmetrics(options: argparse.Namespace) -> int:
    from ktrxer.analyse import cache
    from ktrxer.analyse.collection import collect
    from ktrxer.commands.opening import open_any
    from ktrxer.exchange import openmetrics, tables

    target = options.output
    if target is not None and target.exists() and not options.force:
        complain("export", exists(target))
        return NO_RESULT
    found = collect(options.runs, open_any, cache.file())
    for failure in found.failures:
        complain("export", failure.text)
    names = {str(path): name for path, name in tables.file_names(options.runs)}
    samples = []
    for member in found.members:
        labels = {"run": names[member.name], "test": member.value("test"), "title": member.value("title"), "target": member.value("target")}
        at = seconds(member.facts.created)
        samples += [(labels, key, found.known[key].unit, value, at) for key, value in member.figures.items()]
    text = openmetrics.text(samples)
    if target is None:
        sys.stdout.write(text)
    else:
        try:
            files.replace(target, lambda beside: beside.write_text(text, encoding="utf-8"))
        except StoreError as error:
            complain("export", str(error))
            return NO_RESULT
    return NO_RESULT if found.failures else VALID
