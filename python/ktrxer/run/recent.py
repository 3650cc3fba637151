# SPDX-License-Identifier: MIT OR Apache-2.0
"""The newest figures of each series, for the view of a run that happens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ktrxer.runners.samples import Samples, names
from ktrxer.statistics.throughput import receiver_end
from ktrxer.store.columns import ANSWERED, LOST
from ktrxer.store.meta import Series

_LATENCY = [names("latency").index(name) for name in ("series", "t_ns", "rtt_ns", "state")]
_BYTES = [names("bytes").index(name) for name in ("series", "t_ns", "end", "bytes")]


@dataclass
class Recent:

    delays: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=400))  # time, round trip
    lost: int = 0
    answered: int = 0
    bytes: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=2))  # time, count; at the receiver

    def rate_bps(self) -> float | None:
        if len(self.bytes) < 2 or self.bytes[1][0] <= self.bytes[0][0]:
            return None
        return (self.bytes[1][1] - self.bytes[0][1]) * 8e9 / (self.bytes[1][0] - self.bytes[0][0])


class Newest:
    """The last figures of all series. They are read from the rows that wait to be stored, so a run without a view does no work for them."""

    def __init__(self) -> None:
        self.series: dict[int, Recent] = {}
        self._seen: dict[tuple[int, str], int] = {}  # rows, by process and table

    def get(self, series: int) -> Recent:
        return self.series.setdefault(series, Recent())

    def update(self, process: int, samples: Samples, every: list[Series], *, taken: bool) -> None:
        """`taken`: the rows are stored after this call, and the next ones are counted from 0."""
        tables = samples.tables()
        for kind, which in (("latency", _LATENCY), ("bytes", _BYTES)):
            rows = tables.get(kind)
            if rows is None:
                continue
            begin = self._seen.get((process, kind), 0)
            self._seen[process, kind] = 0 if taken else len(rows[0])
            for series, at, *more in zip(*(rows[column][begin:] for column in which), strict=True):
                recent = self.get(series)
                if kind == "bytes":
                    if more[0] == receiver_end(every[series].direction):
                        recent.bytes.append((at, more[1]))
                elif more[1] == ANSWERED and more[0] is not None:
                    recent.answered += 1
                    recent.delays.append((at, more[0]))
                elif more[1] == LOST:
                    recent.lost += 1
