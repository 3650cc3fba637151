# SPDX-License-Identifier: MIT OR Apache-2.0
"""pyarrow, which a run needs: imported before it, because an import takes seconds on a busy machine."""

from __future__ import annotations

import sys


class _Refused:
    """An import hook (sys.meta_path) that refuses packages which pyarrow imports where they are installed."""

    NAMES = frozenset(("pandas", "dateutil", *(f"pyarrow._{name}fs" for name in ("azure", "gcs", "s3")), "pyarrow._hdfs"))

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name in _Refused.NAMES or name.startswith("dateutil."):
            raise ImportError(f"this command does not use {name}")


def without_pandas() -> None:
    """pyarrow imports pandas at its first conversion, where pandas is installed (for `ktrxer query`), only to see whether values are of
    pandas: 0.2 s of processor time. Likewise dateutil, and with pyarrow.parquet the file systems of other hosts: 8 ms. It looks once, so
    they are refused then, and a recipe may import pandas later."""
    import pyarrow as pa

    sys.meta_path.insert(0, _Refused)
    try:
        pa.array([0])
        import pyarrow.parquet  # noqa: F401
    finally:
        sys.meta_path.remove(_Refused)
