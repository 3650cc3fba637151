# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows of figures. One list of columns gives the table for people, the JSON, the CSV and the comparison with an older run."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Cell = int | str | None  # a number in units of its last decimal; None: unknown
Row = dict[str, Cell]


@dataclass(frozen=True)
class Column:
    key: str  # in JSON and CSV, with its unit at the end
    head: str | None = None  # heading in the table; None: not shown
    decimals: int = 0  # of the stored number: 1234 with 3 decimals is 1.234
    shown: int = 0  # decimals in the table
    better: int = 0  # 1: higher is better; -1: lower is better
    spread: str = ""  # the column with the spread of the rounds; only columns with one are compared with older runs
    text: bool = False
    is_key: bool = False  # part of the key of a row


@dataclass
class Table:
    columns: Sequence[Column]
    rows: list[Row]

    def lines(self) -> Iterator[str]:
        shown = [column for column in self.columns if column.head is not None]
        cells = [[column.head or "" for column in shown], *([people(column, row.get(column.key)) for column in shown] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            parts = (f"{text:{'<' if column.text else '>'}{width}}" for text, column, width in zip(line, shown, widths, strict=True))
            yield "  ".join(parts).rstrip()

    def json(self) -> list[dict[str, int | float | str | None]]:
        return [{column.key: value(column, row.get(column.key)) for column in self.columns} for row in self.rows]

    def write_csv(self, path: Path) -> None:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([column.key for column in self.columns])
            for row in self.rows:
                cells = ((column, row.get(column.key)) for column in self.columns)
                writer.writerow(["" if cell is None else fixed(column, cell, column.decimals) for column, cell in cells])


def value(column: Column, cell: Cell) -> int | float | str | None:
    return cell / 10**column.decimals if isinstance(cell, int) and column.decimals else cell


def fixed(column: Column, cell: int | str, shown: int) -> str:
    if isinstance(cell, str):
        return cell
    unit = 10 ** (column.decimals - shown)
    size = (abs(cell) + unit // 2) // unit
    whole, part = divmod(size, 10**shown)
    sign = "-" if cell < 0 and size else ""
    return f"{sign}{whole}.{part:0{shown}}" if shown else f"{sign}{whole}"


def people(column: Column, cell: Cell) -> str:
    return "-" if cell is None or cell == "" else fixed(column, cell, min(column.shown, column.decimals))
