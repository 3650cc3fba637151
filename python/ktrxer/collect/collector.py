# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a collector is. The experiment floor calls it from one thread: open, then sample each `interval_ns`, then close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ktrxer.store.meta import Series


class CollectorError(Exception):
    """It cannot work here; the text is one line: what is missing, what now."""


@dataclass(frozen=True)
class Sample:
    """One row of the table `series.kind`, without `series` and `t_ns`, which the caller knows."""

    series: int  # index into what open() gave
    values: Mapping[str, Any]
    monotonic_ns: int | None = None  # when it was taken; None: when sample() was called


class Collector(Protocol):
    name: str  # in messages: "qdiscs of eth0"
    interval_ns: int

    def open(self) -> Sequence[Series]:
        """Checks that it can work, and says which series it will give (their `id` is set by the caller). CollectorError when it cannot."""

    def sample(self) -> Sequence[Sample]:
        """The counters now. Quick: a millisecond, not a process. An error (CollectorError) ends this collector, not the run."""

    def close(self) -> None:
        """Always called once after a successful open()."""
