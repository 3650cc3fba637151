# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantities with units, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable


def near(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean X?`, with the known word that is most similar, else `otherwise`."""
    from ktrxer.arguments import nearest

    found = nearest(word, known)
    return f"did you mean {found}?" if found else otherwise


def span(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def delay(ms: float) -> str:
    """A measured time of `ms` milliseconds: `107.3 ms`, `1.04 ms`, `26.1 us`, `250 ns`. Only a time of zero has no other digit than 0."""
    size = abs(ms)
    if math.isinf(ms):
        return "lost"
    if size >= 9.995:
        return f"{ms:.1f} ms"
    if size >= 0.9995:
        return f"{ms:.2f} ms"
    if size < 0.0009995:
        return f"{ms * 1e6:.3g} ns"
    us = ms * 1e3
    return f"{us:.{2 if abs(us) < 9.995 else 1 if abs(us) < 99.95 else 0}f} us"


def nanoseconds(ns: int) -> str:
    """A time of `ns` nanoseconds as the C half prints it (ktrxer_format_ns): `250 ns`, `100.000 us`, `1.500 s`."""
    size, sign = abs(ns), "-" if ns < 0 else ""
    if size < 1000:
        return f"{ns} ns"
    for unit, factor in (("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        thousandths = (size * 1000 + factor // 2) // factor
        if thousandths < 10**6 or unit == "s":
            break
    return f"{sign}{thousandths // 1000}.{thousandths % 1000:03} {unit}"


def share(part: int, whole: int) -> str:
    """The share in percent, with as many digits as the count supports: 1 of 8,000 is 0.01 %, 1 of 100 is 1 %."""
    return f"{100 * part / whole:.{max(0, min(4, math.ceil(math.log10(whole)) - 2))}f} %"


def seconds(created: str) -> float | None:
    """The seconds of an RFC 3339 time; None if it is none."""
    from datetime import datetime

    try:
        found = datetime.fromisoformat(created)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None
