# SPDX-License-Identifier: MIT OR Apache-2.0
"""A figure of a run. Apart from figures.py, which computes them, because figures from the cache need neither numpy nor pyarrow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Figure:
    """`key` has words of lower case with dots between them: `udp.rtt.load.p95`. An infinite value is a quantile among lost probes."""

    key: str
    label: str
    unit: str
    value: float
    better: Better
    main: bool = False  # one of those that a sentence is made of


def word(name: str) -> str:
    """A name as a part of a key."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "unnamed"
