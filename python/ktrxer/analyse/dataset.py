# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many runs as one data set: Parquet tables in a directory, the same tables that `ktrxer query` offers of a directory of run files.

    TO/runs.parquet, series.parquet, phases.parquet, figures.parquet     a row for each run, series, phase, figure
    TO/latency/00001.parquet, TO/bytes/00001.parquet, ...                the samples, a file for each run

`run` is the run's file name, which is unique in its directory; the id in meta.json is not, because a file may be copied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.analyse.collection import Failure, Found, Opened, gather
from ktrxer.analyse.grouping import PROPERTIES
from ktrxer.store import StoreError, columns
from ktrxer.store.names import PART, SUFFIX

if TYPE_CHECKING:
    import pyarrow as pa

    from ktrxer.store import Run

LABELS = "metadata/labels"
_TEXT, _NUMBER, _INTEGER = "string", "double", "int64"
# The small tables: names and Arrow types of their columns.
SMALL: dict[str, dict[str, str]] = {
    "runs": {
        "run": _TEXT, "file": _TEXT, "id": _TEXT, "created": _TEXT, "verdict": _TEXT, "reasons": _TEXT, "length_s": _NUMBER,
        "labels": _TEXT,  # JSON
        **{key: _TEXT for key in PROPERTIES if key != "length"},
    },
    "series": {
        "run": _TEXT, "series": "int32", "name": _TEXT, "kind": _TEXT, "unit": _TEXT, "group": _TEXT, "class": _TEXT, "direction": _TEXT,
        "protocol": _TEXT, "interval_ns": _INTEGER,
    },
    "phases": {"run": _TEXT, "phase": _TEXT, "from_ns": _INTEGER, "to_ns": _INTEGER},
    "figures": {"run": _TEXT, "figure": _TEXT, "label": _TEXT, "unit": _TEXT, "value": _NUMBER},
}  # fmt: skip
# Columns of each table of samples beside those of the store; of `events` only the first.
BESIDE = ("run", "name", "class", "direction")
NAMES = (*SMALL, *columns.KINDS)


def name_of(path: Path) -> str:
    """The run's name in the tables. A name that is no UTF-8 has question marks."""
    return os.fsencode(path.name.removesuffix(PART).removesuffix(SUFFIX)).decode("utf-8", "replace")


def is_dataset(path: Path) -> bool:
    return (path / "runs.parquet").is_file()


def small_tables(
    paths: Sequence[Path], opened: Opened, names: Sequence[str], cache: Path | None
) -> tuple[dict[str, pa.Table], list[Path], list[str]]:
    """The small tables of `names`, the paths that were read, and a line for each other one."""
    parts = ["layout", *(["facts"] if "runs" in names else []), *(["figures"] if "figures" in names else [])]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    read: list[Path] = []
    problems: list[str] = []
    for path, found in gather(paths, opened, parts, cache, [LABELS]).items():
        if isinstance(found, Failure):
            problems.append(found.text)
            continue
        read.append(path)
        for name in names:
            rows[name] += _rows(name, path, found)
    return {name: _table(rows[name], SMALL[name]) for name in names}, read, problems


def _rows(name: str, path: Path, found: Found) -> list[dict[str, Any]]:
    run = name_of(path)
    if name == "runs":
        facts = found["facts"]
        length = float(str(facts["properties"]["length"]).removesuffix(" s"))
        row = {key: value for key, value in facts["properties"].items() if key in SMALL["runs"]}
        row |= {"file": os.fsencode(path).decode("utf-8", "replace"), "id": found["layout"]["id"], "reasons": "; ".join(facts["reasons"])}
        row |= {"labels": facts["properties"].get(LABELS)}
        return [row | {"run": run, "created": facts["created"], "verdict": facts["verdict"], "length_s": length}]
    if name == "figures":
        return [{"run": run, "figure": one["key"]} | {key: one[key] for key in ("label", "unit", "value")} for one in found["figures"]]
    return [dict(zip(SMALL[name], [run, *row], strict=True)) for row in found["layout"][name]]


def _table(rows: Iterable[dict[str, Any]], types: dict[str, str]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in types.items()]))


def samples(run: Run, name: str, kind: str) -> pa.Table:
    """A table of a run with the columns BESIDE."""
    import numpy as np
    import pyarrow as pa

    table = run.table(kind)
    count = len(table)

    def repeated(values: list[str | None], places: Any) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(values, pa.string()))

    table = table.append_column("run", repeated([name], np.zeros(count, np.int32)))
    if kind == "events":
        return table
    known = sorted(run.meta.of_kind(kind), key=lambda series: series.id)
    places = np.searchsorted([series.id for series in known], table.column("series").to_numpy()).astype(np.int32)
    for column, field in (("name", "name"), ("class", "klass"), ("direction", "direction")):
        words = [getattr(series, field) for series in known]
        kinds = sorted({word for word in words if word is not None})
        numbers = np.asarray([kinds.index(word) if word is not None else -1 for word in words] or [-1], np.int32)
        numbers = numbers[places] if count else places
        array = pa.array(numbers, pa.int32(), mask=numbers < 0)
        table = table.append_column(column, pa.DictionaryArray.from_arrays(array, pa.array(kinds, pa.string())))
    return table


def write(paths: Sequence[Path], opened: Opened, to: Path, cache: Path | None = None) -> tuple[int, list[str]]:
    """Write the data set, and replace an older one at `to` as a whole. The number of runs, and a line for each run that cannot be read.
    StoreError: no run can be read, or `to` holds something else."""
    import pyarrow.parquet as pq

    _free(to)
    tables, read, problems = small_tables(paths, opened, tuple(SMALL), cache)
    if not read:
        raise StoreError(f"no readable runs{': ' + problems[0] if problems else ''}")
    beside = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    try:
        beside.mkdir(parents=True)
        written = []
        for number, path in enumerate(read, 1):
            try:
                run = opened(path)
                made = {kind: samples(run, name_of(path), kind) for kind in run.kinds()}
            except (StoreError, OSError) as error:  # the run has vanished or changed since its figures were computed
                problems.append(str(error))
                continue
            for kind, table in made.items():
                (beside / kind).mkdir(exist_ok=True)
                pq.write_table(table, beside / kind / f"{number:05}.parquet", compression="zstd", store_schema=False)
            written.append(name_of(path))
        if not written:
            raise StoreError(f"no readable runs: {problems[0]}")
        for name, table in tables.items():
            if len(written) < len(read):
                kept = set(written)
                table = table.filter([run in kept for run in table.column("run").to_pylist()])
            pq.write_table(table, beside / f"{name}.parquet", compression="zstd", store_schema=False)
        if to.exists():
            shutil.rmtree(to)
        beside.rename(to)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return len(written), problems


def _free(to: Path) -> None:
    """StoreError unless `to` is absent, an empty directory, or a data set."""
    if not to.exists() and not to.is_symlink():
        return
    if to.is_symlink() or not to.is_dir():
        raise StoreError(f"{to}: exists, and is not a directory: give another place")
    there = {path.name for path in to.iterdir()}
    if there and not (is_dataset(to) and there <= {*columns.KINDS, *(f"{name}.parquet" for name in SMALL)}):
        raise StoreError(f"{to}: holds other files than those of a data set: give another place")
