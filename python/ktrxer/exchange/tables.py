# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of one run as plain files: NAME.TABLE.csv or NAME.TABLE.parquet, with the name, class and direction of each series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ktrxer.analyse.dataset import samples
from ktrxer.store import StoreError, files

if TYPE_CHECKING:
    import pyarrow as pa

    from ktrxer.store import Run

Form = Literal["csv", "parquet"]


@dataclass(frozen=True)
class Written:
    path: Path
    kind: str
    rows: int
    schema: pa.Schema


def write(run: Run, name: str, form: Form, directory: Path, force: bool = False) -> list[Written]:
    """A file for each table of the run that has samples. StoreError: a file exists already (without `force`), or cannot be written."""
    kinds = [kind for kind in run.kinds() if len(run.table(kind))]
    targets = {kind: directory / f"{name}.{kind}.{form}" for kind in kinds}
    there = [str(target) for target in targets.values() if target.exists()]
    if there and not force:
        raise StoreError(f"{there[0]}: exists already; --force replaces it, -D writes elsewhere")
    made = []
    for kind, target in targets.items():
        table = samples(run, name, kind)
        table = table.select(["run", *(column for column in table.column_names if column != "run")])
        files.replace(target, lambda beside, table=table: _write(table, beside, form))  # type: ignore[misc]
        made.append(Written(target, kind, len(table), table.schema))
    return made


def _write(table: pa.Table, path: Path, form: Form) -> None:
    if form == "csv":
        from pyarrow import csv

        csv.write_csv(plain(table), path)
    else:
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd", store_schema=False)


def plain(table: pa.Table) -> pa.Table:
    """CSV has no dictionaries, so the table gets their text. Times and counts stay integers; an empty entry is an empty field."""
    import pyarrow as pa

    fields = [pa.field(f.name, f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def file_names(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """A name for each run that is unique, in the order given: two folders may have runs of one name."""
    from ktrxer.analyse.dataset import name_of

    taken: set[str] = set()
    for path in paths:
        base = name = name_of(path).removesuffix(".flent.gz")
        number = 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        yield path, name
