# SPDX-License-Identifier: MIT OR Apache-2.0
"""The times at which a video plays and stops, from the arrivals of its segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Playback:
    """The playback of the segments: it begins with the first segment, and stops while the next one has not arrived."""

    begins_ns: int | None = None
    empty_ns: int = 0  # when the last segment will have been shown
    stalls: list[tuple[int, int]] = field(default_factory=list)  # when it stopped, and for how long
    buffer: list[tuple[int, int]] = field(default_factory=list)  # at each arrival, the length that was not shown yet


def playback(arrivals: Iterable[tuple[int, int]], ends_ns: int | None = None) -> Playback:
    """`arrivals`: time and length of the segments, in order. A stall that lasts at `ends_ns` ends there."""
    made = Playback()
    for at, length in arrivals:
        if made.begins_ns is None:
            made.begins_ns = made.empty_ns = at
        elif at > made.empty_ns:
            made.stalls.append((made.empty_ns, at - made.empty_ns))
        made.empty_ns = max(made.empty_ns, at) + length
        made.buffer.append((at, made.empty_ns - at))
    if ends_ns is not None and made.begins_ns is not None and made.empty_ns < ends_ns:
        made.stalls.append((made.empty_ns, ends_ns - made.empty_ns))
    return made
