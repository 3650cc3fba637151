# SPDX-License-Identifier: MIT OR Apache-2.0
"""Imports of libraries without the packages that they import only where these are installed, and that no command here uses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from typing import Any


def missing(package: str) -> str:
    """The message on a package that cannot be imported, with the command that installs it."""
    target, file = (".plot", "requirements-plot") if package.startswith("matplotlib") else (".ok", "requirements")
    remedy = f"`make .venv/{target}` in the source tree, or `make install`, installs it (python/{file}.txt)"
    return f"it needs the Python package {package}, which {sys.executable} does not have: {remedy}"


class _Refusal:
    """An import hook (sys.meta_path)."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.names or name.partition(".")[0] in self.names:
            raise ImportError(f"this command does not use {name}")


@contextlib.contextmanager
def refused(*names: str) -> Iterator[None]:
    """An import of these packages fails in the block. They can be imported after it."""
    refusal: Any = _Refusal(names)
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)


def without_pandas() -> None:
    """pyarrow imports pandas at its first conversion, where pandas is installed (for `ktrxer query`), only to see whether values are of
    pandas: 0.2 s of processor time. Likewise dateutil, and with pyarrow.parquet the file systems of other hosts: 8 ms. It looks once, so
    they are refused then, and a recipe may import pandas later."""
    import pyarrow as pa

    with refused("pandas", "dateutil", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._s3fs", "pyarrow._hdfs"):
        pa.array([0])
        import pyarrow.parquet  # noqa: F401
