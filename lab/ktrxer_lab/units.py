# SPDX-License-Identifier: MIT OR Apache-2.0
"""Durations with units, read from the command line. The same code as in python/ktrxer/units.py, which this distribution does not have."""

from __future__ import annotations

import argparse
import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """`10ms`, `1.5s`, `2m`, or plain seconds."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) ?([a-z]*)", text.strip())
    unit = match[2] or "s" if match else ""
    if not match or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: give 10ms, 1.5s, 2m or 1h; a number without a unit is seconds")
    return float(match[1]) * _UNITS[unit]
