# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantities with units: read from the command line, and written."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """`10ms`, `1.5s`, `2m`, or plain seconds."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) ?([a-z]*)", text.strip())
    unit = match[2] or "s" if match else ""
    if not match or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: give 10ms, 1.5s, 2m or 1h; a number without a unit is seconds")
    return float(match[1]) * _UNITS[unit]


def bitrate(text: str) -> int:
    """Bits a second: `100M`, `6Mbit`, `64k`, `1.5G`, or a plain number."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) ?([kKMG]?)(?:bit(?:/s)?)?", text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a bit rate: give 100M, 64k or 1G; a number without a unit is bit/s")
    return round(float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2].replace("K", "k")])


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
