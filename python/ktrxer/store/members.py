# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of many run files as one pyarrow data set. A member of a stored zip is a range of its file, so its Parquet is read where it
is: only the columns and row groups that a query needs. A file is opened when it is scanned, so that not all files are open at once.

The headers of each table are checked as store/run.py checks them, and its checksum. Its values are not.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyarrow import dataset as ds
from pyarrow import fs
from pyarrow import parquet as pq

from ktrxer.store import columns
from ktrxer.store.container import Container
from ktrxer.store.errors import StoreError
from ktrxer.store.run import open_parquet, open_run

if TYPE_CHECKING:
    from collections.abc import Iterable


class Members(fs.FileSystemHandler):  # type: ignore[misc]
    """A file system for pyarrow: the file NUMBER is the table `kind` of the run `paths[NUMBER]`. It is empty if the run does not have this
    table, or cannot be read: `problems` has a line for each of the latter."""

    def __init__(self, paths: Sequence[Path], kind: str, problems: dict[Path, str]) -> None:
        self.paths = paths
        self.kind = kind
        self.problems = problems
        self.lock = threading.Lock()
        self.empty = _parquet(columns.schema(kind).empty_table())

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def get_type_name(self) -> str:
        return "ktrxer"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Iterable[str]) -> list[Any]:
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def open_input_file(self, path: str) -> Any:
        run = self.paths[int(path)]
        try:
            return pa.BufferReader(pa.py_buffer(self._read(run)))
        except (StoreError, OSError) as error:
            with self.lock:
                self.problems.setdefault(run, str(error))
            return pa.BufferReader(self.empty)

    open_input_stream = open_input_file

    def _read(self, run: Path) -> memoryview | pa.Buffer:
        if run.is_dir():
            opened = open_run(run)
            return _parquet(opened.table(self.kind)) if self.kind in opened.kinds() else self.empty
        found = Container(run)
        name = f"{self.kind}.parquet"
        if name not in found:
            return self.empty
        data = found.read(name)
        open_parquet(data, self.kind, f"{run}: {name}")
        return data

    def _no(self, *_: Any, **__: Any) -> NoReturn:
        raise OSError("runs are only read")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _no
    delete_file = move = copy_file = open_output_stream = open_append_stream = _no


def _parquet(table: pa.Table) -> pa.Buffer:
    made = pa.BufferOutputStream()
    pq.write_table(table, made, compression="none", store_schema=False)
    return made.getvalue()


def dataset(paths: Sequence[Path], names: Sequence[str], kind: str, problems: dict[Path, str]) -> ds.Dataset:
    """The tables `kind` of these runs, with the column `run`: `names[i]` for `paths[i]`."""
    system = fs.PyFileSystem(Members(paths, kind, problems))
    form = ds.ParquetFileFormat()
    run = ds.field("run")
    fragments = [form.make_fragment(str(i), system, partition_expression=run == name) for i, name in enumerate(names)]
    schema = columns.schema(kind).append(pa.field("run", pa.string()))
    return ds.FileSystemDataset(fragments, schema, form, system)
