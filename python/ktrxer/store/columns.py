# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of a run: one for each kind of sample, and one of events. tables.py is made from contract/store.toml.

Times are integer nanoseconds since the run's zero. Counts are cumulative, as the kernel or the measuring process reports them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ktrxer.store.tables import TABLES as TABLES  # re-exported

if TYPE_CHECKING:
    import pyarrow as pa

# TOO_LATE: the answer came after the time-out of the probes. Such a probe has a delay. It counts neither as lost nor as answered in time.
ANSWERED, LOST, LOST_UP, LOST_DOWN, FAILED, SKIPPED, DUPLICATE, TOO_LATE = range(8)
LOCAL, REMOTE = 0, 1
# The results of a pair of TCP probes (`ktrxer tcp`). COMPLETE: neither was lost, and the order is not known.
UNKNOWN, IN_ORDER, REORDERED, COMPLETE, FIRST_LOST, SECOND_LOST, BOTH_LOST = range(7)
PAIR_EVENTS = ("unknown", "in_order", "reordered", "complete", "first_lost", "second_lost", "both_lost")
# Why a pair of TCP probes has no result; 0: it has one.
DOUBTS = ("none", "no_conclusion", "short_segments", "connection_ended")
# The part of the measurement of an answer to `ktrxer trace`, and the type of the answer.
STAGES = ("search", "repeat", "loaded")
HOP_ANSWERS = ("time_exceeded", "unreachable", "echo_reply", "tcp")

KINDS = tuple(TABLES)


def names(kind: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[kind])


@cache
def schema(kind: str) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(c.name, pa.type_for_alias(c.type), nullable=c.nullable) for c in TABLES[kind]])
