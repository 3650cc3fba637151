# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer runs`: what is stored in a directory; or all of it as one data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.commands.common import BAD, VALID, Parser, complain
from ktrxer.store import StoreError, one_line

if TYPE_CHECKING:
    from ktrxer.store.listing import Entry


def parser() -> Parser:
    p = Parser("runs", "Lists the runs of a directory, newest last, or writes them as one data set for DuckDB, Polars or Spark.")
    p.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="where the runs are stored (here)")
    p.add_argument("--parquet", type=Path, metavar="TO", help="write TO/KIND/RUN.parquet and TO/runs.parquet instead of listing")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    from ktrxer.store import listing

    if given.directory.is_file():
        complain("runs", f"{given.directory}: not a directory; `ktrxer summary` shows one run")
        return BAD
    if not given.directory.is_dir():
        complain("runs", f"{given.directory}: no such directory")
        return BAD
    entries = listing.entries(given.directory)
    if given.parquet is not None:
        return _parquet(entries, given.parquet)
    if given.json:
        print(json.dumps({"runs": [entry.as_json() for entry in entries]}, indent=2))
    elif not entries:
        print(f"no runs in {given.directory}; `ktrxer run` makes some")
    else:
        _table(entries)
    return VALID


def _table(entries: list[Entry]) -> None:
    rows = [entry.row() for entry in entries]
    head = ("when", "test", "title", "to", "length", "verdict", "file")
    cells = [head, *[tuple(one_line(cell, 100) for cell in row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _parquet(entries: list[Entry], to: Path) -> int:
    from ktrxer.store.listing import as_dataset

    try:
        written = as_dataset(entries, to)
    except (StoreError, OSError) as error:
        complain("runs", str(error))
        return BAD
    print(f"{written} runs in {to}: SELECT * FROM '{to}/latency/*.parquet' JOIN '{to}/runs.parquet' USING (run)")
    return VALID
