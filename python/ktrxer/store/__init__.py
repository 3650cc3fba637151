# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs on disk (docs/reference/store.md): the directory NAME.ktrxer.part/ during the run, the file NAME.ktrxer after its end.

    run = open_run("rrul.ktrxer")            # checks the file, which may come from an unknown source
    run.meta.series, run.table("latency")    # dataclasses; pyarrow.Table
    run.arrays(run.series("TCP upload BE"))  # numpy arrays, sorted by time

    writer = RunWriter(directory, meta)
    writer.append("latency", {"series": [0], "t_ns": [5], ...})
    writer.sync()
    path = writer.finish()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ktrxer.store.errors import StoreError, one_line

if TYPE_CHECKING:
    from ktrxer.store.meta import Host, Meta, Phase, Runner, Series, Zero
    from ktrxer.store.recovery import recover
    from ktrxer.store.run import Run, open_run
    from ktrxer.store.writer import RunWriter

_LAZY = {"Run": "run", "open_run": "run", "RunWriter": "writer", "recover": "recovery"}
_LAZY |= dict.fromkeys(("Host", "Meta", "Phase", "Runner", "Series", "Zero"), "meta")


def __getattr__(name: str) -> Any:
    """Import the modules that need pyarrow or dataclasses at their first use, so that the command line starts quickly."""
    if name not in _LAZY:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"ktrxer.store.{_LAZY[name]}"), name)


__all__ = ["Host", "Meta", "Phase", "Run", "RunWriter", "Runner", "Series", "StoreError", "Zero", "one_line", "open_run", "recover"]
