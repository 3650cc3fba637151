# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantities with units, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable


def near(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean X?`, with the known word that is most similar, else `otherwise`."""
    import difflib

    found = difflib.get_close_matches(word, [*known], 1)
    return f"did you mean {found[0]}?" if found else otherwise


def span(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


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
