# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer import`: runs of Flent's data files."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path

from ktrxer import printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import USAGE, VALID, attempt, command_line, complain, exists, force_option
from ktrxer.store import one_line
from ktrxer.store.reasons import sentences

ENDINGS = re.compile(r"(\.flent|\.flnt|\.json)?(\.gz|\.bz2)?$")
EXAMPLES = """\
examples:
  ktrxer import rrul-2017-02-21T215510.flent.gz
  ktrxer import archive/*.flent.gz -D runs
A file of Flent's can be given to summary, plot and report as it is; an imported one opens faster and is kept with the others.
The exit status is 1 when a file cannot be read; the others are imported all the same.
"""


def parser() -> Parser:
    parser = command_line(
        "import", "Makes runs of Flent's data files (.flent, .flent.gz, .flent.bz2, .json.gz), of all versions.", EXAMPLES
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a data file of Flent")
    parser.add_argument("-D", "--directory", default=Path(), metavar="DIR", type=Path, help="where the runs go (default: here)")
    force_option(parser)
    parser.add_argument("--json", action="store_true", help="print one object a file: source, file, series, samples, notes")
    return parser


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if not options.directory.is_dir():
        complain("import", f"{options.directory}: No such file or directory")
        return USAGE
    status = VALID
    for source in options.files:
        status = max(status, attempt("import", source, partial(_import, source, options)))
    return status


def _import(source: Path, options: argparse.Namespace) -> None:
    from ktrxer.flent import FlentError, open_run
    from ktrxer.store.container import is_container
    from ktrxer.store.names import SUFFIX
    from ktrxer.store.writer import write_finished

    # The name comes from the file's own name and from nothing in it.
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", ENDINGS.sub("", source.name)).lstrip(".-")[:200] or "imported"
    target = options.directory / f"{stem}{SUFFIX}"
    if target.exists() and not options.force:
        raise FlentError(exists(target))
    if is_container(source):
        raise FlentError(f"{source}: is a run of ktrxer already; import reads Flent's data files; summary, plot and report read this one")
    run = open_run(source)
    tables = {kind: run.table(kind) for kind in run.kinds()}
    try:
        write_finished(target, run.meta, tables, options.directory / f".{target.name}.tmp", run.original() if run.original else None)
    except OSError as error:
        raise FlentError(f"{target}: {error.strerror}") from None
    samples = sum(len(table) for table in tables.values())
    notes = run.meta.metadata["notes"]
    if options.json:
        counts = {"series": len(run.meta.series), "samples": samples}
        printed.show({"source": str(source), "file": str(target)} | counts | {"notes": notes}, line=True)
    else:
        print(one_line(f"{target}: {run.meta.test}, {len(run.meta.series)} series, {samples} samples"))
        for note in [*sentences(run.meta.reasons), *notes]:
            print(f"  {one_line(note)}")
