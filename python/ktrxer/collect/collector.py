# SPDX-License-Identifier: MIT OR Apache-2.0
"""The interface of a collector. One thread of a run calls it: open(), sample() every `interval_ns`, close()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ktrxer.store.meta import Series


class CollectorError(Exception):
    """The collector does not work here. The text is one line: what is missing, what to do."""


@dataclass(frozen=True)
class Sample:
    """One row of the table `series.kind`, without `series` and `t_ns`, which the caller adds."""

    series: int  # index into the list from open()
    values: Mapping[str, Any]
    monotonic_ns: int | None = None  # time of the sample; None: the time of the call of sample()


class Collector(Protocol):
    name: str  # in messages: "qdiscs of eth0"
    interval_ns: int

    def open(self) -> Sequence[Series]:
        """Check that the collector works, and return its series; the caller sets their `id`. CollectorError if it does not work."""

    def sample(self) -> Sequence[Sample]:
        """Read the counters. This must take at most a millisecond and start no process. CollectorError ends this collector, not the run."""

    def close(self) -> None:
        """Called once after each successful open()."""
