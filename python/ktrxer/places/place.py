# SPDX-License-Identifier: MIT OR Apache-2.0
"""The contract of a place: where a process of a run is started. Every kind of place has the same operations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrxer.places.process import Process

RUN_S = 30.0  # a short command in a place, at most
OUTPUT_MOST = 1 << 20  # bytes of a short command's output


class PlaceError(Exception):
    """One line: which place, what failed, why, what to do."""


@dataclass(frozen=True)
class ClockOffset:
    """CLOCK_REALTIME of a place minus that of this host, to +- bound_ns, when this host's CLOCK_REALTIME was at_real_ns."""

    offset_ns: int
    bound_ns: int
    at_real_ns: int


@dataclass(frozen=True)
class Done:
    """A short command that has ended."""

    status: int  # negative: the signal that killed it
    out: bytes
    error: str


class Place(Protocol):
    """`close()` ends all processes of the place."""

    name: str  # as in a recipe: "local", "netns:NAME", "ssh:[USER@]HOST"
    shares_clock: bool  # its processes read the clocks of this host
    start_ns: int  # a process needs so long to begin there, about

    def start(self, argv: Sequence[str], *, guarded: bool = True, at_real_ns: int | None = None) -> Process:
        """Start a process. `guarded`: a shell beside it ends the process group when this program or the connection ends; a program that
        ends by itself at the end of its standard input needs no guard in a local place. `at_real_ns`: the guard waits until then, by the
        clock of the place."""

    def copy_in(self, source: Path, target: str) -> None: ...

    def copy_secret(self, source: Path) -> str:
        """Copy a file that other users must not read, once; its path there. close() removes the copy."""

    def copy_out(self, source: str, target: Path) -> None: ...

    def clock(self) -> ClockOffset:
        """Compare the clocks now."""

    def loss(self) -> str | None:
        """Why the place cannot be reached any more; None while it can."""

    def close(self) -> None: ...


def run(place: Place, argv: Sequence[str], timeout_s: float = RUN_S) -> Done:
    """Run a short command to its end, with bounded output and time. PlaceError when it lasts too long."""
    process = place.start(argv)
    out, deadline = b"", time.monotonic() + timeout_s
    try:
        while process.open:
            left = deadline - time.monotonic()
            if left <= 0 or len(out) > OUTPUT_MOST:
                process.kill()
                what = f"did not end within {timeout_s:g} s" if left <= 0 else f"printed more than {OUTPUT_MOST} bytes"
                raise PlaceError(f"{place.name}: `{' '.join(argv)[:80]}` {what}")
            for descriptor in process.ready(left):
                out += b"".join(process.read(descriptor))
    finally:
        status = process.close()
    return Done(status, out, process.stderr_tail)
