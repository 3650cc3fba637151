# SPDX-License-Identifier: MIT OR Apache-2.0
"""SQL over all runs of a directory, by DuckDB. The SQL reads the tables of dataset.py and nothing else: no file, no network, no setting.

A data set's Parquet files are read by DuckDB, run files by pyarrow (store/members.py). Only tables that the SQL names are opened.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ktrxer.analyse import dataset
from ktrxer.analyse.collection import Opened
from ktrxer.analyse.repeats import repeated, sentence
from ktrxer.store import columns
from ktrxer.store.listing import find

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 2000  # rows fetched at once


class QueryError(Exception):
    """The SQL is refused or has failed: one line."""


@dataclass
class Limits:
    memory_mib: int = 0  # 0: half of the machine's memory
    seconds: float = 60.0


@dataclass
class Answer:
    columns: list[str]
    rows: Iterator[tuple[Any, ...]]  # QueryError while it is read
    problems: list[str] = field(default_factory=list)  # a line for each run that cannot be read; complete behind the last row
    repeated: list[str] = field(default_factory=list)  # a line for each run that was cut off and is left out beside its repeat


def query(sql: str, directory: Path, opened: Opened, cache: Path | None, limits: Limits) -> Answer:
    """`sql`: one SELECT (also WITH, FROM, VALUES, DESCRIBE, SUMMARIZE)."""
    answer = Answer([], iter(()))
    unread: dict[Path, str] = {}
    try:
        tables = _tables_of(sql)
        # This forks processes, so it comes before DuckDB has threads.
        small, read = ({}, []) if dataset.is_dataset(directory) else _small_tables(directory, opened, cache, tables, answer)
        db = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
        if dataset.is_dataset(directory):
            _register_dataset(db, directory, tables)
        else:
            _register_runs(db, tables, small, read, unread)
        _lock(db, limits)
    except duckdb.Error as error:
        raise QueryError(_line(error)) from None
    running = _Running(db, limits.seconds)
    with running:
        found = db.execute(sql)
        answer.columns = [one[0] for one in found.description or []]
    answer.rows = _rows(db, running, answer.problems, unread)
    return answer


def _rows(db: duckdb.DuckDBPyConnection, running: _Running, problems: list[str], unread: dict[Path, str]) -> Iterator[tuple[Any, ...]]:
    try:
        while True:
            with running:
                rows = db.fetchmany(BATCH)
            if not rows:
                break
            yield from rows
    finally:
        problems.extend(unread.values())
        db.close()


class _Running:
    """Ends DuckDB's work at the time limit, and turns its errors into lines."""

    def __init__(self, db: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self.db = db
        self.left = seconds
        self.seconds = seconds
        self.late = threading.Event()

    def __enter__(self) -> None:
        self.timer = threading.Timer(max(0.0, self.left), self._end)
        self.timer.daemon = True
        self.began = time.monotonic()
        self.timer.start()

    def _end(self) -> None:
        self.late.set()
        self.db.interrupt()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self.timer.cancel()
        self.left -= time.monotonic() - self.began
        if self.late.is_set() and error is not None:
            raise QueryError(f"the query was ended after {self.seconds:g} s: --timeout allows more") from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise QueryError(f"{_line(error)}; --memory allows more") from None
        if isinstance(error, duckdb.Error):
            raise QueryError(_line(error)) from None


def _line(error: BaseException) -> str:
    """The first line of DuckDB's message, and the line of a hint, if it has one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    hints = [line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))]
    if lines[0].startswith("Catalog Error: Table"):  # DuckDB proposes tables of its own
        hints = [f"the tables are {', '.join(dataset.NAMES)}"]
    return "; ".join([*lines[:1], *hints[:1]])


def _tables_of(sql: str) -> set[str]:
    """The tables of ours that the SQL may name: those whose names are words in it. QueryError: not one statement that reads."""
    with duckdb.connect(":memory:") as parser:
        found = parser.extract_statements(sql)
    if len(found) != 1:
        raise QueryError(f"expected one statement, not {len(found)}")
    if found[0].type != duckdb.StatementType.SELECT:  # EXPLAIN ANALYZE executes any statement
        raise QueryError(f"a query only reads: {found[0].type.name} is refused; give one SELECT")
    words = set(re.findall(r"\w+", sql.lower()))
    return {name for name in dataset.NAMES if name in words}


def _lock(db: duckdb.DuckDBPyConnection, limits: Limits) -> None:
    memory = limits.memory_mib or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (2 << 20)
    db.execute(f"SET memory_limit = '{memory}MiB'")
    db.execute("SET temp_directory = ''")
    db.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    db.execute("SET python_enable_replacements = false")
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


# ------------------------------------------------------------------------------------------------------------------ tables


def _register_dataset(db: duckdb.DuckDBPyConnection, directory: Path, tables: set[str]) -> None:
    place = directory.resolve()
    if set("*?[") & set(str(place)):
        raise QueryError(f"{place}: DuckDB reads no directory with one of *?[ in its path: rename it")
    db.execute(f"SET allowed_directories = [{_text(f'{place}/')}]")
    for name in sorted(tables):
        files = place / name if name in columns.KINDS else place / f"{name}.parquet"
        if not files.exists():
            _empty(db, name)
            continue
        pattern = f"{files}/*.parquet" if files.is_dir() else str(files)
        db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({_text(pattern)})")


def _small_tables(
    directory: Path, opened: Opened, cache: Path | None, tables: set[str], answer: Answer
) -> tuple[dict[str, pa.Table], list[Path]]:
    """Those that the SQL may name, and `series`, which names the samples; and the runs that can be read."""
    paths = [path for path in find(directory) if not path.name.endswith(".flent.gz")]
    wanted = [name for name in dataset.SMALL if name in tables or name == "series"]
    if not tables:
        return {}, []
    again = repeated(paths, opened, cache)
    answer.repeated = [sentence(*one) for one in again.items()]
    made, read, answer.problems = dataset.small_tables([path for path in paths if path not in again], opened, wanted, cache)
    return made, read


def _register_runs(
    db: duckdb.DuckDBPyConnection, tables: set[str], small: dict[str, pa.Table], read: list[Path], unread: dict[Path, str]
) -> None:
    from ktrxer.store import members

    for name, table in small.items():
        db.register(name if name in tables else f"_{name}", table)
    series = "series" if "series" in tables else "_series"
    for name in columns.KINDS:
        if name not in tables:
            continue
        if not read:
            _empty(db, name)
            continue
        db.register(f"_{name}", members.dataset(read, [dataset.name_of(path) for path in read], name, unread))
        beside = "" if name == "events" else ", s.name, s.class, s.direction"
        join = "" if name == "events" else f" JOIN {series} s ON s.run = d.run AND s.series = d.series"
        db.execute(f"CREATE VIEW {name} AS SELECT d.*{beside} FROM _{name} d{join}")


def _empty(db: duckdb.DuckDBPyConnection, name: str) -> None:
    import pyarrow as pa

    if name in dataset.SMALL:
        fields = [pa.field(column, pa.type_for_alias(kind)) for column, kind in dataset.SMALL[name].items()]
    else:
        beside = dataset.BESIDE[:1] if name == "events" else dataset.BESIDE
        fields = [*columns.schema(name), *(pa.field(column, pa.string()) for column in beside)]
    db.register(name, pa.schema(fields).empty_table())


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
