# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run while it happens: NAME.ktrxer.part/ with meta.json and one Arrow IPC stream for each kind of sample.

What has been synced survives a kill and a power failure; a stream that was cut off in the middle is read up to its last whole batch.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.store import columns, container, files
from ktrxer.store import meta as meta_file
from ktrxer.store.container import LOCK, PART, STREAM
from ktrxer.store.errors import StoreError
from ktrxer.store.meta import Meta

if TYPE_CHECKING:
    import pyarrow as pa

NAME_MAX = 250  # of a file name, with its endings


def file_name(test: str, created: str, title: str) -> str:
    """`rrul-2026-11-21T153000.title`, without its ending: sorts by time, and needs no quotes in a shell."""
    when = created[:19].replace(":", "")
    name = f"{_plain(test)}-{_plain(when)}"
    return (f"{name}.{_plain(title)}" if title else name)[: NAME_MAX - len(container.SUFFIX + PART) - 4]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_") or "_"


class RunWriter:
    """Appends samples; `sync` makes them safe; `finish` closes the run into one file. One thread uses it."""

    def __init__(self, directory: Path | str, meta: Meta, name: str | None = None) -> None:
        self.meta = meta
        self._pending: dict[str, dict[str, list[Any]]] = {}
        self._streams: dict[str, tuple[Any, Any]] = {}
        self._failed = False
        self._committing: threading.Thread | None = None
        self._error: OSError | None = None
        self._meta_text: bytes | None = None  # that is to be written yet
        # Made under another name, then renamed: nobody ever sees a run without its meta.
        directory = Path(directory)
        self.part = directory / f".ktrxer-{os.getpid()}-{id(self):x}"
        try:
            self.part.mkdir()
            # Held while this process lives: so `recover` knows whether anybody still writes.
            self._lock = files.create(self.part / LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._replace_meta(meta_file.write(meta))
            self.path = self._claim(directory, name or file_name(meta.test, meta.created, meta.title))
        except OSError as error:
            shutil.rmtree(self.part, ignore_errors=True)
            raise StoreError(f"{directory}: no run can be stored there: {error.strerror}") from None
        except BaseException:
            shutil.rmtree(self.part, ignore_errors=True)
            raise
        container.sync_directory(directory)

    def _claim(self, directory: Path, name: str) -> Path:
        """A name that nobody else has: a directory that is not empty cannot be replaced."""
        for number in range(1, 1000):
            path = directory / f"{name}{f'-{number}' if number > 1 else ''}{container.SUFFIX}"
            if path.exists():
                continue
            try:
                self.part = self.part.rename(directory / f"{path.name}{PART}")
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    continue
                raise
            return path
        raise StoreError(f"{directory}: a thousand runs are called {name} there; choose another title")

    def append(self, kind: str, rows: Mapping[str, Sequence[Any]]) -> None:
        """Samples of one kind, column by column; a column that may be empty may be left out."""
        table = columns.TABLES[kind]
        unknown = rows.keys() - {column.name for column in table}
        if unknown:
            raise ValueError(f"{kind} has no column {', '.join(sorted(unknown))}")
        lengths = {len(values) for values in rows.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {kind} of different lengths: {sorted(lengths)}")
        count = lengths.pop() if lengths else 0
        pending = self._pending.setdefault(kind, {column.name: [] for column in table})
        for column in table:
            if column.name in rows:
                pending[column.name].extend(rows[column.name])
            elif column.nullable:
                pending[column.name].extend([None] * count)
            else:
                raise ValueError(f"{kind} needs the column {column.name}")

    def event(self, t_ns: int, name: str, text: str, runner: int | None = None) -> None:
        self.append("events", {"t_ns": [t_ns], "runner": [runner], "name": [name], "text": [text]})

    def sync(self, background: bool = False, meta: bool = True) -> None:
        """What was appended reaches the disk; in the background, a slow disk holds nobody up. An OSError (disk full) may be of an earlier
        sync; after one, only `abandon` is left: the files are whole up to what was synced before. Without `meta` its file stays as it is:
        it has not changed."""
        if self._failed:
            raise StoreError(f"{self.part}: nothing more can be written to it")
        try:
            self._write_batches()
            if meta:
                self._meta_text = meta_file.write(self.meta)
            if self._error is not None:
                raise self._error
            if not background:
                self._wait()
                self._commit()
            elif self._committing is None or not self._committing.is_alive():
                self._committing = threading.Thread(target=self._commit_quietly, daemon=True)
                self._committing.start()
        except OSError:
            self._failed = True
            raise

    def _write_batches(self) -> None:
        import pyarrow as pa

        for kind, pending in self._pending.items():
            if not pending["t_ns"]:
                continue
            schema = columns.schema(kind)
            arrays = [pa.array(pending[field.name], field.type, from_pandas=True) for field in schema]
            batch = pa.record_batch(arrays, schema=schema)
            if kind not in self._streams:
                file = files.create(self.part / f"{kind}{STREAM}")
                self._streams[kind] = (file, pa.ipc.new_stream(pa.PythonFile(file, "w"), schema))
            self._streams[kind][1].write_batch(batch)
            self._streams[kind][0].flush()
            for values in pending.values():
                values.clear()

    def _commit_quietly(self) -> None:
        try:
            self._commit()
        except OSError as error:
            self._error = error

    def _commit(self) -> None:
        text, self._meta_text = self._meta_text, None
        for file, _ in list(self._streams.values()):
            os.fsync(file.fileno())
        if text is not None:
            self._replace_meta(text)

    def _replace_meta(self, text: bytes) -> None:
        beside = self.part / f".{container.META}"
        with files.create(beside) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(self.part / container.META)

    def _wait(self) -> None:
        if self._committing is not None:
            self._committing.join()
            self._committing = None
            if self._error is not None:
                raise self._error

    def tables(self) -> dict[str, pa.Table]:
        """All that was appended so far."""
        from ktrxer.store.run import read_stream

        self._write_batches()
        return {kind: read_stream(self.part / f"{kind}{STREAM}", kind) for kind in self._streams}

    def finish(self, replaced: Mapping[str, pa.Table] | None = None) -> Path:
        """One file from the directory; tables in `replaced` go in instead of those that were appended."""
        self.sync()
        try:
            write_finished(self.path, self.meta, self.tables() | dict(replaced or {}), self.part / ".finished")
        except OSError:
            self._failed = True
            raise
        self.abandon()
        shutil.rmtree(self.part, ignore_errors=True)
        return self.path

    def abandon(self) -> None:
        """Leaves the directory as it is, for `ktrxer recover`."""
        self._failed = True
        with contextlib.suppress(OSError):
            self._wait()
        for file, _ in self._streams.values():
            with contextlib.suppress(OSError):
                file.close()
        self._lock.close()


def write_finished(path: Path, meta: Meta, tables: Mapping[str, pa.Table], beside: Path) -> None:
    members: list[tuple[str, bytes | Path]] = [(container.META, meta_file.write(meta))]
    members += [(f"{kind}.parquet", parquet(kind, tables[kind])) for kind in columns.KINDS if kind in tables and len(tables[kind])]
    container.write(path, members, beside)


def parquet(kind: str, table: pa.Table) -> bytes:
    """Sorted by series and time: small, and one series is one range of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ktrxer.store.arrays import in_order

    order = ["series", "t_ns"] if "series" in table.column_names else ["t_ns"]
    table = in_order(table.select(columns.schema(kind).names), order)
    # Times differ by little: differences are packed. Small enumerations go through a dictionary.
    packed = [c.name for c in columns.TABLES[kind] if c.type == "int64"]
    plain = [c.name for c in columns.TABLES[kind] if c.name not in packed]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=plain,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
        store_schema=False,  # types are the format's own: no reader has to trust a second description
    )
    return bytes(sink.getvalue())
