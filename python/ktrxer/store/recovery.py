# SPDX-License-Identifier: MIT OR Apache-2.0
"""Close a run that a crash or a kill has left as a directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ktrxer.store.errors import StoreError
from ktrxer.store.names import PART, SUFFIX
from ktrxer.store.reasons import Reason, reason
from ktrxer.store.run import Run, being_written, open_run
from ktrxer.store.writer import write_finished

if TYPE_CHECKING:
    import pyarrow as pa

# Builds the verdict of the run, and returns the tables that replace the raw ones: one-way delays are computed at the end.
Close = Callable[[Run], "dict[str, pa.Table]"]


def recover(path: Path | str, close: Close | None = None) -> Path:
    """The finished file; the directory is removed. StoreError if a process still writes the run, or if `path` is not a run."""
    part = Path(path)
    if not part.is_dir() or not part.name.endswith(SUFFIX + PART):
        raise StoreError(f"{part}: nothing to recover; a run that was cut off is a directory NAME{SUFFIX}{PART}")
    if being_written(part):
        raise StoreError(f"{part}: a `ktrxer run` still writes to it; wait for its end, or stop it with Ctrl-C")
    target = part.with_name(part.name.removesuffix(PART))
    if target.exists():
        raise StoreError(f"{target}: exists already; if it is this run, remove {part.name}, else move one of them away")
    run = open_run(part, lenient=True)
    tables: dict[str, pa.Table] = {}
    unread: list[Reason] = []
    for kind in run.kinds():
        try:
            tables[kind] = run.table(kind)
        except StoreError as error:
            unread.append(reason("damaged", error=f"the table {kind} cannot be read: {error}"))
    unread += [reason("damaged", error=one) for one in run.damage]
    rows = {kind: count for kind, count in run.left_out.items() if count}
    unread += [reason("damaged", error=f"{count} rows of the table {kind} are damaged and left out") for kind, count in rows.items()]
    run = Run(part, run.meta, {kind: partial(tables.__getitem__, kind) for kind in tables}, finished=False)
    for runner in run.meta.runners:
        if runner.status in ("planned", "running"):
            runner.status = "killed"
    if close is not None:
        tables |= close(run)
    latest = max((int(table.column("t_ns")[i].as_py()) for table in tables.values() if len(table) for i in (len(table) - 1,)), default=0)
    cut_off = reason("cut_off", "degraded" if latest else "invalid", last_s=latest / 1e9, planned_s=run.meta.length_ns / 1e9)
    if run.meta.verdict in (None, "valid"):
        run.meta.verdict = "degraded" if latest else "invalid"
    run.meta.reasons[:0] = [cut_off, *unread]
    try:
        write_finished(target, run.meta, tables, part / ".finished")
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror}; {part.name} is unchanged") from None
    shutil.rmtree(part, ignore_errors=True)
    return target
