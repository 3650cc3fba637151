# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer query`: SQL over all runs of a directory."""

from __future__ import annotations

import argparse
import csv
import datetime
import decimal
import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ktrxer import printed
from ktrxer.arguments import Parser, duration
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain
from ktrxer.store import one_line

SHOWN = 1000  # rows of a table for a terminal
EXAMPLES = """\
examples:
  ktrxer query 'SELECT test, cc, count(*) FROM runs GROUP BY ALL' DIR
  ktrxer query "SELECT run, name, quantile_cont(rtt_ns, 0.95) / 1e6 AS p95_ms FROM latency WHERE state = 0 GROUP BY ALL"
  ktrxer query "SELECT cc, avg(value) FROM figures JOIN runs USING (run) WHERE figure = 'udp.rtt.load.p95' GROUP BY cc" DIR --csv
  ktrxer query 'DESCRIBE latency'
Tables: runs, series, phases, figures; and the samples: latency, bytes, tcp_info, udp, qdisc, host, value, events. Each has the column run;
samples have also name, class and direction of their series. Times count from the run's zero. The column "end" of bytes and tcp_info needs
quotes. `labels` of runs is JSON: labels->>'group'.
The SQL only reads, and only these tables. A data set made by `ktrxer runs --parquet` is faster than the run files where they are many."""


def parser() -> Parser:
    summary = "Queries all runs of a directory by SQL (DuckDB): their files, or a data set of `ktrxer runs --parquet`."
    p = command_line("query", summary, EXAMPLES)
    p.add_argument("sql", metavar="SQL", help="one SELECT (or WITH, FROM, DESCRIBE, SUMMARIZE); `-` reads it from standard input")
    p.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="runs, or a data set (here)")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object: columns and rows")
    form.add_argument("--jsonl", action="store_true", help="print one JSON object for each row")
    form.add_argument("--csv", action="store_true", help="print CSV")
    p.add_argument("--memory", type=int, default=0, metavar="MIB", help="memory of the query (half of the machine's)")
    p.add_argument("--timeout", type=duration, default=60.0, metavar="D", help="end the query after this time (60s)")
    p.add_argument("--no-cache", action="store_true", help="read all files anew")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if not given.directory.is_dir():
        complain("query", f"{given.directory}: No such file or directory")
        return NO_RESULT
    if given.memory < 0 or given.timeout <= 0:
        complain("query", "--memory and --timeout need positive numbers")
        return USAGE
    return _query(given)


def _query(given: argparse.Namespace) -> int:
    try:
        import duckdb  # noqa: F401
    except ModuleNotFoundError:
        python = sys.executable if os.access(sys.prefix, os.W_OK) else f"sudo {sys.executable}"
        remedy = f"`{python} -m ensurepip && {python} -m pip install duckdb` installs it"  # `make install` leaves no pip there
        complain("query", f"it needs the Python package duckdb, which {sys.executable} does not have: {remedy}")
        return NO_RESULT
    from ktrxer.analyse import cache
    from ktrxer.analyse.query import Answer, Limits, QueryError, query
    from ktrxer.commands.opening import open_any

    sql = sys.stdin.read(1 << 20) if given.sql == "-" else given.sql
    place = None if given.no_cache else cache.file()
    try:
        answer: Answer = query(sql, given.directory, open_any, place, Limits(given.memory, given.timeout))
        _print(given, answer)
    except QueryError as error:
        complain("query", one_line(str(error), 800))
        return NO_RESULT
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        complain("query", f"{error.filename or given.directory}: {error.strerror or error}")
        return NO_RESULT
    for problem in (*answer.repeated, *answer.problems):
        complain("query", f"left out: {problem}")
    return NO_RESULT if answer.problems else VALID


def _print(given: argparse.Namespace, answer: Any) -> None:
    if given.json:
        printed.show({"columns": answer.columns, "rows": [[_json(value) for value in row] for row in answer.rows]})
    elif given.jsonl:
        for row in answer.rows:
            printed.row(dict(zip(answer.columns, map(_json, row), strict=True)))
    elif given.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([_plain(name) for name in answer.columns])
        writer.writerows([_plain(value) for value in row] for row in answer.rows)
    else:
        _table(answer.columns, answer.rows)


def _table(names: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    made: list[tuple[Any, ...]] = []
    more = 0
    for row in rows:
        if len(made) < SHOWN:
            made.append(row)
        else:
            more += 1
    texts = [[one_line(name, 60) for name in names], *([_cell(value) for value in row] for row in made)]
    numeric = [all(isinstance(row[i], int | float | None) for row in made) and bool(made) for i in range(len(names))]
    widths = [max(len(text[i]) for text in texts) for i in range(len(names))]
    for text in texts:
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(text, widths, numeric, strict=True)]
        print("  ".join(cells).rstrip())
    if more:
        print(f"{more} more rows; --csv and --jsonl print all")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else one_line(str(value), 100)


def _json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _json(one) for key, one in value.items()}
    return value.isoformat() if isinstance(value, datetime.date | datetime.time | datetime.datetime) else str(value)


def _plain(value: Any) -> Any:
    """A text without control characters: the data set may be of unknown origin."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return one_line(str(value), 1 << 20)
