# SPDX-License-Identifier: MIT OR Apache-2.0
"""A stored run, to be read: its meta, and its tables when they are asked for. Nothing that a file says is believed unchecked."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.store import columns, limits
from ktrxer.store import meta as meta_file
from ktrxer.store.container import LOCK, META, PART, STREAM, SUFFIX, Container
from ktrxer.store.errors import StoreError, one_line
from ktrxer.store.meta import Meta, Series

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Arrays = dict[str, np.ndarray[Any, Any]]


class Run:
    """`table(kind)` has the columns of `columns.TABLES`, whatever the file had; a kind without samples is an empty table."""

    def __init__(self, path: Path, meta: Meta, load: Mapping[str, Callable[[], pa.Table]], *, finished: bool = True) -> None:
        self.path = path
        self.meta = meta
        self.finished = finished
        self._load = dict(load)
        self._tables: dict[str, pa.Table] = {}
        self._ranges: dict[str, tuple[Arrays, dict[int, slice]]] = {}

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(PART).removesuffix(SUFFIX)

    def kinds(self) -> list[str]:
        return [kind for kind in columns.KINDS if kind in self._load]

    def table(self, kind: str) -> pa.Table:
        if kind not in self._tables:
            if kind not in columns.TABLES:
                raise KeyError(kind)
            load = self._load.get(kind)
            self._tables[kind] = columns.schema(kind).empty_table() if load is None else _checked(load(), kind, self.meta, self.path)
        return self._tables[kind]

    def series(self, name: str) -> Series:
        found = next((series for series in self.meta.series if series.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def arrays(self, series: Series) -> Arrays:
        """The samples of one series in the order of time. A column that may be empty is of doubles, with NaN where it is; times and counts
        below 2^53 are exact in them."""
        if series.kind not in self._ranges:
            self._ranges[series.kind] = self._split(series.kind)
        whole, ranges = self._ranges[series.kind]
        part = ranges.get(series.id, slice(0, 0))
        return {name: values[part] for name, values in whole.items()}

    def _split(self, kind: str) -> tuple[Arrays, dict[int, slice]]:
        import numpy as np

        table = self.table(kind)
        raw = {column.name: as_array(table, column.name) for column in columns.TABLES[kind]}
        order = np.lexsort((raw["t_ns"], raw["series"]))
        raw = {name: values[order] for name, values in raw.items()}
        ids, starts = np.unique(raw["series"], return_index=True)
        ends = [*starts.tolist(), len(order)][1:]
        return raw, {int(i): slice(int(a), int(b)) for i, a, b in zip(ids, starts, ends, strict=True)}


def as_array(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    import numpy as np
    import pyarrow as pa

    from ktrxer.store.arrays import numbers

    column = table.column(name)
    if pa.types.is_string(column.type):
        return np.asarray(column.to_numpy())
    values, missing = numbers(column)
    return np.where(missing, np.nan, values.astype(np.float64)) if table.schema.field(name).nullable else values


def open_run(path: Path | str) -> Run:
    """NAME.ktrxer, a NAME.ktrxer.part that is being written or was left, or a file of Flent's. StoreError when it is none of them."""
    path = Path(path)
    if path.is_dir():
        return _open_part(path)
    if ".flent" in path.name or path.name.endswith(".flnt"):
        from importlib import import_module

        run: Run = import_module("ktrxer.flent").open_run(path)  # a floor of its own: foreign files become runs there
        return run
    return _open_finished(path)


def _open_finished(path: Path) -> Run:
    zipped = Container(path)
    meta = meta_file.read(bytes(zipped.read(META)), f"{path}: {META}")
    kinds = [kind for kind in columns.KINDS if f"{kind}.parquet" in zipped]

    def loader(kind: str) -> Callable[[], pa.Table]:
        return lambda: read_parquet(zipped.read(f"{kind}.parquet"), kind, path)

    return Run(path, meta, {kind: loader(kind) for kind in kinds})


def _open_part(path: Path) -> Run:
    try:
        text = (path / META).read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: not a run: its {META} cannot be read: {error.strerror}") from None
    meta = meta_file.read(text, f"{path}: {META}")

    def loader(kind: str) -> Callable[[], pa.Table]:
        return lambda: read_stream(path / f"{kind}{STREAM}", kind)

    kinds = [kind for kind in columns.KINDS if (path / f"{kind}{STREAM}").is_file()]
    return Run(path, meta, {kind: loader(kind) for kind in kinds}, finished=False)


def being_written(part: Path) -> bool:
    """Does a process still hold its lock?"""
    try:
        with (part / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


# ------------------------------------------------------------------------------------------------------------------ tables


def read_parquet(data: memoryview, kind: str, path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = f"{path}: {kind}.parquet"
    try:
        file = pq.ParquetFile(
            pa.BufferReader(pa.py_buffer(data)),
            page_checksum_verification=True,
            thrift_string_size_limit=1 << 20,
            thrift_container_size_limit=1 << 20,
        )
        # By what the file claims, before anything is made from it.
        _bounded(file.metadata.num_rows, len(data), where)
        groups = range(file.metadata.num_row_groups)
        if sum(max(0, file.metadata.row_group(i).num_rows) for i in groups) != file.metadata.num_rows:
            raise StoreError(f"{where}: it contradicts itself on how many rows it has")
        claimed = sum(file.metadata.row_group(i).total_byte_size for i in groups)
        if not 0 <= claimed <= limits.TABLE_BYTES:
            raise StoreError(f"{where}: it claims to be {claimed} bytes large; at most {limits.TABLE_BYTES} are read")
        there = file.schema_arrow
        known = [field.name for field in columns.schema(kind) if field.name in there.names]
        _same_types(there, known, kind, where)
        return file.read(columns=known, use_threads=False)
    except StoreError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise StoreError(f"{where}: damaged: {error}") from None


def read_stream(path: Path, kind: str) -> pa.Table:
    """All whole batches; where a crash has cut the stream off, it ends."""
    import pyarrow as pa

    schema = columns.schema(kind)
    try:
        data = pa.memory_map(str(path)) if path.stat().st_size else None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    batches: list[pa.RecordBatch] = []
    rows = 0
    if data is not None:
        try:
            reader = pa.ipc.open_stream(data)
        except (pa.ArrowException, OSError, ValueError):  # cut off in its first words
            return schema.empty_table()
        _same_types(reader.schema, schema.names, kind, str(path))
        while True:
            try:
                batch = reader.read_next_batch()
                batch.validate(full=True)  # lengths and offsets inside its buffers
            except (StopIteration, pa.ArrowException, OSError, ValueError, MemoryError):
                break
            rows += batch.num_rows
            _bounded(rows, path.stat().st_size, str(path))
            batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema) if batches else schema.empty_table()


def _bounded(rows: int, size: int, where: str) -> None:
    if not 0 <= rows <= min(limits.ROWS, limits.ROWS_FREE + limits.ROWS_A_BYTE * size):
        raise StoreError(f"{where}: it claims {rows} rows in {size} bytes: not a table of samples")


def _same_types(there: pa.Schema, known: list[str], kind: str, where: str) -> None:
    if len(set(there.names)) != len(there.names):
        raise StoreError(f"{where}: two columns have the same name")
    for field in columns.schema(kind):
        if field.name not in known:
            if not field.nullable:
                raise StoreError(f"{where}: the column {field.name} is missing")
        elif there.field(field.name).type != field.type:
            raise StoreError(f"{where}: the column {field.name} is of {there.field(field.name).type}, not {field.type}")


def _checked(table: pa.Table, kind: str, meta: Meta, path: Path) -> pa.Table:
    """The table in our own schema, after all rules that can be checked on values."""
    import numpy as np
    import pyarrow as pa

    from ktrxer.store import arrays

    where = f"{path}: {kind}"
    made = []
    for column in columns.TABLES[kind]:
        type_ = columns.schema(kind).field(column.name).type
        if column.name not in table.column_names:
            made.append(pa.nulls(len(table), type_))
            continue
        values = table.column(column.name)
        if values.null_count and not column.nullable:
            raise StoreError(f"{where}: {column.name} is empty in {values.null_count} rows")
        if pa.types.is_floating(type_):  # what is no number is not there
            there, missing = arrays.numbers(values)
            values = arrays.column(there, type_, missing | ~np.isfinite(there))
        if column.most is not None and len(values) and (worst := int(arrays.numbers(values)[0].max())) > column.most:
            raise StoreError(f"{where}: {column.name} has the value {worst}; {column.most} is the last that there is")
        made.append(values)
    checked = pa.table(made, schema=columns.schema(kind))
    if len(checked):
        times = arrays.numbers(checked.column("t_ns"))[0]
        if times.min() < -limits.SPAN_NS or times.max() > limits.SPAN_NS:
            raise StoreError(f"{where}: a time lies more than {limits.SPAN_NS // 86_400_000_000_000} days from the run's zero")
    if len(checked) and "series" in checked.column_names:
        known = {series.id for series in meta.series if series.kind == kind}
        strange = set(np.unique(arrays.numbers(checked.column("series"))[0]).tolist()) - known
        if strange:
            raise StoreError(f"{where}: samples of a series {min(strange)} that {META} does not know")
    return checked


def complaint(path: Path | str, error: Exception) -> str:
    """One line, also for what no rule foresaw."""
    return one_line(str(error) if isinstance(error, StoreError) else f"{path}: {error}")
