# SPDX-License-Identifier: MIT OR Apache-2.0
"""CLOCK_REALTIME of this host beside CLOCK_MONOTONIC, from which nothing but a step moves it: the kernel slews both.

A run's times are those of CLOCK_MONOTONIC. Some tools print times of CLOCK_REALTIME only, and a step in mid-run would move all of
their later samples."""

from __future__ import annotations

import time
from pathlib import Path

from ktrxer.places import ClockOffset
from ktrxer.runners.samples import ClockStep
from ktrxer.units import delay

S, MS = 10**9, 10**6
STEP_LEAST_NS = MS // 2  # no sample of these tools has a better time


def clocks() -> tuple[int, int, int]:
    """CLOCK_MONOTONIC, CLOCK_REALTIME at the same instant, and the bound of the difference: the best of a few tries."""
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < 2 * best[2]:
            best = ((before + after) // 2, real, (after - before + 1) // 2)
    assert best is not None
    return best


class OwnClock:
    def __init__(self, mono_ns: int, real_ns: int) -> None:
        self.steps: list[ClockStep] = []  # read by each Clock of this host
        self._last_ns, self._ahead_ns = real_ns, real_ns - mono_ns

    @property
    def moved_ns(self) -> int:
        return sum(step.size_ns for step in self.steps)

    def look(self) -> None:
        mono, real, bound = clocks()
        size = real - mono - self._ahead_ns
        if abs(size) > STEP_LEAST_NS + bound:
            self.steps.append(ClockStep(self._last_ns, real - size, size))
            self._ahead_ns += size
        self._last_ns = real

    def sentence(self, zero_real_ns: int) -> str:
        """The reason for processes whose times were corrected."""
        moved = 0
        parts = []
        for step in self.steps:
            size = ("+" if step.size_ns > 0 else "") + delay(step.size_ns / MS)
            parts.append(f"by {size} at {(step.to_ns - moved - zero_real_ns) / S:.1f} s")
            moved += step.size_ns
        more = f" and {len(parts) - 3} more times" if len(parts) > 3 else ""
        return (
            f"CLOCK_REALTIME of this host, which this tool's times are of, was stepped {', '.join(parts[:3])}{more}: later times are "
            "corrected; times and round trips within some 0.3 s of a step may be wrong by it"
        )


def boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def as_stored(offset: ClockOffset) -> dict[str, int]:
    return {"offset_ns": offset.offset_ns, "bound_ns": offset.bound_ns, "at_real_ns": offset.at_real_ns}
