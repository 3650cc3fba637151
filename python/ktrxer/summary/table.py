# SPDX-License-Identifier: MIT OR Apache-2.0
"""A table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ktrxer.store import one_line


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width: the first is left-aligned, the others are right-aligned, the last is not padded."""
    cells = [[one_line(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    made = []
    for row in cells:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        made.append("  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip())
    return made
