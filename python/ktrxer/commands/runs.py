# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer runs`: what is stored in a directory; or all of it as one data set."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer import printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain
from ktrxer.store import StoreError, one_line

if TYPE_CHECKING:
    from ktrxer.analyse.listing import Entry
    from ktrxer.analyse.where import Condition

EXAMPLES = """\
examples:
  ktrxer runs                                                   the runs here, by time
  ktrxer runs DIR --where 'test=rrul and verdict!=valid'
  ktrxer runs DIR --columns when,cc,qdisc,udp.rtt.load.p95 --sort udp.rtt.load.p95
  ktrxer runs -r DIR --sort title --columns title,note,file
  ktrxer runs DIR --parquet SET && ktrxer query 'SELECT cc, count(*) FROM runs GROUP BY cc' SET
A column is file, state, verdict, when, id or reasons; a property (test, title, target, length, version, host, kernel, machine, cc, qdisc,
topology, parameters, interval), label or setting; a path into meta.json (metadata/before/cpu/model); or a figure (`ktrxer compare --json`
lists their keys).
A condition is COLUMN=VALUE with =, !=, <, <=, >, >= or ~ (a pattern with * and ?); `and`, `or`, `not` and parentheses join conditions."""
CELL_MOST = 100  # characters


def parser() -> Parser:
    summary = "Lists the runs of a directory, newest last, or writes them as one data set for `ktrxer query`, DuckDB, Polars or Spark."
    p = command_line("runs", summary, EXAMPLES)
    p.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="where the runs are stored (here)")
    p.add_argument("-r", "--recursive", action="store_true", help="the runs in its folders, too")
    p.add_argument("--where", metavar="CONDITION", help="only runs for which the condition holds")
    p.add_argument("--columns", metavar="KEY[,KEY]", help="the columns of the list (when,test,title,target,length,verdict,file)")
    p.add_argument("--sort", metavar="KEY", help="sort by this column (when)")
    p.add_argument("--reverse", action="store_true", help="the last one first")
    p.add_argument("--parquet", type=Path, metavar="TO", help="write the runs as a data set of Parquet tables instead of listing")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    p.add_argument("--no-cache", action="store_true", help="read all files anew")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if given.directory.is_file():
        complain("runs", f"{given.directory}: not a directory; `ktrxer summary` shows one run")
        return NO_RESULT
    if not given.directory.is_dir():
        complain("runs", f"{given.directory}: No such file or directory")
        return NO_RESULT
    return _runs(given)


def _runs(given: argparse.Namespace) -> int:
    from ktrxer.analyse import cache, listing
    from ktrxer.commands.opening import open_any

    shown = [key for key in given.columns.split(",") if key] if given.columns is not None else list(listing.USUAL)
    if not shown:
        complain("runs", "--columns: no column is named")
        return USAGE
    place = None if given.no_cache else cache.file()
    try:
        condition = _condition(given.where)
        keys = [*shown, *(condition.keys if condition is not None else ()), *([given.sort] if given.sort else ())]
        entries = listing.entries(given.directory, open_any, place, keys, given.recursive)
    except _Refusal as error:
        complain("runs", str(error))
        return USAGE
    except listing.UnknownColumn as error:
        complain("runs", str(error))
        return USAGE
    except OSError as error:
        complain("runs", f"{given.directory}: {error.strerror or error}")
        return NO_RESULT
    if condition is not None:
        entries = [entry for entry in entries if condition.holds(entry.value)]
    if given.sort:
        entries.sort(key=lambda entry: listing.sort_key(entry.value(given.sort)))
    if given.reverse:
        entries.reverse()
    if given.parquet is not None:
        return _parquet(entries, given.parquet, place)
    if given.json:
        printed.show({"runs": [entry.as_json() for entry in entries]})
    elif not entries:
        found = "no run meets the condition" if condition is not None else "no runs"
        print(f"{found} in {given.directory}; `ktrxer run` makes some")
    else:
        _table(entries, shown)
    return VALID


class _Refusal(Exception):
    """Wrong use: one sentence for the user."""


def _condition(text: str | None) -> Condition | None:
    if text is None:
        return None
    from ktrxer.analyse import where

    try:
        return where.parse(text)
    except where.WhereError as error:
        raise _Refusal(f"--where {text}: {error}") from None


def _table(entries: list[Entry], shown: list[str]) -> None:
    from ktrxer.analyse.listing import column

    columns = [[one_line(key, 60), *_cells(column(entries, key))] for key in shown]
    columns = [[cell.ljust(width) for cell in cells] for cells in columns for width in (max(map(len, cells)),)]
    print("\n".join(["  ".join(row).rstrip() for row in zip(*columns, strict=True)]))


def _cells(values: list[str | float | None]) -> list[str]:
    """_cell() of each value. Most columns have short plain text only, which one test of all their texts finds out."""
    with contextlib.suppress(TypeError):
        texts: list[str] = values  # type: ignore[assignment]
        if "".join(texts).isprintable() and max(map(len, texts)) <= CELL_MOST:
            return texts
    return [_cell(value) for value in values]


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return one_line(value, CELL_MOST) if isinstance(value, str) else f"{value:.6g}"


def _parquet(entries: list[Entry], to: Path, cache: Path | None) -> int:
    from ktrxer.analyse import dataset
    from ktrxer.commands.opening import open_any

    try:
        written, problems = dataset.write([entry.path for entry in entries if entry.state in ("finished", "cut off")], open_any, to, cache)
    except (StoreError, OSError) as error:
        complain("runs", str(error))
        return NO_RESULT
    for problem in problems:
        complain("runs", f"left out: {problem}")
    print(f"{written} runs in {to}: ktrxer query 'SELECT run, name, median(rtt_ns) / 1e6 FROM latency GROUP BY ALL' {to}")
    return NO_RESULT if problems else VALID
