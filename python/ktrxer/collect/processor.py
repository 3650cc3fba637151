# SPDX-License-Identifier: MIT OR Apache-2.0
"""CPU use and steal time of this host, from /proc/stat."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ktrxer.collect.collector import CollectorError, Sample
from ktrxer.store.meta import Series

INTERVAL_NS = 200_000_000  # the kernel counts in ticks of 10 ms, so shorter intervals would be coarse
# Fields of the first line (proc_stat(5)). user and nice include guest time, so the first eight fields are the total.
FIELDS = 8
IDLE, IOWAIT, STEAL = 3, 4, 7


class ProcessorCollector:
    """Use and steal of all CPUs together, in percent. Use includes steal, because the stolen time does no work here."""

    name = "CPU"

    def __init__(self, interval_ns: int = INTERVAL_NS, path: Path = Path("/proc/stat")) -> None:
        self.interval_ns, self.path = interval_ns, path
        self._file = -1
        self._before: list[int] = []

    def open(self) -> Sequence[Series]:
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._before = self._read()
        except OSError as error:
            raise CollectorError(f"{self.path}: {error.strerror}") from None
        except CollectorError:
            self.close()
            raise
        return [Series(0, "CPU", "host", "%", group="host")]

    def _read(self) -> list[int]:
        line = os.pread(self._file, 4096, 0).partition(b"\n")[0].split()
        if len(line) < 5 or line[0] != b"cpu" or not all(word.isdigit() for word in line[1 : 1 + FIELDS]):
            raise CollectorError(f"{self.path}: unexpected format")
        counts = [int(word) for word in line[1 : 1 + FIELDS]]
        return counts + [0] * (FIELDS - len(counts))

    def sample(self) -> Sequence[Sample]:
        try:
            now, at = self._read(), time.monotonic_ns()
        except OSError as error:
            raise CollectorError(f"{self.path}: {error.strerror}") from None
        passed = [max(0, b - a) for a, b in zip(self._before, now, strict=True)]  # iowait may decrease
        total = sum(passed)
        if not total:
            return []  # no tick since the last sample
        self._before = now
        busy = total - passed[IDLE] - passed[IOWAIT]
        return [Sample(0, {"cpu_percent": 100 * busy / total, "steal_percent": 100 * passed[STEAL] / total}, at)]

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
