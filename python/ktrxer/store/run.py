# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reader of a stored run: its meta data, and each table at its first use. The reader checks each value of a file before its use."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.store import columns, files, limits, original, packed
from ktrxer.store import meta as meta_file
from ktrxer.store.container import Container
from ktrxer.store.errors import StoreError
from ktrxer.store.meta import Meta, Series
from ktrxer.store.names import LOCK, META, PART, STREAM, SUFFIX

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Arrays = dict[str, np.ndarray[Any, Any]]


class Run:
    """`table(kind)` has the columns of `columns.TABLES`, or those of `narrow`. A kind without samples is an empty table. With `lenient`,
    rows that break a rule are left out, and `left_out` has their number by kind; otherwise one such row makes the table unreadable."""

    def __init__(
        self, path: Path, meta: Meta, load: Mapping[str, Callable[[], pa.Table]], *, finished: bool = True, lenient: bool = False
    ) -> None:
        self.path = path
        self.meta = meta
        self.finished = finished
        self.lenient = lenient
        self.left_out: dict[str, int] = {}
        self.damage: list[str] = []  # a sentence for each stream that is damaged in the middle
        self.original: Callable[[], bytes] | None = None  # the file of another program that it was imported from
        self._load = dict(load)
        self._wanted: Mapping[str, Sequence[str]] = {}
        self._bytes = 0
        self._tables: dict[str, pa.Table] = {}
        self._ranges: dict[str, tuple[Arrays, dict[int, slice]]] = {}

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(PART).removesuffix(SUFFIX)

    def narrow(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Reads and checks only these columns of these kinds. Call it before the first use of a table."""
        self._wanted = {kind: [name for name in columns.names(kind) if name in some] for kind, some in wanted.items()}

    def wanted(self, kind: str) -> Sequence[str]:
        return self._wanted.get(kind, columns.names(kind))

    def kinds(self) -> list[str]:
        return [kind for kind in columns.KINDS if kind in self._load]

    def table(self, kind: str) -> pa.Table:
        if kind not in self._tables:
            if kind not in columns.TABLES:
                raise KeyError(kind)
            load = self._load.get(kind)
            empty = columns.schema(kind).empty_table
            self._tables[kind] = empty().select(self.wanted(kind)) if load is None else self._admitted(load(), kind)
        return self._tables[kind]

    def _admitted(self, table: pa.Table, kind: str) -> pa.Table:
        self._bytes += len(table) * row_bytes(kind)
        if self._bytes > limits.RUN_BYTES:
            most = limits.RUN_BYTES >> 20
            raise StoreError(f"{self.path}: {kind}: its tables take {self._bytes >> 20} MiB of memory; at most {most} are read")
        checked, self.left_out[kind] = _checked(table, kind, self.wanted(kind), self.meta, self.path, self.lenient)
        return checked

    def with_tables(self, tables: Mapping[str, pa.Table]) -> Run:
        """The same run with some other tables, computed from its own, which are not checked again."""
        made = Run(self.path, self.meta, self._load, finished=self.finished, lenient=self.lenient)
        made._tables = {kind: self.table(kind) for kind in self.kinds()} | dict(tables)
        return made

    def series(self, name: str) -> Series:
        found = next((series for series in self.meta.series if series.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def arrays(self, series: Series) -> Arrays:
        """The samples of one series, sorted by time. A nullable column becomes an array of doubles with NaN for empty entries; times and
        counts below 2^53 are exact in doubles."""
        if series.kind not in self._ranges:
            self._ranges[series.kind] = self._split(series.kind)
        whole, ranges = self._ranges[series.kind]
        part = ranges.get(series.id, slice(0, 0))
        return {name: values[part] for name, values in whole.items()}

    def _split(self, kind: str) -> tuple[Arrays, dict[int, slice]]:
        import numpy as np

        table = self.table(kind)
        raw = {name: as_array(table, name) for name in table.column_names}
        series, t_ns = raw["series"], raw["t_ns"]
        if not ((series[1:] > series[:-1]) | ((series[1:] == series[:-1]) & (t_ns[1:] >= t_ns[:-1]))).all():  # not as a writer stores it
            order = np.lexsort((t_ns, series))
            raw = {name: values[order] for name, values in raw.items()}
            series = raw["series"]
        starts = np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]])).tolist() if len(series) else []
        return raw, {int(series[a]): slice(a, b) for a, b in zip(starts, [*starts, len(series)][1:], strict=True)}


def as_array(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    import numpy as np
    import pyarrow as pa

    from ktrxer.store.arrays import numbers

    column = table.column(name)
    if pa.types.is_string(column.type):
        return np.asarray(column.to_numpy())
    values, missing = numbers(column)
    if not table.schema.field(name).nullable:
        return values
    made = values.astype(np.float64)
    made[missing] = np.nan
    return made


def open_run(path: Path | str, *, lenient: bool = False) -> Run:
    """Open NAME.ktrxer, or NAME.ktrxer.part of a run that a process still writes or that a kill has left. StoreError if `path` is neither.
    With `lenient`, for a directory that a kill has left, rows that break a rule are left out."""
    path = Path(path)
    if path.is_dir():
        return _open_part(path, lenient)
    return _open_finished(path)


def _open_finished(path: Path) -> Run:
    zipped = Container(path)
    meta = meta_file.read(bytes(zipped.read(META)), f"{path}: {META}")
    kinds = [kind for kind in columns.KINDS if f"{kind}.parquet" in zipped]

    def loader(kind: str) -> Callable[[], pa.Table]:
        return lambda: read_parquet(zipped.read(f"{kind}.parquet"), kind, path, run.wanted(kind))

    run = Run(path, meta, {kind: loader(kind) for kind in kinds})
    if original.MEMBER in zipped:
        run.original = lambda: original.unpack(bytes(zipped.read(original.MEMBER)), f"{path}: {original.MEMBER}")
    return run


def _open_part(path: Path, lenient: bool) -> Run:
    try:
        with files.open_inside(path, META) as file:
            text = file.read(limits.META_BYTES + 1)
    except FileNotFoundError:
        raise StoreError(f"{path}: not a run, but a directory without {META}; a run is a file *.ktrxer") from None
    except OSError as error:
        raise StoreError(f"{path}: not a run: its {META} cannot be read: {error.strerror}") from None
    meta = meta_file.read(text, f"{path}: {META}")

    def loader(kind: str) -> Callable[[], pa.Table]:
        return lambda: read_stream(path / f"{kind}{STREAM}", kind, run.damage)

    kinds = [kind for kind in columns.KINDS if (stream := path / f"{kind}{STREAM}").is_file() and not stream.is_symlink()]
    run = Run(path, meta, {kind: loader(kind) for kind in kinds}, finished=False, lenient=lenient)
    return run


def being_written(part: Path) -> bool:
    """Whether a process holds the lock of this run."""
    try:
        with files.open_inside(part, LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, StoreError):
        return False
    return False


# ------------------------------------------------------------------------------------------------------------------ tables


def read_parquet(data: memoryview, kind: str, path: Path, wanted: Sequence[str] | None = None) -> pa.Table:
    """All known columns of a table, or those of them that are wanted."""
    import pyarrow as pa

    where = f"{path}: {kind}.parquet"
    try:
        file, known = open_parquet(data, kind, where, wanted)
        return _unpacked(file.read(columns=known, use_threads=False), where)
    except StoreError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise StoreError(f"{where}: damaged: {error}") from None


def open_parquet(data: memoryview, kind: str, where: str, wanted: Sequence[str] | None = None) -> tuple[Any, list[str]]:
    """The table as a pyarrow.parquet.ParquetFile, and the names of its known columns, or of those of them that are wanted. StoreError: its
    headers claim more than the limits allow, or columns of other types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(
            pa.BufferReader(pa.py_buffer(data)),
            page_checksum_verification=True,
            thrift_string_size_limit=1 << 20,
            thrift_container_size_limit=1 << 20,
            read_dictionary=[column.name for column in columns.TABLES[kind] if column.type == "string"],
        )
        # Check the size that the file claims before any allocation.
        bounded(file.metadata.num_rows, len(data), kind, where)
        groups = range(file.metadata.num_row_groups)
        if sum(max(0, file.metadata.row_group(i).num_rows) for i in groups) != file.metadata.num_rows:
            raise StoreError(f"{where}: its headers contradict each other about the number of rows")
        claimed = sum(file.metadata.row_group(i).total_byte_size for i in groups)
        if not 0 <= claimed <= limits.TABLE_BYTES:
            raise StoreError(f"{where}: it claims {claimed} bytes; at most {limits.TABLE_BYTES} are read")
        there = file.schema_arrow
        known = [field.name for field in columns.schema(kind) if field.name in there.names]
        _same_types(_plain_strings(there), known, kind, where)
        known = [name for name in known if wanted is None or name in wanted]
        packed.check_pages(data, [file.schema.column(i).path for i in range(file.metadata.num_columns)], where, wanted)
        return file, known
    except StoreError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise StoreError(f"{where}: damaged: {error}") from None


def _plain_strings(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema])


def _unpacked(table: pa.Table, where: str) -> pa.Table:
    """The table with its dictionary columns as columns of text. In the file each string occurs once and each row has its number, so a few
    bytes can expand to terabytes of text."""
    import pyarrow as pa

    for name in table.column_names:
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            continue
        import pyarrow.compute as pc  # takes longer than to read a table without text

        text = 0
        for chunk in column.chunks:
            lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
            text += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
        if text > limits.RUN_BYTES:
            raise StoreError(f"{where}: the column {name} is {text >> 20} MiB of text; at most {limits.RUN_BYTES >> 20} are read")
        table = table.set_column(table.column_names.index(name), name, column.cast(pa.string()))
    return table


def read_stream(path: Path, kind: str, damage: list[str] | None = None) -> pa.Table:
    """All complete batches of a stream. A stream that a crash has truncated ends at the last complete batch. The reader skips damage in the
    middle and adds a sentence to `damage`."""
    import pyarrow as pa

    schema = columns.schema(kind)
    try:
        with files.open_inside(path.parent, path.name) as file:
            size = os.fstat(file.fileno()).st_size
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None
    if raw is None:
        return schema.empty_table()
    data = pa.py_buffer(raw)
    head = schema.serialize()
    made: list[pa.Table] = []
    rows, at, unread, passed = 0, 0, 0, 0
    for _ in range(limits.RESTARTS):
        # The part behind the damage has no schema message: put the schema of its kind in front.
        source = pa.BufferReader(data if at == 0 else pa.py_buffer(head.to_pybytes() + data.slice(at).to_pybytes()))
        end = at
        batches: list[pa.RecordBatch] = []
        for batch in _batches(source, kind, str(path)):
            rows += batch.num_rows
            bounded(rows, size, kind, str(path))
            batches.append(batch)
            end = source.tell() if at == 0 else at + source.tell() - len(head)
        if batches:
            made.append(pa.Table.from_batches(batches))
            passed, unread = passed + unread, 0
        after = _next_message(raw, max(end, at + 8))
        if after < 0:
            break
        unread += after - end
        at = after
    if passed and damage is not None:
        damage.append(f"{passed} bytes in the middle of {path.name} are damaged and left out")
    return pa.concat_tables(made, promote_options="default") if made else schema.empty_table()


def _batches(source: pa.BufferReader, kind: str, where: str) -> Iterator[pa.RecordBatch]:
    """Batches up to the first one that is incomplete or compressed. No writer of a run compresses a stream."""
    import pyarrow as pa

    try:
        reader = pa.ipc.MessageReader.open_stream(source)
        schema = pa.ipc.read_schema(reader.read_next_message())
        _same_types(schema, schema.names, kind, where)
        known = [name for name in columns.schema(kind).names if name in schema.names]
        while True:
            message = reader.read_next_message()
            if packed.is_compressed(message.metadata):
                return
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)  # checks lengths and offsets inside the buffers of the batch
            yield batch.select(known)
    except (StopIteration, StoreError, pa.ArrowException, OSError, ValueError, MemoryError):
        return


def _next_message(data: mmap.mmap, at: int) -> int:
    """The offset at which the next message of an Arrow stream may begin: a multiple of 8 with the continuation marker and a length that
    fits. -1 if there is none."""
    while (at := data.find(b"\xff\xff\xff\xff", at + -at % 8)) >= 0:
        if at % 8 == 0 and 0 < int.from_bytes(data[at + 4 : at + 8], "little") <= len(data) - at - 8:
            return at
        at += 1
    return -1


def row_bytes(kind: str) -> int:
    """Bytes of one row in memory, as arrays of doubles."""
    return 8 * len(columns.TABLES[kind])


def bounded(rows: int, size: int, kind: str, where: str) -> None:
    """StoreError if a file of `size` bytes cannot contain so many rows, or if the rows exceed the memory limit."""
    if not 0 <= rows <= min(limits.ROWS, limits.ROWS_FREE + limits.ROWS_A_BYTE * size):
        raise StoreError(f"{where}: it claims {rows} rows in {size} bytes, which is not possible")
    if rows * row_bytes(kind) > limits.RUN_BYTES:
        needed, most = rows * row_bytes(kind) >> 20, limits.RUN_BYTES >> 20
        raise StoreError(f"{where}: its {rows} rows take {needed} MiB of memory; at most {most} are read")


def _same_types(there: pa.Schema, known: list[str], kind: str, where: str) -> None:
    if len(set(there.names)) != len(there.names):
        raise StoreError(f"{where}: two columns have the same name")
    for field in columns.schema(kind):
        if field.name not in known:
            if not field.nullable:
                raise StoreError(f"{where}: the column {field.name} is missing")
        elif there.field(field.name).type != field.type:
            raise StoreError(f"{where}: the column {field.name} has the type {there.field(field.name).type}, not {field.type}")


def _checked(table: pa.Table, kind: str, wanted: Sequence[str], meta: Meta, path: Path, lenient: bool) -> tuple[pa.Table, int]:
    """The wanted columns in the schema of `columns`, after the checks of all values, and the number of rows that `lenient` has left out."""
    import numpy as np
    import pyarrow as pa

    from ktrxer.store import arrays

    where = f"{path}: {kind}"
    keep = np.ones(len(table), bool)
    known = np.array([series.id for series in meta.series if series.kind == kind], np.int64)
    schema = pa.schema([columns.schema(kind).field(name) for name in wanted])
    made = []

    def rule(bad: np.ndarray[Any, Any], text: str) -> None:
        if bad.any():
            if not lenient:
                raise StoreError(f"{where}: {text}")
            np.logical_and(keep, ~bad, out=keep)

    for column in (one for one in columns.TABLES[kind] if one.name in wanted):
        type_ = schema.field(column.name).type
        if column.name not in table.column_names:
            made.append(pa.nulls(len(table), type_))
            continue
        values = table.column(column.name)
        if values.null_count and not column.nullable:
            rule(values.is_null().to_numpy(), f"{column.name} is empty in {values.null_count} rows")
        if pa.types.is_floating(type_):  # NaN and infinities become empty entries
            there, missing = arrays.numbers(values)
            values = arrays.column(there, type_, missing | ~np.isfinite(there))
        elif len(values) and (column.values or column.name in ("t_ns", "series")):
            there = arrays.numbers(values)[0]
            if column.values:
                most = len(column.values) - 1
                rule(there > most, f"{column.name} has the value {there.max()}; the largest valid value is {most}")
            elif column.name == "t_ns":
                days = limits.SPAN_NS // 86_400_000_000_000
                rule((there < -limits.SPAN_NS) | (there > limits.SPAN_NS), f"a time lies more than {days} days from the run's zero")
            else:
                unknown = ~np.isin(there, known)
                if unknown.any():
                    rule(unknown, f"samples of series {there[unknown].min()}, which is not in {META}")
        made.append(values)
    if keep.all():
        return pa.table(made, schema=schema), 0
    found = pa.table([pa.chunked_array([values]) if isinstance(values, pa.Array) else values for values in made], names=schema.names)
    return found.filter(pa.array(keep)).cast(schema), int(len(table) - keep.sum())
