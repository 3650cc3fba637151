# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer report`: writes runs as one HTML page for any browser."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from ktrxer.commands.common import BAD, USAGE, VALID, Parser, complain, force_option
from ktrxer.view.arguments import MOST_POINTS, ViewError, read, write

EXAMPLES = """\
examples:
  ktrxer report rrul.ktrxer                            writes rrul.html
  ktrxer report fifo.ktrxer fq_codel.ktrxer -o both.html
"""


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.output is not None and options.output.suffix in (".svg", ".pdf", ".png"):
        complain("report", f"-o {options.output}: a report is a page NAME.html; `ktrxer plot` draws {options.output.suffix}")
        return USAGE
    from ktrxer.store import StoreError
    from ktrxer.view import page, report

    try:
        if options.points and options.points < 100:
            raise ViewError("--points below 100 is too few to draw a curve; 0 keeps every sample")
        runs = read(options.run)
        output = options.output if options.output is not None else Path(f"{runs[0].name}.html")
        created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        title, data = report.build([report.readable(run) for run in runs], created, options.points)
        text = page.fill(title, data).encode("utf-8", "replace")  # a title may contain a lone surrogate, which UTF-8 cannot encode
        write(output, options.run, options.force, lambda part: _save(part, text))
    except (StoreError, ViewError, page.PageError) as error:
        complain("report", str(error))
        return BAD
    if options.json:
        print(
            json.dumps(
                {"file": str(output), "bytes": len(text), "runs": [{"title": r["title"], "damage": r["damage"]} for r in data["runs"]]}
            )
        )
    else:
        for run in data["runs"]:
            for line in run["damage"]:
                complain("report", f"{run['title']}: {line}")
        print(output)
    return VALID


def _save(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def parser() -> argparse.ArgumentParser:
    parser = Parser("report", "Writes runs as one HTML file with interactive plots that needs no network.", EXAMPLES)
    parser.add_argument(
        "run", nargs="+", type=Path, metavar="RUN", help="NAME.ktrxer, NAME.ktrxer.part or NAME.flent.gz; several are compared"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.html", help="output file (default: RUN.html)")
    parser.add_argument(
        "--points", type=int, default=MOST_POINTS, metavar="N",
        help="draw a longer series with N samples and keep its extremes; 0: all samples (%(default)s)",
    )  # fmt: skip
    force_option(parser)
    parser.add_argument("--json", action="store_true", help="print a description of the page as JSON")
    return parser
