# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many runs: the list of those in a directory, and their samples as one data set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer.store import columns
from ktrxer.store import meta as meta_file
from ktrxer.store.container import META, PART, SUFFIX, Container
from ktrxer.store.errors import StoreError, one_line
from ktrxer.store.meta import Meta
from ktrxer.store.run import being_written, open_run


@dataclass(frozen=True)
class Entry:
    path: Path
    meta: Meta | None  # None: the run cannot be read
    state: str  # finished, running, cut off, damaged
    problem: str = ""

    def row(self) -> tuple[str, ...]:
        if self.meta is None:
            return ("", "", "", "", "", self.state, f"{self.path.name}: {self.problem}")
        m = self.meta
        verdict = m.verdict or self.state if self.state == "finished" else self.state
        when, length = m.created[:19].replace("T", " "), f"{m.length_ns / 1e9:g} s"
        return (when, m.test, m.title, ", ".join(m.targets), length, verdict, self.path.name)

    def as_json(self) -> dict[str, Any]:
        m = self.meta
        made: dict[str, Any] = {"file": str(self.path), "state": self.state}
        if m is None:
            return made | {"problem": self.problem}
        return made | {
            "id": m.id, "test": m.test, "title": m.title, "created": m.created, "targets": m.targets, "length_s": m.length_ns / 1e9,
            "verdict": m.verdict, "reasons": m.reasons,
        }  # fmt: skip


def find(path: Path) -> list[Path]:
    """[path] if `path` is a run, otherwise the runs in the directory `path`."""
    if path.is_dir() and not path.name.endswith(PART):
        return sorted(p for p in path.iterdir() if p.name.endswith((SUFFIX, SUFFIX + PART, ".flent.gz")) and not p.name.startswith("."))
    return [path]


def entries(directory: Path) -> list[Entry]:
    made = [_entry(path) for path in find(directory) if not path.name.endswith(".flent.gz")]
    return sorted(made, key=lambda entry: (entry.meta.created if entry.meta is not None else "", entry.path.name))


def _entry(path: Path) -> Entry:
    try:
        if path.is_dir():
            return Entry(path, open_run(path).meta, "running" if being_written(path) else "cut off")
        return Entry(path, meta_file.read(bytes(Container(path).read(META)), f"{path}: {META}"), "finished")
    except StoreError as error:
        return Entry(path, None, "damaged", one_line(str(error).removeprefix(f"{path}: ")))


def as_dataset(found: Iterable[Entry], to: Path) -> int:
    """Write TO/KIND/NAME.parquet for each run, with a column for the run and the series' name, class and direction, and TO/runs.parquet
    with one row for each run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    described: list[dict[str, Any]] = []
    for entry in found:
        if entry.meta is None or entry.state == "running":
            continue
        run = open_run(entry.path)
        names = {series.id: series for series in run.meta.series}
        for kind in run.kinds():
            table = run.table(kind)
            table = table.append_column("run", pa.array([run.meta.id] * len(table), pa.string()).dictionary_encode())
            if kind != "events":
                ids = table.column("series").to_pylist()
                for column, field in (("name", "name"), ("class", "klass"), ("direction", "direction")):
                    values = pa.array([getattr(names[i], field) for i in ids], pa.string())
                    table = table.append_column(column, values.dictionary_encode())
            (to / kind).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, to / kind / f"{run.name}.parquet", compression="zstd", store_schema=False)
        described.append({key: value for key, value in entry.as_json().items() if key not in ("reasons", "state")} | {"run": run.meta.id})
    if not described:
        raise StoreError("no readable runs")
    to.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(described), to / "runs.parquet", compression="zstd", store_schema=False)
    return len(described)


__all__ = ["Entry", "as_dataset", "columns", "entries", "find"]
