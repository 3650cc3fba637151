# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writer of a run: NAME.ktrxer.part/ with meta.json and one Arrow IPC stream for each kind of sample.

Synced data survive a kill and a power failure. The reader reads a truncated stream up to its last complete batch.
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

from ktrxer.store import columns, container, files, original
from ktrxer.store import meta as meta_file
from ktrxer.store.errors import StoreError
from ktrxer.store.meta import Meta
from ktrxer.store.names import LOCK, META, PART, STREAM, SUFFIX

if TYPE_CHECKING:
    import pyarrow as pa

NAME_MAX = 250  # bytes of a file name, with its suffixes


def file_name(test: str, created: str, title: str) -> str:
    """The name without its suffix, such as `rrul-2026-11-21T153000.title`. It sorts by time, and needs no quotes in a shell."""
    when = created[:19].replace(":", "")
    name = f"{_plain(test)}-{_plain(when)}"
    return (f"{name}.{_plain(title)}" if title else name)[: NAME_MAX - len(SUFFIX + PART) - 4]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_") or "_"


class RunWriter:
    """`append` adds samples, `sync` writes them to the disk, `finish` makes one file of the run. Only one thread may use a writer."""

    def __init__(self, directory: Path | str, meta: Meta, name: str | None = None) -> None:
        self.meta = meta
        self._pending: dict[str, dict[str, list[Any]]] = {}
        self._streams: dict[str, tuple[Any, Any]] = {}
        self._failed = False
        self._committing: threading.Thread | None = None
        self._error: OSError | None = None
        self._meta_text: bytes | None = None  # text that `sync` still has to write
        # Create the directory under another name and rename it, so that a run never exists without its meta.json.
        directory = Path(directory)
        self.part = directory / f".ktrxer-{os.getpid()}-{id(self):x}"
        try:
            self.part.mkdir()
            # This process holds the lock until it ends, so that `recover` detects a running writer.
            self._lock = files.create(self.part / LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._replace_meta(meta_file.write(meta))
            self.path = self._claim(directory, name or file_name(meta.test, meta.created, meta.title))
        except OSError as error:
            shutil.rmtree(self.part, ignore_errors=True)
            raise StoreError(f"{directory}: cannot create a run in this directory: {error.strerror}") from None
        except BaseException:
            shutil.rmtree(self.part, ignore_errors=True)
            raise
        container.sync_directory(directory)

    def _claim(self, directory: Path, name: str) -> Path:
        """Rename the directory to an unused name. rename(2) does not replace a directory that is not empty."""
        for number in range(1, 1000):
            path = directory / f"{name}{f'-{number}' if number > 1 else ''}{SUFFIX}"
            if path.exists():
                continue
            try:
                self.part = self.part.rename(directory / f"{path.name}{PART}")
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    continue
                raise
            return path
        raise StoreError(f"{directory}: it has a thousand runs of the name {name}; choose another title")

    def append(self, kind: str, rows: Mapping[str, Sequence[Any]]) -> None:
        """Append samples of one kind, given by column. A nullable column may be left out."""
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
        """Write appended samples to the disk. With `background` a thread does this, so that a slow disk does not delay the caller. An
        OSError, such as disk full, may come from an earlier sync; after it, call only `abandon`: the files are complete up to the last good
        sync. Without `meta`, meta.json is not written: use this if it has not changed."""
        if self._failed:
            raise StoreError(f"{self.part}: an earlier write has failed")
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
        beside = self.part / f".{META}"
        with files.create(beside) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(self.part / META)

    def _wait(self) -> None:
        if self._committing is not None:
            self._committing.join()
            self._committing = None
            if self._error is not None:
                raise self._error

    def tables(self) -> dict[str, pa.Table]:
        """All samples that were appended so far."""
        from ktrxer.store.run import read_stream

        self._write_batches()
        return {kind: read_stream(self.part / f"{kind}{STREAM}", kind) for kind in self._streams}

    def finish(self, replaced: Mapping[str, pa.Table] | None = None) -> Path:
        """Make one file of the directory. Tables in `replaced` replace those that were appended."""
        self._meta_text = text = meta_file.write(self.meta)
        self.sync(meta=False)
        try:
            tables = dict(replaced or {})
            if missing := self._streams.keys() - tables.keys():
                tables |= {kind: table for kind, table in self.tables().items() if kind in missing}
            _write_file(self.path, text, tables, self.part / ".finished")
        except OSError:
            self._failed = True
            raise
        self.abandon()
        shutil.rmtree(self.part, ignore_errors=True)
        return self.path

    def abandon(self) -> None:
        """Leave the directory unchanged, for `ktrxer recover`."""
        self._failed = True
        with contextlib.suppress(OSError):
            self._wait()
        for file, _ in self._streams.values():
            with contextlib.suppress(OSError):
                file.close()
        self._lock.close()


def write_finished(path: Path, meta: Meta, tables: Mapping[str, pa.Table], beside: Path, imported: bytes | None = None) -> None:
    """`imported`: the file of another program that the run was made of."""
    _write_file(path, meta_file.write(meta), tables, beside, imported)


def _write_file(path: Path, meta: bytes, tables: Mapping[str, pa.Table], beside: Path, imported: bytes | None = None) -> None:
    members: list[tuple[str, bytes | Path]] = [(META, meta)]
    members += [(f"{kind}.parquet", parquet(kind, tables[kind])) for kind in columns.KINDS if kind in tables and len(tables[kind])]
    if imported is not None:
        members.append((original.MEMBER, original.pack(imported)))
    container.write(path, members, beside)


def parquet(kind: str, table: pa.Table) -> bytes:
    """Parquet data, sorted by series and time, so that they compress well and each series is one range of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ktrxer.store.arrays import in_order

    table = in_order(table.select(columns.schema(kind).names))
    # Neighbouring times differ little, so their differences are stored. Small enumerations use a dictionary.
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
        store_schema=False,  # Parquet's own types suffice: a reader need not trust a second schema
    )
    return bytes(sink.getvalue())
