# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of a run: one for each kind of sample, and one of events. tables.py is made from contract/store.toml.

Times are integer nanoseconds since the run's zero. Counts are cumulative, as the kernel or the measuring process reports them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ktrxer.store.tables import *  # noqa: F403 - TABLES, and the values of the enumerations
from ktrxer.store.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = tuple(TABLES)


def names(kind: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[kind])


@cache
def schema(kind: str) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(c.name, pa.type_for_alias(c.type), nullable=c.nullable) for c in TABLES[kind]])
