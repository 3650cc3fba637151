# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times of a run: its phases by the clock of the host, and the processor time of its processes."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.store import Run

S = 10**9


@dataclass(frozen=True)
class PhaseTimes:
    """Begin and end of a phase on this host's real-time clock, in nanoseconds since 1970, for samples of other programs."""

    name: str
    from_real_ns: int
    to_real_ns: int


@dataclass(frozen=True)
class ProcessorTime:
    """Processor time of all processes of a kind, with their children."""

    kind: str
    seconds: float


def phase_times(run: Run) -> list[PhaseTimes]:
    zero = run.meta.zero
    return [] if zero is None else [PhaseTimes(p.name, zero.realtime_ns + p.from_ns, zero.realtime_ns + p.to_ns) for p in run.meta.phases]


def processor_times(run: Run) -> list[ProcessorTime]:
    by_kind: dict[str, int] = {}
    for runner in run.meta.runners:
        if runner.processor_ns is not None:
            by_kind[runner.kind] = by_kind.get(runner.kind, 0) + runner.processor_ns
    return [ProcessorTime(kind, ns / S) for kind, ns in by_kind.items()]
