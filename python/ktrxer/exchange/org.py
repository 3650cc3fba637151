# SPDX-License-Identifier: MIT OR Apache-2.0
"""A table of Org mode, as Flent's formatter org_table writes it: the first column has the times in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ktrxer.store import one_line


def table(name: str, x: Sequence[float], series: Mapping[str, Sequence[float | None]]) -> str:
    """An empty field where a series has no value."""
    head = [_cell(one) for one in (name, *series)]
    rows = ["| " + " | ".join(head) + " |", "|-" + "-+-".join("-" * len(one) for one in head) + "-|"]
    for i, at in enumerate(x):
        rows.append("| " + " | ".join([_number(at), *(_number(values[i]) for values in series.values())]) + " |")
    return "\n".join(rows) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _cell(text: str) -> str:
    r"""A bar would end the field; Org mode shows \vert{} as one."""
    return one_line(text, 200).replace("|", r"\vert{}")
